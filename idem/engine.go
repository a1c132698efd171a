package idem

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
	"github.com/samekey/samekey/internal/state"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Engine runs operations once for each key. It holds no state of a request, so
// one engine serves any number of handlers and goroutines.
type Engine struct {
	store    store.Store
	opt      Options
	log      *slog.Logger
	prefix   string // of every partition key
	methods  map[string]bool
	headers  map[string]bool // to store
	cache    *cache
	unscoped sync.Once // guards a warning
	noLimit  sync.Once // guards a warning
	handlers handlers
}

// New returns an engine on store. It panics if store is nil (also a nil pointer
// in the interface) or an option can't work: both are mistakes in the program,
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
		store: store, opt: opt, log: opt.Logger, prefix: layout + "#" + opt.Namespace + "#",
		methods: make(map[string]bool), headers: allowList(opt.StoreHeaders), cache: newCache(opt.CacheBytes),
	}
	for _, m := range opt.Methods {
		e.methods[m] = true
	}
	if opt.stripe {
		e.headers[stripeRequestID] = true
		if len(e.opt.CORS.Origins) > 0 {
			e.opt.CORS.Expose = slices.Concat(e.opt.CORS.Expose, []string{stripeShouldRetry, stripeRequestID})
		}
	}
	return e
}

// Do runs fn once for r's key and scope and returns the same answer for every
// call, marked Replayed from the second on.
//
// fn's context carries the [Op] and ends [Options.Reserve] before ctx does (or
// before the lease, where ctx has no deadline). A fn that works on all the same
// keeps its key ([Options.RenewFor]), until another attempt takes over. An error of fn frees the key and
// is returned; a panic does the same and goes on. An answer that
// [Options.Stored] does not keep is returned and frees the key. With
// [Options.Resumable] only an unstored 4xx does: whatever else stops a request
// that has been accepted, a completer ends it.
//
// Without a key, r is refused (ErrKeyMissing), runs each time, or gets a key, as
// [Options.Key] says. With [KeyObserve] fn runs whatever is known of the key. A
// request in flight is an error also with [InFlightAccept], which is
// [Engine.Serve]'s.
//
// What the engine itself refuses is an *[Error] that matches ErrKeyMissing, ErrKeyInvalid,
// ErrScope, ErrRequest, ErrTooLarge, ErrCredentials, ErrMismatch, ErrInFlight, ErrStuck, ErrExpired,
// ErrNotKept, ErrLeaseLost, ErrNoTime, ErrUnavailable, ErrCorrupt or ErrSecret;
// fn has run only if it matches ErrLeaseLost, or ErrInFlight after an overtaken
// attempt.
//
// If ctx is cancelled while fn runs, fn decides what to do about it; what it
// returns is stored or released all the same.
func (e *Engine) Do(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	var res Result
	var err error
	acts := true
	if r.Key == "" && !e.opt.Disabled {
		acts, err = e.keyless(ctx, &r)
	}
	switch {
	case e.opt.Key == KeyObserve && !e.opt.Disabled:
		res, err = e.observe(ctx, &r, err, fn)
	case err != nil:
		call(ctx, e.opt.Hooks.Refused, Event{Route: r.Route, Err: err})
	case !acts:
		res, err = e.pass(ctx, &r, fn)
	default:
		res, err = e.do(ctx, &r, false, fn)
	}
	if h, ok := errors.AsType[*handlerError](err); ok {
		err = h.err
	}
	return res, err
}

// handlerError tells fn's own error from the engine's.
type handlerError struct{ err error }

func (h *handlerError) Error() string { return h.err.Error() }
func (h *handlerError) Unwrap() error { return h.err }

