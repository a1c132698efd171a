package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// Engine runs operations once for each key. An engine holds no state of a request
// and is safe for concurrent use by any number of handlers and goroutines.
type Engine struct {
	store    store.Store
	opt      Options
	log      *slog.Logger
	prefix   string   // of every partition key
	scheme   string   // of Options.Fingerprint
	claims   scoping  // under which keys are claimed
	besides  *scoping // the other one while the scope of keys changes; nil without Options.Former
	methods  map[string]bool
	headers  map[string]bool // response headers to store
	cache    *cache
	noLimit  sync.Once // guards a warning
	handlers handlers
	hooks    map[happening]eventHook // those that are not nil
	timed    bool                    // a hook asks for the duration of phases
}

// New returns an engine on store. New panics if store is nil (also a nil pointer
// in the interface) or an option is invalid: both are mistakes in the program,
// best found at cold start.
func New(store store.Store, optFns ...func(*Options)) *Engine {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	opt = opt.withDefaults()
	if isNil(store) && !opt.Disabled {
		panic("idem: New: store is nil") //nolint:forbidigo // a mistake in the program, at cold start
	}
	if err := opt.validate(); err != nil {
		panic(fmt.Sprintf("idem: New: %v", err)) //nolint:forbidigo // as above
	}
	e := &Engine{
		store: store, opt: opt, log: opt.Logger, prefix: layout + "#" + opt.Namespace + "#", scheme: opt.Fingerprint.scheme(),
		methods: make(map[string]bool), headers: allowList(opt.StoreHeaders),
		cache: newCache(opt.CacheBytes),
	}
	if opt.Key == KeyObserve { // which answers nobody, and claims each time
		e.cache = nil
	}
	e.claims = scoping{scope: opt.Scope, one: opt.oneScope, route: opt.ScopeRoute}
	if f := opt.Former; f != nil {
		former, present := scoping{scope: f.Scope, all: f.OneScope, route: f.ScopeRoute}, e.claims
		if e.claims, e.besides = present, &former; f.Claims {
			e.claims, e.besides = former, &present
		}
	}
	e.hooks = e.opt.Hooks.byName()
	e.timed = e.opt.Hooks.Committed != nil || e.opt.Hooks.Ended != nil
	for _, m := range opt.Methods {
		e.methods[m] = true
	}
	var expose []string
	if opt.KeyHeader != KeyHeader {
		expose = append(expose, opt.KeyHeader)
	}
	if opt.stripe {
		e.headers[stripeRequestID] = true
		expose = append(expose, stripeShouldRetry, stripeRequestID)
	}
	if len(e.opt.CORS.Origins) > 0 {
		e.opt.CORS.Expose = slices.Concat(e.opt.CORS.Expose, expose)
	}
	return e
}

// Do runs fn once for r's key and scope and returns the same answer for every
// call, marked Replayed from the second call on.
//
// The context of fn carries the [Op] and ends [Options.Reserve] before ctx does
// (or before the lease, if ctx has no deadline). If fn continues after that, it
// keeps the key ([Options.RenewFor]) until another attempt takes over. If fn
// returns an error, Do frees the key and returns the error. A panic frees the key
// and continues. An answer that [Options.Stored] rejects is returned and frees
// the key, if nothing was done under it. Otherwise the answer is withheld
// (ErrUnfinished) unless its status is 5xx: the operation goes on. With
// [Options.Resumable] only an unstored 4xx frees the key; a completer finishes an
// accepted request that stopped for another reason.
//
// [Options.Key] decides whether Do refuses a request without a key
// (ErrKeyMissing), runs fn each time, or generates a key. With [KeyObserve] fn
// always runs. A request in flight is an error even with [InFlightAccept], which
// affects only [Engine.Serve].
//
// If the engine refuses r, the error is an *[Error] that matches ErrKeyMissing,
// ErrKeyInvalid, ErrScope, ErrRequest, ErrTooLarge, ErrMismatch, ErrInFlight,
// ErrUnfinished, ErrStuck, ErrExpired, ErrNotKept, ErrLeaseLost, ErrNoTime, ErrQuota,
// ErrUnavailable, ErrCorrupt or ErrIncomparable. In that case fn has run only if the
// error matches ErrLeaseLost or ErrUnfinished, or ErrInFlight after another attempt
// overtook this attempt.
//
// If ctx is cancelled while fn runs, fn decides how to react. The engine still
// stores the answer or releases the key.
func (e *Engine) Do(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	var res Result
	var err error
	a, acts := &attempt{Engine: e, request: r}, true
	a.req = &a.request
	if r.Key == "" && !e.opt.Disabled {
		acts, err = e.keyless(ctx, a.req)
	}
	switch {
	case e.opt.Key == KeyObserve && !e.opt.Disabled:
		res, err = e.observe(ctx, a, err, fn)
	case err != nil:
		e.refuses(ctx, a.req, err)
	case !acts:
		res, err = e.pass(ctx, a.req, fn)
	default:
		res, err = a.do(ctx, false, fn)
	}
	if h, ok := errors.AsType[*handlerError](err); ok {
		err = h.err
	}
	return res, err
}

