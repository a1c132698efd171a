package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/retrysign"
)

// Handler receives the webhooks of one endpoint. Make a Handler with [New]. A
// Handler is an [http.Handler]; on Lambda use lambda.Webhook. A Handler is safe
// for concurrent use.
type Handler struct {
	engine   *idem.Engine
	verifier Verifier
	fn       func(context.Context, Event) error

	endpoint string
	maxBody  int64
	log      *slog.Logger
	refused  func(context.Context, idem.Event)
}

// New returns a handler that calls fn for each event that v accepts, until a call has
// succeeded.
//
// The parameter endpoint is the receiver's name, which becomes a part of each record. An
// event that is sent to two endpoints is handled twice. After a change of the name, all
// earlier events count as new. Use a different name for each account at a provider and for
// each URL.
//
// If fn returns nil, and neither a phase nor the store has failed, the event is
// recorded as handled, and later deliveries are answered 200 without calling fn. fn
// should also return nil for an irrelevant event. If fn returns an error, such as the
// error of a phase, the answer is 500, and the provider tries again. The answer is 409
// if the operation is stuck, and 503 if a look-up ([idem.LookUp]) has decided nothing.
// But after the commit of [idem.Finish] the event is handled, whatever fn returns. The
// next try runs fn anew, and skips phases that have committed. If another delivery has
// taken the event over, the answer depends on that delivery: 200, 409 or 503. A panic
// has the same effect as an error and is logged with its stack; in a Lambda function
// the process then ends.
//
// If fn returns an error that [idem.Respond] made, the event is recorded as handled,
// even if a phase has failed. But the event isn't recorded if fn has left out a phase
// or a call of an earlier attempt. The value in the error doesn't matter.
//
// optFns set the engine's options; two defaults differ from those of package idem. The
// default of Retention is 31 days, since a user of Stripe can resend an event for up to
// 30 days. New logs a warning if Retention is below 80 hours, since providers repeat a
// delivery for up to 80 hours. MaxRequest limits the body of each delivery, whatever
// the transport; its default is 1 MiB. Options about the Idempotency-Key, scope,
// fingerprint and answers have no effect: the key is the event's id, and
// docs/use/webhooks.md lists the answers. Of a preset, such as [idem.Stripe], only
// Retention has an effect. Resumable has none, since the provider's retries finish
// unfinished events. ModeObserve acts as ModeEnforce, and InFlightAccept as
// InFlightRefuse. Refused deliveries are logged with Logger, and reported to
// Hooks.Refused. The Route of the reported idem.Event is the endpoint's name.
//
// New panics if v or fn is nil, if store is nil (except in [idem.ModeOff]), if endpoint
// is empty, or if an option that has an effect is invalid.
func New(store store.Store, endpoint string, v Verifier, fn func(context.Context, Event) error, optFns ...func(*idem.Options)) *Handler {
	if endpoint == "" || v == nil || fn == nil {
		panic("webhook: New: endpoint, verifier and handler are required") //nolint:forbidigo // a mistake in the program
	}
	var opt idem.Options
	for _, set := range optFns {
		set(&opt)
	}
	opt.Retention = cmp.Or(opt.Retention, 31*24*time.Hour)
	opt.MaxRequest = cmp.Or(opt.MaxRequest, 1<<20)
	if opt.Mode == idem.ModeObserve {
		opt.Mode = idem.ModeEnforce // ModeObserve would run the handler again for each repeated delivery
	}
	if opt.InFlight == idem.InFlightAccept {
		opt.InFlight = idem.InFlightRefuse // a 202 would end the retries of an event that can still fail
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	engine := idem.New(store, func(o *idem.Options) {
		// Options that aren't copied here have no effect, and nor have the rules of a preset.
		o.Mode, o.Namespace, o.Function, o.Retention, o.Lease, o.LeaseMargin = opt.Mode, opt.Namespace, opt.Function, opt.Retention, opt.Lease, opt.LeaseMargin
		o.InFlight, o.Quota, o.MaxRequest, o.CallsOut, o.MaxTries = opt.InFlight, opt.Quota, opt.MaxRequest, opt.CallsOut, opt.MaxTries
		o.Logger, o.Hooks, o.Tracer, o.Now = opt.Logger, opt.Hooks, opt.Tracer, opt.Now
		// Providers identify an event by its id. The bodies of an event's deliveries may
		// differ (Stripe's bodies count the outstanding deliveries). If a retry were refused
		// because of a difference, the event would be lost, so the fingerprint is the same
		// for all bodies.
		o.Fingerprint = idem.Fingerprint{FuncName: "event", Func: func(*idem.Request) ([]byte, error) { return nil, nil }}
		o.Stored = func(idem.Response) bool { return true }
	})
	engine.AddSource(endpoint, 80*time.Hour) // providers repeat a delivery for this long by themselves
	return &Handler{
		engine: engine, verifier: v, fn: fn,
		endpoint: endpoint, maxBody: int64(opt.MaxRequest), log: opt.Logger, refused: opt.Hooks.Refused,
	}
}

var errMethod = errors.New("webhooks are sent by POST")

// errNotRecorded is the error for a handler that ran, although the store or a phase of the
// handler had failed, or another delivery has taken over. Staged jobs and writes of the
// handler may be lost, so the provider must retry.
var errNotRecorded = errors.New("the handler ran, but this delivery didn't record the event")

// Serve answers one delivery, whatever its transport. The request r must have the method,
// headers and body as they were sent. Serve ignores the identity, key and scope of r.
//
// A 2xx means that the event is recorded as handled; after any other status the
// provider should send the event again. In [idem.ModeOff], and in [idem.ModeOpen] while
// the store can't be reached, the event is handled but not recorded.
// [idem.ReplayedHeader] marks the answer to a duplicate. The same event for two tenants
// is two events. A panic other than http.ErrAbortHandler is answered with 500 and
// returned in Result.Panic.
func (h *Handler) Serve(ctx context.Context, r idem.Request) (res idem.Result) {
	var ev Event
	var err error
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v) //nolint:forbidigo // http.ErrAbortHandler makes net/http cut the connection
		default:
			h.log.ErrorContext(ctx, "webhook handler "+redact.Panic(v), "endpoint", h.endpoint, "event", ev.ID, "stack", string(debug.Stack()))
			res = idem.Result{Response: answer(errPanic), Panic: v}
		}
	}()
	if ev, err = h.verify(&r); err != nil {
		res.Response = h.Refuse(ctx, r, err)
		return res
	}
	replayed, err := h.handle(ctx, &r, ev)
	if err != nil {
		// The id may be logged: it comes from the provider and isn't a secret. It
		// identifies the delivery in the provider's log.
		h.log.ErrorContext(ctx, "webhook not handled", "endpoint", h.endpoint, "event", ev.ID, "error", redact.Error(err))
		res.Response = answer(err)
		return res
	}
	res.Response = handled(replayed)
	return res
}