// do is Do. accepts says that a 202 may stand for an answer ([InFlightAccept]):
// it is HTTP's, and no result to anybody else.
func (e *Engine) do(ctx context.Context, r *Request, accepts bool, fn func(context.Context) (Response, error)) (Result, error) {
	if e.opt.Disabled {
		return e.pass(ctx, r, fn)
	}
	a, err := e.attempt(ctx, r, accepts)
	if err != nil {
		call(ctx, e.opt.Hooks.Refused, Event{Route: r.Route, Err: err})
		return Result{}, err
	}
	a.accepts = accepts
	if inside(ctx, e.store, a.pk) {
		return e.pass(ctx, r, fn)
	}
	a.arrives(ctx)
	if e.opt.Resumable && !r.Redelivered {
		if err := storable(e.input(r)); err != nil {
			err := a.fail("request", err)
			call(ctx, e.opt.Hooks.Refused, a.event(nil, err))
			return Result{}, err
		}
	}
	if res, ok, err := a.look(ctx); ok {
		return res, err
	}
	if err := a.enough(); err != nil {
		call(ctx, e.opt.Hooks.Refused, a.event(nil, err))
		return Result{}, err
	}
	if e.opt.MergeClaim {
		return a.run(ctx, nil, false, fn)
	}
	held, v, err := a.claimOrWait(ctx)
	switch {
	case e.opt.FailOpen && !a.seen && unreachable(err):
		e.log.ErrorContext(ctx, "store unavailable: handler runs unprotected", "record", redact.Record(a.pk), "error", err)
		call(ctx, e.opt.Hooks.FailedOpen, a.event(nil, err))
		return e.pass(ctx, r, fn)
	case err != nil:
		e.log.ErrorContext(ctx, "claim failed", "record", redact.Record(a.pk), "error", err)
		call(ctx, e.opt.Hooks.Failed, a.event(nil, err))
		return Result{}, err
	case v == state.Own || v == state.TakeOver:
		if err := a.enough(); err != nil { // the claim took it, or the sandbox was frozen
			_, _, _ = a.release(ctx, held, state.GiveBack{}, err)
			call(ctx, e.opt.Hooks.Refused, a.event(nil, err))
			return Result{}, err
		}
		return a.begin(ctx, held, v == state.TakeOver, fn)
	default:
		return a.answer(ctx, held, v)
	}
}

// unreachable reports whether the store kept a claim from being made, or told.
// Once it has shown a record (attempt.seen), FailOpen must not run its request.
func unreachable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Op == "claim" && errors.Is(err, ErrUnavailable)
}

// pass runs fn as if there were no engine.
func (e *Engine) pass(ctx context.Context, r *Request, fn func(context.Context) (Response, error)) (Result, error) {
	resp, err := fn(ctx)
	if answer, ok := errors.AsType[*answered](err); ok && !nested(ctx) {
		resp, err = (&attempt{Engine: e, req: r}).response(answer.v)
	}
	if err != nil {
		return Result{Passed: true}, &handlerError{err}
	}
	return Result{Response: resp, Passed: true}, nil
}

// attempt is one try at one operation. Everything it needs is bound to it at
// the start, so nested and concurrent attempts can't mix.
type attempt struct {
	*Engine
	req     *Request
	scope   string
	pk      string
	owner   string // its nonce
	id      string // of the operation, if it is new
	accepts bool   // may be answered with 202
	resumed bool   // by a completer: there is no client, and no request but the stored one
	seen    bool   // a record of the key, by a look at it or in the way of a claim
	digest  [sha256.Size]byte

	anonymous bool              // nobody has verified who is calling: cred tells callers apart
	cred      [sha256.Size]byte // of what the request presents

	deadline time.Time     // when the work must be over
	limit    time.Duration // of each call to the store, where that is not the usual one
	spent    atomic.Bool   // waiting for the store has used up the time
}

// attempt checks a request and names its record. spaces allows them in the key.
func (e *Engine) attempt(ctx context.Context, r *Request, spaces bool) (*attempt, error) {
	if err := checkKey(r.Key, e.opt.MinKey, e.opt.MaxKey, spaces); err != nil {
		return nil, &Error{Op: "key", Err: err}
	}
	scope, anonymous, err := e.scopeOf(ctx, r)
	if err != nil {
		return nil, &Error{Op: "scope", Err: err}
	}
	digest, err := e.opt.Fingerprint.digest(r)
	if err != nil {
		return nil, &Error{Op: "fingerprint", Err: err}
	}
	pk := e.partitionKey(scope, r)
	if e.opt.MismatchIsNew {
		pk = e.partitionKey(scope, r, string(digest[:]))
	}
	a := &attempt{
		Engine: e, req: r, scope: scope, pk: pk, owner: rand.Text(), id: rand.Text(), digest: digest,
	}
	a.identify(anonymous)
	return a, nil
}

// start fixes the time the attempt has, or refuses to begin.
func (a *attempt) start(ctx context.Context) error {
	a.arrives(ctx)
	return a.enough()
}

