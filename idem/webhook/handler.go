package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
)

const (
	// DefaultRetention is for how long an event that was handled is known. It
	// outlasts what providers do by themselves, and what their users may ask of
	// them: Stripe lets events be sent again for 30 days.
	DefaultRetention = 31 * 24 * time.Hour

	// DefaultRetryWindow is for how long providers repeat a delivery by themselves:
	// three days and a few hours. A shorter Retention is refused, unless
	// RetryWindow says that this provider gives up earlier.
	DefaultRetryWindow = 80 * time.Hour

	// DefaultMaxBody is the largest body that is taken, in bytes. Events have
	// rarely more than a few thousand.
	DefaultMaxBody = 1 << 20
)

// Handler receives the webhooks of one endpoint. It is an [http.Handler]; for
// Lambda there is lambda.Webhook. Make one with [New]. It is safe for concurrent
// use.
type Handler struct {
	engine   *idem.Engine
	verifier Verifier
	fn       func(context.Context, Event) error

	endpoint string
	maxBody  int64
	log      *slog.Logger
	refused  func(context.Context, idem.Event)
}

// New returns a handler that calls fn once for each event that v lets through.
//
// endpoint names who is told what: the same event sent to two endpoints is
// handled twice. It is stored with each record, and a change makes all earlier
// events new. Give each account at a provider, and each URL, its own.
//
// When fn returns nil, the event is recorded as handled, and every later
// delivery is answered 200 without fn. An error frees the event, or keeps what
// phases have committed, for the provider's next try, and is answered 500; a
// panic does the same, and is logged with its stack; in a Lambda function the
// process then ends. [idem.Respond], with anything, says that the event is handled
// whatever became of a phase. What fn passes on of its phases'
// errors is an error like any other. Events that are none of fn's business are
// handled by returning nil.
//
// The options are an engine's, with defaults of their own for Retention
// (DefaultRetention), RetryWindow (DefaultRetryWindow) and MaxRequest
// (DefaultMaxBody), which holds for every source here. What concerns the
// Idempotency-Key, scope, fingerprint and answers has no meaning: the key is the
// event's id, and the answers are in docs/webhooks.md. Resumable has none either:
// the provider's retries complete what was begun. Logger and Hooks.Refused are
// told of refused deliveries too, the latter with the endpoint as Route.
//
// New panics if store, v or fn is nil, if endpoint is empty, or if an option
// can't work: mistakes in the program, best found at cold start.
func New(store store.Store, endpoint string, v Verifier, fn func(context.Context, Event) error, optFns ...func(*idem.Options)) *Handler {
	if endpoint == "" || v == nil || fn == nil {
		panic("webhook: New: endpoint, verifier and handler are required") //nolint:forbidigo // a mistake in the program
	}
	opt := idem.Options{Retention: DefaultRetention, RetryWindow: DefaultRetryWindow, MaxRequest: DefaultMaxBody}
	for _, set := range optFns {
		set(&opt)
	}
	// The provider's word for sameness is the id. Bodies of one event may differ
	// (Stripe's count the deliveries that are outstanding), and a difference that
	// refused a retry would lose the event.
	opt.Fingerprint = idem.Fingerprint{SkipMethod: true, SkipPath: true, SkipQuery: true, SkipBody: true}
	opt.Stored = func(int) bool { return true }
	opt.Key, opt.KeyFrom = idem.KeyRequired, nil
	opt.ScopeRoute, opt.Resumable, opt.StatusURL = false, false, ""
	if opt.InFlight == idem.InFlightAccept {
		opt.InFlight = idem.InFlightRefuse // 202 would end the retries of an event that can still fail
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	return &Handler{
		engine: idem.New(store, func(o *idem.Options) { *o = opt }), verifier: v, fn: fn,
		endpoint: endpoint, maxBody: opt.MaxRequest, log: opt.Logger, refused: opt.Hooks.Refused,
	}
}

// errMethod is a request that is no delivery.
var errMethod = errors.New("webhooks are sent by POST")

// errNotRecorded is a handler that returned nil where the store had failed, or
// one of its phases. What was staged may be lost, so the provider is to try again.
var errNotRecorded = errors.New("the handler succeeded, but the event is not on record")

// Serve answers one delivery, in a form that no transport shows through. r must
// have the method, the headers and the body as it was sent; who is calling, a key
// and a scope are not looked at.
//
// A 2xx says that the event is on record, and any other status that the provider
// should send it again. [idem.ReplayedHeader] marks the answer to a duplicate. A
// panic, but for http.ErrAbortHandler, is answered with 500, and told as
// Result.Panic.
func (h *Handler) Serve(ctx context.Context, r idem.Request) (res idem.Result) {
	var ev Event
	var err error
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v) //nolint:forbidigo // it asks net/http to cut the connection
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
		// The id is the provider's, not a client's secret: with it the delivery is
		// found in the provider's log.
		h.log.ErrorContext(ctx, "webhook not handled", "endpoint", h.endpoint, "event", ev.ID, "error", err)
		res.Response = answer(err)
		return res
	}
	res.Response = handled(replayed)
	return res
}

// errPanic is a handler, or a verifier, that panicked.
var errPanic = errors.New("panic")

// Refuse answers a delivery that could not be read, or is not to be: err is
// wrapped by [ErrMalformed] unless it is one that has an answer of its own. It
// is for adapters.
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

// verify makes an event of r.
func (h *Handler) verify(r *idem.Request) (Event, error) {
	switch {
	case r.Method != http.MethodPost:
		return Event{}, errMethod
	case int64(len(r.Body)) > h.maxBody:
		return Event{}, tooLarge(h.maxBody)
	}
	ev, err := h.verifier.Verify(r.Header, r.Body)
	if err == nil {
		err = checkID(ev.ID) // a Verifier may be anybody's
	}
	return ev, err
}

func tooLarge(limit int64) error { return fmt.Errorf("%w: at most %d bytes", idem.ErrTooLarge, limit) }

// handle runs the handler, or finds that the event is handled.
func (h *Handler) handle(ctx context.Context, r *idem.Request, ev Event) (replayed bool, err error) {
	op := idem.Request{
		Key: ev.ID, Scope: "webhook:" + h.endpoint, Route: h.endpoint, Method: r.Method, Path: r.Path,
		Answer: func(any) (idem.Response, error) { return idem.Response{}, nil },
	}
	succeeded := false
	res, err := h.engine.Do(ctx, op, func(ctx context.Context) (idem.Response, error) {
		err := h.fn(ctx, ev)
		if succeeded = err == nil; !succeeded {
			return idem.Response{}, &handlerError{err}
		}
		return idem.Response{}, nil
	})
	own, ofHandler := errors.AsType[*handlerError](err)
	switch {
	case ofHandler:
		return false, own
	case err != nil && succeeded && answerOf(err).code == failed.code: // one of its phases had failed
		return false, fmt.Errorf("%w: %w", errNotRecorded, err)
	case errors.Is(err, idem.ErrExpired), errors.Is(err, idem.ErrNotKept):
		return true, nil // it was handled, and nobody asks for the answer
	case err != nil:
		return false, err
	case !res.Replayed && !res.Passed && res.Expires.IsZero():
		return false, errNotRecorded
	}
	return res.Replayed, nil
}

// handlerError tells the handler's own error, which may well be one of package
// idem's, from the engine's.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return e.err.Error() }
func (e *handlerError) Unwrap() error { return e.err }
