package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// core is what all attempts of an engine share. It holds no state of a request.
type core struct {
	names     naming
	store     store.Store
	opt       Options
	retention time.Duration // of its records, in whole seconds
	spare     time.Duration // the part of a lease's margin for renewing the lease: in the other part, a timeout may kill late
	log       *slog.Logger
	scheme    string          // of Options.Fingerprint
	methods   map[string]bool // on which the engine acts
	headers   map[string]bool // response headers to store
	hooks     map[happening]eventHook
	noLimit   sync.Once // guards a warning
}

// refuses tells that r is refused before an attempt.
func (e *core) refuses(ctx context.Context, r *Request, err error) {
	e.attemptAt(r).refused(ctx, err)
}

// refusesNobody logs why a request without a caller is refused, and returns the error for
// it. Other errors stay as they are.
func (e *core) refusesNobody(ctx context.Context, r *Request, err error) error {
	if errors.Is(err, errNobody) {
		why := nobody(r)
		e.log.ErrorContext(ctx, "a keyed request has no caller: it is refused", "route", r.Route, "why", why)
		err = fmt.Errorf("%w: %s", ErrScope, why)
	}
	return &Error{Op: "scope", Err: err}
}

// pass runs fn without the engine.
func (e *core) pass(ctx context.Context, r *Request, fn func(context.Context) (Response, error)) (Result, error) {
	inner := ctx
	if r.hasSender() {
		inner = WithSender(ctx, r)
	}
	resp, err := fn(inner)
	if answer, ok := errors.AsType[*answered](err); ok && !nested(ctx) {
		resp, err = r.response(answer.v)
	}
	if err != nil {
		return Result{Passed: true}, &handlerError{err}
	}
	return Result{Response: resp, Passed: true}, nil
}

// cleaned drops headers that would split the answer to the request of the record pk, and
// logs a warning.
func (e *core) cleaned(ctx context.Context, pk string, resp *Response) {
	if dropped := clean(resp); dropped != nil {
		e.log.WarnContext(ctx, "response header with control characters left out", "record", redact.Record(pk), "headers", dropped)
	}
}