// arrives fixes the time the attempt has.
func (a *attempt) arrives(ctx context.Context) {
	deadline, ok := ctx.Deadline()
	if !ok {
		a.noLimit.Do(func() {
			a.log.WarnContext(ctx, "context has no deadline: using Options.Lease", "lease", a.opt.Lease)
		})
		deadline = time.Now().Add(a.opt.Lease)
	}
	if farthest := time.Now().Add(a.opt.Retention); deadline.After(farthest) {
		deadline = farthest // a lease beyond the key's lifetime holds nothing
	}
	a.deadline = deadline
}

// enough refuses to go on with too little time left: work that is cut off in the
// middle is worse than work that was never begun.
func (a *attempt) enough() error {
	if left := time.Until(a.deadline); left <= a.opt.Reserve {
		return a.fail("start", fmt.Errorf("%w: %v, more than %v is required", ErrNoTime, left.Round(time.Millisecond), a.opt.Reserve))
	}
	return nil
}

// leaseEnd is when this attempt would lose the lease. The time left is real,
// the stored end is by the engine's clock.
func (a *attempt) leaseEnd(now time.Time) time.Time {
	return now.Add(time.Until(a.deadline) + a.opt.LeaseMargin)
}

// begin runs an operation whose record is ours.
func (a *attempt) begin(ctx context.Context, rec *store.Record, resumed bool, fn func(context.Context) (Response, error)) (Result, error) {
	hook := a.opt.Hooks.Claimed
	if resumed {
		hook = a.opt.Hooks.TakenOver
	}
	call(ctx, hook, a.event(rec, nil))
	return a.run(ctx, rec, resumed, fn)
}

// run calls fn and ends the operation as fn's outcome demands. rec is nil where
// the claim is still to come.
func (a *attempt) run(ctx context.Context, rec *store.Record, resumed bool, fn func(context.Context) (Response, error)) (Result, error) {
	f := &flow{a: a, rec: rec}
	res, err := a.once(ctx, f, resumed, fn)
	if f.restart { // at most once: from then on there is a record
		rec := f.record()
		if err := a.enough(); err != nil {
			_, _, _ = a.release(ctx, rec, state.GiveBack{}, err)
			return Result{}, err
		}
		return a.begin(ctx, rec, rec.Ver > 1, fn)
	}
	return res, err
}

func (a *attempt) once(ctx context.Context, f *flow, resumed bool, fn func(context.Context) (Response, error)) (Result, error) {
	resp, err := a.handle(ctx, f, resumed, fn)
	if end := f.ended(); end != nil {
		return end.res, end.err
	}
	answer, definitive := errors.AsType[*answered](err)
	if definitive {
		resp, err = a.response(answer.v)
	}
	if err == nil {
		err = checkStatus(&resp)
	}
	if err == nil {
		a.cleaned(ctx, &resp)
	}
	failed := f.failure()
	if err == nil && f.leftBehind() {
		err = failed // a call that is under way may contradict any answer
	}
	if err == nil && (definitive || failed == nil && a.opt.Stored(resp.Status)) {
		if err = f.complete(); err == nil {
			return a.conclude(ctx, f, resp)
		}
	}
	if err == nil && failed != nil {
		a.log.ErrorContext(ctx, "answer not stored: a phase had failed", "record", redact.Record(a.pk), "error", failed)
		if resp.Status < http.StatusBadRequest {
			err = failed // whoever is told of success doesn't come again
		}
	}
	return a.withdraw(ctx, f, resp, err, failed)
}

// withdraw ends an attempt whose outcome isn't stored: resp, or err.
func (a *attempt) withdraw(ctx context.Context, f *flow, resp Response, err, failed error) (Result, error) {
	rec := f.record()
	if rec == nil {
		return a.consult(ctx, f, resp, err)
	}
	cause := err
	if cause == nil {
		cause = failed
	}
	b := f.giveBack()
	if cause == nil {
		b.Refused, b.Why = resp.Status/100 == 4, notStored(resp.Status)
	}
	held, l, rerr := a.release(ctx, rec, b, cause)
	switch {
	case l == state.Fenced && rerr == nil:
		if err != nil {
			a.log.ErrorContext(ctx, "handler failed in an overtaken attempt", "record", redact.Record(a.pk), "error", err)
		}
		return a.overtaken(ctx, held)
	case l == state.Landed && held.State == store.Done:
		return a.answer(ctx, held, state.Replay) // stored after all: that is the answer
	case err != nil:
		if rerr != nil {
			err = errors.Join(err, rerr)
		}
		return Result{}, &handlerError{err}
	default:
		return Result{Response: resp}, nil
	}
}

