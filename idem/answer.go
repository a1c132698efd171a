package idem

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// An answers value turns a record into the answer to a request. The record was stored by
// another attempt or by this one.
type answers struct {
	core  *core
	ask   *ask
	times *times
	watch *watch
	owner string
}

// The parameter owner is the nonce that each write of this attempt puts into the record.
func (a *attempt) answers(owner string) answers {
	return answers{a.core, &a.ask, &a.times, &a.watch, owner}
}

func (r *run) answers() answers { return answers{r.ask.core, r.ask, r.times, r.watch, r.writer.owner} }

// answers.answer turns the verdict v about the record found into an answer. found is
// nil if the store returned no record.
func (a answers) answer(ctx context.Context, found *store.Record, v state.Verdict) (Result, error) {
	a.watch.met(found)
	pk := a.ask.home.pk
	if found != nil {
		pk = found.PK
	}
	refuse := func(name happening, err *Error) (Result, error) {
		if found != nil {
			err.Expires = state.Lifetime(found)
		}
		a.watch.tell(ctx, name, found, err)
		return Result{}, err
	}
	switch v {
	case state.Replay:
		if err := a.body(ctx, found); err != nil {
			return refuse(evFailed, err)
		}
		resp := *found.Response
		replayable(&resp)
		if a.ask.served {
			if err := checkEncoding(a.ask.req, &resp); err != nil {
				return refuse(evRefused, recordError("replay", pk, err))
			}
		}
		a.watch.tell(ctx, evReplayed, found, nil)
		return Result{Response: resp, Replayed: true, Expires: state.Lifetime(found)}, nil
	case state.Mismatch:
		return refuse(evMismatch, recordError("claim", pk, ErrMismatch))
	case state.Stuck:
		return refuse(evRefused, recordError("claim", pk, ErrStuck))
	case state.TooSoon:
		why := errors.New(found.LastErr)
		if short := a.times.short(); short != nil {
			why = short
		}
		res, err := a.unfinished(found, why)
		a.watch.tell(ctx, evRefused, found, err)
		return res, err
	case state.InFlight:
		if a.ask.served && a.core.opt.InFlight == InFlightAccept && found != nil {
			a.watch.tell(ctx, evInFlight, found, ErrInFlight)
			return a.accepted(found), nil
		}
		fallthrough
	default:
		err := recordError("claim", pk, ErrInFlight)
		err.RetryAfter = a.retryAfter(found)
		return refuse(evInFlight, err)
	}
}

// answers.accepted returns a 202: the operation is in progress.
func (a answers) accepted(rec *store.Record) Result {
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
	if a.core.opt.StatusURL != "" {
		h.Set("Location", a.core.opt.StatusURL+statusSegment(a.ask.req.Key))
	}
	resp := Response{Status: http.StatusAccepted, Header: h, Body: b}
	a.core.opt.CORS.Allow(&resp, a.ask.req.Header)
	return Result{Response: resp, Expires: state.Lifetime(rec)}
}

// answers.unfinished returns the answer to a request if its operation is open and nobody
// works on the operation. The parameter why says why the operation isn't finished.
func (a answers) unfinished(rec *store.Record, why error) (Result, error) {
	if a.ask.served && a.core.opt.InFlight == InFlightAccept && state.Completable(rec) {
		return a.accepted(rec), nil
	}
	err := recordError("finish", rec.PK, fmt.Errorf("%w: %w", ErrUnfinished, why))
	if until := state.Withheld(rec); !until.IsZero() {
		err.RetryAfter = max(until.Sub(a.core.opt.Now()), time.Second)
	}
	return Result{}, err
}