var errPanic = errors.New("panic")

// Refuse returns the answer to a delivery that could not be read or must be refused because
// of err. If there is no specific answer for err, Refuse answers as for [ErrMalformed].
// Refuse is for adapters.
func (h *Handler) Refuse(ctx context.Context, r idem.Request, err error) idem.Response {
	if answerOf(err).code == failed.code {
		err = fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	h.log.WarnContext(ctx, "webhook refused", "endpoint", h.endpoint, "method", r.Method, "error", err)
	if h.refused != nil {
		h.refused(ctx, idem.Event{Route: h.endpoint, Err: err})
	}
	return answer(err)
}

func (h *Handler) verify(r *idem.Request) (Event, error) {
	switch {
	case r.Method != http.MethodPost:
		return Event{}, errMethod
	case int64(len(r.Body)) > h.maxBody:
		return Event{}, tooLarge(h.maxBody)
	}
	ev, err := h.verifier.Verify(r.Header, r.Body)
	if err == nil {
		err = checkID(ev.ID) // a Verifier of another package may return any id
	}
	return ev, err
}

func tooLarge(limit int64) error { return fmt.Errorf("%w: at most %d bytes", idem.ErrTooLarge, limit) }

// Handler.handle runs the handler, unless the event is already handled.
func (h *Handler) handle(ctx context.Context, r *idem.Request, ev Event) (replayed bool, err error) {
	op := idem.Request{
		Key: ev.ID, Source: "webhook:" + h.endpoint, Route: h.endpoint, Method: r.Method, Path: r.Path, Tenant: r.Tenant, ReadFirst: retrysign.In(r.Header),
		Answer: func(any) (idem.Response, error) { return idem.Response{}, nil },
	}
	ran := false
	res, err := h.engine.Do(ctx, op, func(ctx context.Context) (idem.Response, error) {
		err := h.fn(ctx, ev)
		if ran = true; err != nil {
			return idem.Response{}, &handlerError{err}
		}
		return idem.Response{}, nil
	})
	own, ofHandler := errors.AsType[*handlerError](err)
	switch {
	case ofHandler:
		return false, own
	case ran && err != nil && !errors.Is(err, idem.ErrStuck) && !errors.Is(err, idem.ErrInFlight) && !errors.Is(err, idem.ErrUnfinished): // err may be the error of a phase, and match anything
		return false, fmt.Errorf("%w: %w", errNotRecorded, err)
	case done(err):
		return true, nil // the event was handled, and its answer is not needed
	case err != nil:
		return false, err
	case !res.Replayed && !res.Passed && res.Expires.IsZero():
		return false, errNotRecorded
	}
	return res.Replayed, nil
}

// done reports whether err says that an operation has finished, but has no stored
// answer. If the event's handler didn't run, this operation is the event's own.
func done(err error) bool {
	return errors.Is(err, idem.ErrNotKept)
}

// handlerError marks an error that the handler returned. Without the mark, an error of
// package idem that the handler returns would look like an error of the engine.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return e.err.Error() }
func (e *handlerError) Unwrap() error { return e.err }