// do runs a's request with its key. accepts allows a 202 in place of an answer
// ([InFlightAccept]); only Serve sets accepts.
func (a *attempt) do(ctx context.Context, accepts bool, fn func(context.Context) (Response, error)) (Result, error) {
	e, r := a.Engine, a.req
	if e.opt.Disabled {
		return e.pass(ctx, r, fn)
	}
	if err := e.attempt(ctx, a, accepts); err != nil {
		e.refuses(ctx, r, err)
		return Result{}, err
	}
	a.accepts = accepts
	if a.inside(ctx) {
		return e.pass(ctx, r, fn)
	}
	if e.opt.Hooks.Ended == nil && e.opt.Tracer == nil {
		return a.proceed(ctx, fn)
	}
	return a.watched(ctx, func(ctx context.Context) (Result, error) {
		if e.opt.Tracer == nil {
			return a.proceed(ctx, fn)
		}
		return a.operate(ctx, func(ctx context.Context) (Result, error) { return a.proceed(ctx, fn) })
	})
}

// proceed looks for the record of a's request, claims it, and runs fn or answers
// from the record.
func (a *attempt) proceed(ctx context.Context, fn func(context.Context) (Response, error)) (Result, error) {
	e, r := a.Engine, a.req
	if a.cached != nil {
		if res, ok, err := a.remembered(ctx); ok {
			return res, err
		}
	}
	a.arrives(ctx)
	if e.opt.Resumable && !r.Redelivered {
		if err := e.storable(e.input(r)); err != nil {
			err := a.fail("request", err)
			a.tell(ctx, evRefused, a.event(nil, err))
			return Result{}, err
		}
	}
	if res, ok, err := a.look(ctx); ok {
		return res, err
	}
	if err := a.enough(); err != nil {
		a.tell(ctx, evRefused, a.event(nil, err))
		return Result{}, err
	}
	var held *store.Record
	v, err := state.Again, error(nil)
	if e.opt.Quota != nil && !nested(ctx) {
		held, v, err = a.admit(ctx)
		defer a.place.leave()
	}
	if err == nil && v == state.Again {
		if e.opt.MergeClaim {
			return a.run(ctx, nil, false, fn)
		}
		held, v, err = a.claim(ctx, nil, nil, false)
	}
	if err == nil {
		held, v, err = a.patiently(ctx, held, v)
	}
	switch {
	case e.opt.FailOpen && !a.seen && unreachable(err):
		e.log.ErrorContext(ctx, "store unavailable: handler runs unprotected", "record", redact.Record(a.pk), "error", err)
		a.tell(ctx, evFailedOpen, a.event(nil, err))
		return e.pass(ctx, r, fn)
	case errors.Is(err, ErrQuota):
		a.tell(ctx, evLimited, a.event(nil, err))
		return Result{}, err
	case err != nil:
		e.log.ErrorContext(ctx, "claim failed", "record", redact.Record(a.pk), "error", err)
		a.tell(ctx, evFailed, a.event(nil, err))
		return Result{}, err
	case v == state.Own || v == state.TakeOver:
		if err := a.enough(); err != nil { // the claim used up the time, or the sandbox was frozen
			_, _, _ = a.release(ctx, held, state.GiveBack{}, err)
			a.tell(ctx, evRefused, a.event(nil, err))
			return Result{}, err
		}
		return a.begin(ctx, held, v == state.TakeOver, fn)
	default:
		return a.answer(ctx, held, v)
	}
}

// unreachable reports whether a claim failed because the store could not be
// reached. After the store has returned a record (attempt.seen), FailOpen must
// not run the request; nor if the key of its encryption can't be had, behind which
// there may be an answer.
func unreachable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Op == "claim" && errors.Is(err, ErrUnavailable) && !errors.Is(err, store.ErrSealed)
}

// handlerError distinguishes fn's own error from the engine's errors.
type handlerError struct{ err error }

func (h *handlerError) Error() string { return h.err.Error() }

func (h *handlerError) Unwrap() error { return h.err }