// answers.withhold returns the answer that the client gets in place of the handler's
// answer, since the operation may go on without the client and end with another answer.
// The parameter why says why the handler's answer isn't stored. held is the record
// after its release; it is nil if the outcome of the release is unknown.
func (a answers) withhold(ctx context.Context, rec, held *store.Record, resp Response, why string) (Result, error) {
	a.core.log.WarnContext(ctx, "answer withheld: the operation is not finished; a handler ends an operation with idem.Respond, after the calls that it may have made",
		"record", redact.Record(rec.PK), "operation", rec.ID, "route", rec.Route, "status", resp.Status, "why", why)
	if held != nil {
		rec = held
	}
	return a.unfinished(rec, errors.New(why))
}

// retryAfter returns how long a client should wait: until the lease of the record held
// ends, but at least one second and at most five. Five seconds are enough, because most
// handlers finish before their lease ends.
func (a answers) retryAfter(held *store.Record) time.Duration {
	if held == nil {
		return time.Second
	}
	return min(max(held.Lease.Sub(a.core.opt.Now()), time.Second), defaults.MaxRetryAfter)
}

// answers.body loads the body of a finished record if the body lies outside of the
// record.
func (a answers) body(ctx context.Context, held *store.Record) *Error {
	o := held.Overflow
	if o == nil {
		return nil
	}
	loader, ok := a.core.store.(store.BodyLoader)
	if !ok || o.Count == 0 {
		return recordError("replay", held.PK, ErrNotKept)
	}
	ctx, cancel := a.times.within(ctx, a.times.writeDeadline(nil))
	defer cancel()
	if err := loader.LoadBody(ctx, held); err != nil {
		a.core.log.ErrorContext(ctx, "stored body can't be read", "record", redact.Record(held.PK), "error", err)
		if !errors.Is(err, ErrNotKept) {
			err = errors.Join(ErrUnavailable, err)
		}
		return recordError("replay", held.PK, err)
	}
	return nil
}

// answers.overtaken returns the answer of an attempt that has lost the lease of the record
// pk. held is the current record. An attempt can't write without the lease, so its
// handler's answer isn't stored and is dropped.
func (a answers) overtaken(ctx context.Context, pk string, held *store.Record) (Result, error) {
	a.core.log.WarnContext(ctx, "lease lost: another attempt has taken over", "record", redact.Record(pk))
	a.watch.tell(ctx, evLeaseLost, held, ErrLeaseLost)
	if v, _ := a.ask.judge(held, a.owner); v == state.Replay || v == state.InFlight {
		res, err := a.answer(ctx, held, v)
		if err == nil {
			return res, nil
		}
		return Result{}, errors.Join(err, ErrLeaseLost)
	}
	return Result{}, recordError("finish", pk, ErrLeaseLost)
}

// answers.finished returns the answer of an operation that has just ended. The
// parameter made is the record that this attempt tried to store, and rec is the record
// that is now in the store. If rec and made contain the same answer, finished returns
// resp; otherwise, the answer in rec.
func (a answers) finished(ctx context.Context, rec, made *store.Record, resp Response, jobs int) (Result, error) {
	a.watch.tell(ctx, evFinished, rec, nil, func(ev *Event) { ev.Jobs = jobs })
	if rec == made || samePayload(rec, made) {
		return Result{Response: resp, Expires: state.Lifetime(rec)}, nil
	}
	if err := a.body(ctx, rec); err != nil { // an earlier write of this attempt has stored another answer, although the write was reported as failed
		return Result{}, err
	}
	return Result{Response: rec.Response.Clone(), Expires: state.Lifetime(rec)}, nil
}

// samePayload reports whether the records rec and made contain the same answer. It
// compares bodies by hash, since they may lie outside of the records.
func samePayload(rec, made *store.Record) bool {
	return rec.Response != nil && rec.Response.Status == made.Response.Status && bodyHash(rec) == bodyHash(made) &&
		maps.EqualFunc(rec.Response.Header, made.Response.Header, slices.Equal)
}

// bodyHash returns the hash of a finished record's body, which may lie outside of the
// record.
func bodyHash(r *store.Record) [sha256.Size]byte {
	if r.Overflow != nil {
		return r.Overflow.SHA256
	}
	return sha256.Sum256(r.Response.Body)
}
