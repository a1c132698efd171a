package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// core holds what all attempts of an engine share. It holds no state of a request.
type core struct {
	names     naming
	store     store.Store
	opt       Options
	retention time.Duration // how long records are kept, in whole seconds
	spare     time.Duration // half of LeaseMargin: the time for a renewal before the lease ends; the other half is for a sandbox that is killed late
	log       *slog.Logger
	scheme    string          // of Options.Fingerprint
	methods   map[string]bool // HTTP methods on which the engine acts
	headers   map[string]bool // response headers to store
	hooks     map[happening]eventHook
	noLimit   sync.Once // guards a warning
}

// Engine runs the operation of each key once. An engine holds no state of a request and is
// safe for concurrent use by any number of handlers and goroutines.
type Engine struct {
	core     *core
	handlers handlers
}

// New returns an engine that keeps its records in store. New panics if an option is
// invalid. Except in [ModeOff], New also panics if store is nil or holds a nil pointer.
func New(store store.Store, optFns ...func(*Options)) *Engine {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	opt = opt.withDefaults()
	if was := opt.Former.preset(); was != nil {
		opt.knowPreset(was.withDefaults())
	}
	if isNil(store) && opt.Mode != ModeOff {
		panic("idem: New: store is nil") //nolint:forbidigo // a mistake in the program, at cold start
	}
	if err := opt.validate(); err != nil {
		panic(fmt.Sprintf("idem: New: %v", err)) //nolint:forbidigo // as above
	}
	c := &core{
		names: namingOf(&opt), store: store, opt: opt, retention: state.Retained(opt.Retention), spare: opt.LeaseMargin / 2, log: opt.Logger,
		scheme: opt.Fingerprint.scheme(), methods: make(map[string]bool), headers: allowList(opt.StoreHeaders), hooks: opt.Hooks.byName(),
	}
	for _, m := range opt.Methods {
		c.methods[m] = true
	}
	if opt.Mode == ModeOff {
		c.log.Warn("requests run without protection: Options.Mode is ModeOff", "namespace", opt.Namespace)
	}
	if opt.rules.stripe {
		c.headers[requestID] = true
	}
	expose := opt.rules.exposes()
	if opt.KeyHeader != KeyHeader {
		expose = append(expose, opt.KeyHeader)
	}
	c.opt.CORS.Expose = slices.Concat(c.opt.CORS.Expose, expose)
	return &Engine{core: c}
}

// Do runs fn once for r's key and scope, and returns the same answer to every call. From
// the second call on, Result.Replayed is true. If r has no Tenant, Do uses the tenant of
// the request in ctx ([WithSender]).
//
// The context of fn carries the [Op]. This context ends half a second before the
// deadline of ctx, so that the engine has time for the last write and the answer. If
// ctx has no deadline, [Options.Lease] after the start of Do counts as the deadline. If
// half a second or less is left, Do doesn't call fn (ErrNoTime). If an earlier attempt
// left the operation open, the error also matches ErrUnfinished. If fn continues after
// the end of its context, fn holds the key until another attempt takes over (see
// [Options.Lease]).
//
// Three outcomes of fn free the key: an error, an answer that [Options.Stored] rejects, and
// a panic. Do returns the error or the answer; the panic continues. But if a phase has
// committed or a call may have been made, the key isn't freed, and a later attempt
// continues the operation. In this case Do returns ErrUnfinished in place of an answer that
// Stored rejects, unless the answer's status is 5xx. If an earlier attempt died in a
// call, and fn doesn't repeat the call, Do returns ErrUnfinished in place of every
// answer. If [Options.Resumable] is set, only a 4xx that Stored rejects frees the key:
// after any other failure a completer finishes the request.
//
// Inside fn, a nested Do with the same key and request runs its own fn as a part of the
// outer operation (Result.Passed). A nested Do with the same key and another request is
// refused (ErrMismatch).
//
// [Options.Key] decides what Do does without a key: refuse the request (ErrKeyMissing), run
// fn each time, or generate a key. In [ModeObserve] fn always runs. If another attempt holds
// the key, Do returns an error even under [InFlightAccept]: only [Engine.Serve] answers 202.
//
// If the engine refuses r, the error is an *[Error]. This call of Do has not run fn if
// the error matches ErrKeyMissing, ErrKeyInvalid, ErrScope, ErrRequest, ErrTooLarge,
// ErrMismatch, ErrNoTime, ErrQuota or ErrIncomparable. An earlier call may have run fn.
// This call may have run fn if the error matches ErrUnfinished (without ErrNoTime),
// ErrStuck, ErrNotKept, ErrLeaseLost, ErrUnavailable, ErrCorrupt or ErrUnprotected.
// After ErrInFlight, this call has run fn only if another attempt overtook this
// attempt.
//
// If ctx is cancelled while fn runs, fn decides how to react. The engine still stores the
// answer or releases the key.
func (e *Engine) Do(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	a, acts, err := e.core.attempt(), true, error(nil)
	q := &a.ask
	if q.reqValue = r; r.Tenant == "" {
		q.reqValue.Tenant = verifiedIn(ctx).tenant
	}
	if r.Key == "" && e.core.opt.Mode != ModeOff {
		acts, err = e.core.keyless(ctx, q.req)
	}
	var res Result
	switch {
	case e.core.opt.Mode == ModeOff:
		res, err = e.core.off(ctx, q.req, fn)
	case !acts && err == nil:
		res, err = e.core.pass(ctx, q.req, fn)
	case e.core.opt.Mode == ModeObserve:
		res, err = a.observe(ctx, err, fn)
	case err != nil:
		a.refused(ctx, err)
	default:
		res, err = a.do(ctx, fn)
	}
	if h, ok := errors.AsType[*handlerError](err); ok {
		err = h.err
	}
	return res, err
}
