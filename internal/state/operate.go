package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Reasons to refuse an operator's command. Forgotten doesn't return ErrLives, ErrJobs
// or ErrWork if the operator has accepted the loss that the error names ([Loss]).
var (
	ErrLives   = errors.New("an attempt holds the record, and may be at work")
	ErrJobs    = errors.New("the record has undelivered jobs")
	ErrWork    = errors.New("the operation has finished, has committed work, or may have made calls: a request with the key would do all of it again, under other derived keys")
	ErrNoLease = errors.New("no attempt holds the record")
	ErrOpen    = errors.New("the operation is not finished")
	ErrErased  = errors.New("the record is already erased")
)

// LeaseEnded returns rec after an operator has ended the lease of an attempt that won't come back.
// The attempt's calls are in doubt, as after a take-over. The record gets a new owner, so the
// attempt's late writes fail.
func LeaseEnded(rec *store.Record, now time.Time, by string) (*store.Record, error) {
	if rec.State != store.Open || rec.Lease.IsZero() || Over(rec.Expires, now) {
		return nil, ErrNoLease
	}
	r := *rec
	r.Lease, r.Run, r.LastErr = time.Time{}, Millis(now), "an operator ended its lease"
	end := rec.Lease // the attempt may send calls until its lease ends
	if WrongClock(end, now) {
		end = now.Add(maxHold)
	}
	vanished(&r, rec, later(end, now))
	r.Settled = Decided(rec, now, by, "end the lease", "released")
	WaitFrom(&r, now)
	return &r, nil
}

// Loss says which losses an operator accepts by forgetting an operation.
type Loss struct {
	Held bool // an attempt that may be at work
	Work bool // a finished operation, committed phases, and calls that may have been made
	Jobs bool // undelivered jobs
}

// Forgotten returns rec with its key free, as if an attempt had freed the key. The jobs
// are removed, because the worker would still deliver them. Until TTL removes the
// record, the record says who forgot the operation. The record of the next operation
// under the key says so too.
func Forgotten(rec *store.Record, now time.Time, by string, accepted Loss) (*store.Record, error) {
	unfinished := rec.State != store.Done
	switch {
	case Free(rec, now):
		return nil, errors.New("the key is already free")
	case unfinished && rec.Lease.After(now) && !accepted.Held:
		return nil, ErrLives
	case len(rec.Jobs) > 0 && !accepted.Jobs:
		return nil, ErrJobs
	case !accepted.Work && (!unfinished || len(rec.Phases) > 0 || MayHaveCalled(rec) || !rec.Lease.IsZero()):
		return nil, ErrWork
	}
	r := *rec
	r.Lease, r.Run, r.Until, r.Jobs = time.Time{}, Millis(now), time.Time{}, nil
	frees(&r, now)
	if unfinished {
		r.State = store.Open
	}
	what := forgets(rec)
	if len(rec.Jobs) > 0 {
		what += ", with its jobs " + strings.Join(slices.Sorted(maps.Keys(rec.Jobs)), " ")
	}
	r.Settled = Decided(rec, now, by, what, "free")
	WaitFrom(&r, now)
	return &r, nil
}

func forgets(rec *store.Record) string { return "forget " + rec.ID }

// ForgottenBy returns the decision by which a person forgot the operation of a record; nil if
// there is none.
func ForgottenBy(rec *store.Record) *store.Decision {
	n := len(rec.Settled)
	if n == 0 || !Freed(rec) || !strings.HasPrefix(rec.Settled[n-1].What, forgets(rec)) {
		return nil
	}
	return &rec.Settled[n-1]
}

// Erased returns rec without caller, answer, stored request, phase results and error
// texts. rec must be finished, or its key free. A record whose key is free has data
// until TTL deletes the record. A finished record keeps fingerprint and status, so that
// the key stays taken.
func Erased(rec *store.Record, now time.Time, by string) (*store.Record, error) {
	done := rec.State == store.Done
	switch {
	case !done && !Free(rec, now):
		return nil, ErrOpen
	case len(rec.Jobs) > 0:
		return nil, ErrJobs
	case rec.Scope == "" && (!done || !answerKept(rec)):
		return nil, ErrErased
	}
	r := *rec
	r.Scope, r.LastErr = "", ""
	if done {
		r.Response, r.Overflow = &store.Response{Status: rec.Response.Status}, &store.Overflow{}
	} else {
		r.Input, r.Lease = nil, time.Time{}
		r.Phases = slices.Clone(rec.Phases)
		for i, p := range r.Phases {
			r.Phases[i] = store.Phase{Name: p.Name, At: p.At}
		}
	}
	r.Handovers = slices.Clone(rec.Handovers)
	for i := range r.Handovers {
		r.Handovers[i].Err = ""
	}
	r.Settled = Decided(rec, now, by, "erase", Word(rec, now))
	return &r, nil
}

// answerKept reports whether the body of a finished record's answer is kept.
func answerKept(rec *store.Record) bool {
	return rec.Overflow == nil || rec.Overflow.Count > 0
}

// AnswerGoes reports whether a commit removes a finished record's answer and leaves
// only the status. If the body was gone before the commit, the answer counts as removed
// when the commit removes the caller.
func AnswerGoes(prev, next *store.Record) bool {
	return prev.Response != nil && next.Response != nil && !answerKept(next) && (answerKept(prev) || prev.Scope != next.Scope)
}

// Lost describes what is lost if rec is forgotten.
func Lost(rec *store.Record, now time.Time) (all []string) {
	if rec.State != store.Done && rec.Lease.After(now) {
		all = append(all, "the attempt that holds the record, and may be at work (--lose-attempt)")
	}
	names := make([]string, 0, len(rec.Phases))
	for _, p := range rec.Phases {
		names = append(names, p.Name)
	}
	if rec.State != store.Done && (len(names) > 0 || MayHaveCalled(rec) || !rec.Lease.IsZero()) {
		all = append(all, fmt.Sprintf("the work: phases %q, and calls that may have been made. A request with the key does them AGAIN, under other derived keys (--lose-work)", names))
	}
	if rec.Response != nil {
		status := ""
		if rec.Response.Status != 0 { // a sealed response has status 0
			status = fmt.Sprintf(" %d", rec.Response.Status)
		}
		all = append(all, fmt.Sprintf("the answer%s: a retry runs the request AGAIN, under other derived keys (--lose-work)", status))
	}
	if len(rec.Jobs) > 0 {
		kinds, out := make([]string, 0, len(rec.Jobs)), 0
		for _, j := range rec.Jobs {
			kinds = append(kinds, j.Kind)
			if j.Failed == "" && (j.At.IsZero() || !j.Begun.IsZero()) { // a drain delivers a job with a time only after it has set Begun
				out++
			}
		}
		slices.Sort(kinds)
		text := fmt.Sprintf("%d undelivered jobs, of the kinds %q (--lose-jobs)", len(rec.Jobs), slices.Compact(kinds))
		if out > 0 {
			text += fmt.Sprintf("; a drain may have delivered %d of them, or may still deliver them", out)
		}
		all = append(all, text)
	}
	return all
}
