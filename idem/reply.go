package idem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// The answer to a request: from a record in the way, or from the record that its
// own attempt has stored.

// reply answers a request from a record.
type reply struct{ *attempt }

// answer returns the answer or error for the record in the way.
func (a reply) answer(ctx context.Context, held *store.Record, v state.Verdict) (Result, error) {
	a.met(held)
	refuse := func(name happening, err *Error) (Result, error) {
		if held != nil {
			err.Expires = state.Lifetime(held)
		}
		a.tell(ctx, name, held, err)
		return Result{}, err
	}
	switch v {
	case state.Replay:
		if err := a.body(ctx, held); err != nil {
			return refuse(evFailed, err)
		}
		resp := *held.Response
		replayable(&resp)
		a.tell(ctx, evReplayed, held, nil)
		return Result{Response: resp, Replayed: true, Expires: state.Lifetime(held)}, nil
	case state.Mismatch:
		return refuse(evMismatch, a.fail("claim", ErrMismatch))
	case state.Expired:
		return refuse(evRefused, a.fail("claim", ErrExpired))
	case state.Stuck:
		return refuse(evRefused, a.fail("claim", ErrStuck))
	case state.TooSoon:
		why := errors.New(held.LastErr)
		if short := a.short(); short != nil {
			why = short
		}
		res, err := a.unfinished(held, why)
		a.tell(ctx, evRefused, held, err)
		return res, err
	case state.InFlight:
		if a.accepts && a.opt.InFlight == InFlightAccept && held != nil {
			a.tell(ctx, evInFlight, held, ErrInFlight)
			return a.accepted(held), nil
		}
		fallthrough
	default:
		err := a.fail("claim", ErrInFlight)
		err.RetryAfter = a.retryAfter(held)
		return refuse(evInFlight, err)
	}
}

// accepted answers 202: the operation is in progress.
func (a reply) accepted(rec *store.Record) Result {
	body := struct {
		Status        string `json:"status"`
		RecoveryPoint string `json:"recovery_point,omitempty"`
	}{Status: "in_flight"}
	if n := len(rec.Phases); n > 0 {
		body.RecoveryPoint = rec.Phases[n-1].Name
	}
	b, _ := json.Marshal(body) // strings only
	h := http.Header{
		"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "Retry-After": {wholeSeconds(a.retryAfter(rec))},
	}
	if a.opt.StatusURL != "" {
		h.Set("Location", a.opt.StatusURL+statusSegment(a.req.Key))
	}
	resp := Response{Status: http.StatusAccepted, Header: h, Body: b}
	a.opt.CORS.Allow(&resp, a.req.Header)
	return Result{Response: resp, Expires: state.Lifetime(rec)}
}

// unfinished answers while nobody works on an operation that goes on.
func (a reply) unfinished(rec *store.Record, why error) (Result, error) {
	if a.accepts && a.opt.InFlight == InFlightAccept && state.Completable(rec) {
		return a.accepted(rec), nil
	}
	err := a.fail("finish", fmt.Errorf("%w: %w", ErrUnfinished, why))
	if until := state.Withheld(rec); !until.IsZero() {
		err.RetryAfter = max(until.Sub(a.opt.Now()), time.Second)
	}
	return Result{}, err
}

// withhold answers in place of an answer that isn't stored, as why says: the operation may
// still act without its client, and come to another answer. held is nil if the outcome of
// the release is unknown.
func (a reply) withhold(ctx context.Context, rec, held *store.Record, resp Response, why string) (Result, error) {
	a.log.WarnContext(ctx, "answer withheld: the operation is not finished; a handler ends an operation with idem.Respond, after the calls that it may have made",
		"record", redact.Record(a.pk), "operation", rec.ID, "route", rec.Route, "status", resp.Status, "why", why)
	if held != nil {
		rec = held
	}
	return a.unfinished(rec, errors.New(why))
}

// retryAfter returns how long to wait for held's holder: until the end of its
// lease, at most MaxRetryAfter, since most handlers finish earlier.
func (a reply) retryAfter(held *store.Record) time.Duration {
	if held == nil {
		return time.Second
	}
	return min(max(held.Lease.Sub(a.opt.Now()), time.Second), a.opt.MaxRetryAfter)
}

// body loads a finished record's body from outside of the record.
func (a reply) body(ctx context.Context, held *store.Record) *Error {
	o := held.Overflow
	if o == nil {
		return nil
	}
	loader, ok := a.store.(store.BodyLoader)
	if !ok || o.Count == 0 {
		return a.fail("replay", ErrNotKept)
	}
	ctx, cancel := a.within(ctx, a.until(nil))
	defer cancel()
	if err := loader.LoadBody(ctx, held); err != nil {
		a.log.ErrorContext(ctx, "stored body can't be read", "record", redact.Record(a.pk), "error", err)
		if !errors.Is(err, ErrNotKept) {
			err = errors.Join(ErrUnavailable, err)
		}
		return a.fail("replay", err)
	}
	return nil
}

// overtaken answers an attempt that lost its lease. The attempt has written
// nothing since, and its own answer is not the key's answer.
func (a reply) overtaken(ctx context.Context, held *store.Record) (Result, error) {
	a.log.WarnContext(ctx, "lease lost: another attempt has taken over", "record", redact.Record(a.pk))
	a.tell(ctx, evLeaseLost, held, ErrLeaseLost)
	if v, _ := a.judge(held); v == state.Replay || v == state.InFlight {
		res, err := a.answer(ctx, held, v)
		if err == nil {
			return res, nil
		}
		return Result{}, errors.Join(err, ErrLeaseLost)
	}
	return Result{}, a.fail("finish", ErrLeaseLost)
}

// finished returns the answer of an operation that was just stored: resp, which
// made contains, or the answer in rec if rec contains another answer.
func (a reply) finished(ctx context.Context, rec, made *store.Record, resp Response, jobs int) (Result, error) {
	a.tell(ctx, evFinished, rec, nil, func(ev *Event) { ev.Jobs = jobs })
	if rec == made || samePayload(rec, made) {
		return Result{Response: resp, Expires: state.Lifetime(rec)}, nil
	}
	if err := a.body(ctx, rec); err != nil { // an earlier run of the phase was stored after all
		return Result{}, err
	}
	return Result{Response: rec.Response.Clone(), Expires: state.Lifetime(rec)}, nil
}

// samePayload reports whether a record read back contains the answer in made.
// Bodies outside of the record are compared by hash.
func samePayload(rec, made *store.Record) bool {
	return rec.Response != nil && rec.Response.Status == made.Response.Status && bodyHash(rec) == bodyHash(made) &&
		maps.EqualFunc(rec.Response.Header, made.Response.Header, slices.Equal)
}