// notStored is what is to be said of an answer that the policy doesn't keep.
func notStored(status int) string {
	return fmt.Sprintf("the handler answered %d, which is not stored", status)
}

// consult looks at the record before an answer that isn't stored leaves an
// attempt that never claimed: a finished operation has an answer of its own, and
// another request must not pass as this one. What an earlier attempt has
// committed and abandoned is taken over, and the handler begins again with it.
func (a *attempt) consult(ctx context.Context, f *flow, resp Response, err error) (Result, error) {
	until := a.until(nil)
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	held, lerr := a.store.Load(ctx, a.pk)
	if lerr != nil {
		return Result{}, a.unavailable("look", errors.Join(lerr, err))
	}
	v, jerr := a.judge(held)
	if jerr == nil && v == state.TakeOver {
		held, v, jerr = a.settle(ctx, held, until)
	}
	switch {
	case jerr != nil:
		return Result{}, jerr
	case v == state.TakeOver:
		f.set(held)
		f.restart = true
		return Result{}, nil
	case v != state.Again:
		return a.answer(ctx, held, v)
	case err != nil:
		return Result{}, &handlerError{err}
	}
	return Result{Response: resp}, nil
}

// cleaned drops what would split the answer, and says so.
func (a *attempt) cleaned(ctx context.Context, resp *Response) {
	if dropped := clean(resp); dropped != nil {
		a.log.WarnContext(ctx, "response header with control characters left out", "record", redact.Record(a.pk), "headers", dropped)
	}
}

// response makes a Response of what a handler or a phase answers.
func (a *attempt) response(v any) (Response, error) {
	resp, ok := v.(Response)
	switch {
	case ok:
	case a.req.Answer == nil:
		return Response{}, fmt.Errorf("%w: a %T is no idem.Response", ErrResult, v)
	default:
		var err error
		if resp, err = a.req.Answer(v); err != nil {
			return Response{}, fmt.Errorf("%w: %w", ErrResult, err)
		}
	}
	return resp, checkStatus(&resp)
}

// handle calls fn, and releases the lease if fn doesn't come back: a panic (or
// runtime.Goexit) is not recovered, so that its owner sees it.
func (a *attempt) handle(ctx context.Context, f *flow, resumed bool, fn func(context.Context) (Response, error)) (Response, error) {
	outer, _ := FromContext(ctx)
	op := &Op{store: a.store, pk: a.pk, flow: f, resumed: resumed, outer: outer}
	defer op.over.Store(true)
	ctx = context.WithValue(ctx, opKey{}, op)
	hctx, stop := ctx, func() {}
	if a.limit == 0 { // else nothing is to be changed for the handler
		lctx, lost := context.WithCancelCause(ctx)
		defer lost(nil)
		var cancel context.CancelFunc
		hctx, cancel = context.WithDeadline(lctx, a.unbegun())
		defer cancel()
		stop = f.keep(ctx, lost)
	}
	back := false
	defer func() {
		stop()
		f.close()
		if rec := f.record(); !back && rec != nil && (f.ended() == nil || f.restart) {
			_, _, _ = a.release(ctx, rec, f.giveBack(), errPanic) // it logs its own failure
		}
	}()
	resp, err := fn(hctx)
	back = true
	return resp, err
}

var errPanic = errors.New("handler panicked")

func (a *attempt) fail(op string, err error) *Error {
	return &Error{Op: op, Record: redact.Record(a.pk), Err: err}
}

func (a *attempt) event(rec *store.Record, err error) Event {
	ev := Event{Record: redact.Record(a.pk), Route: a.req.Route, Err: err}
	if rec == nil || rec.State == store.None {
		return ev
	}
	ev.ID, ev.Created, ev.Expires = rec.ID, rec.Created, state.Lifetime(rec)
	if rec.Response != nil {
		ev.Status = rec.Response.Status
	}
	if rec.State == store.Open && !rec.Lease.IsZero() {
		ev.Lease = rec.Lease.Sub(a.opt.Now())
	}
	return ev
}
