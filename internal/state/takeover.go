package state

import (
	"net/http"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Room is the part of a record's size that the phases and jobs of an open operation leave
// free, in bytes. Take-overs and releases add to the record: names, reasons, times.
// Without room they would all be refused, and nobody could finish the operation, nor give
// it up.
const Room = 16 << 10

// number is the size of a small number in an item, with its place in a map.
const number = 4

// SizeOf returns the bytes of a record's phases, jobs and calls, and of its request and
// answer without their bodies, if nothing is compressed.
func SizeOf(r *store.Record) (n int) {
	headers := func(h http.Header) {
		for name, values := range h {
			for _, v := range values {
				n += len(name) + len(v)
			}
		}
	}
	for _, p := range r.Phases {
		n += len(p.Name) + len(p.Result) + len(p.Shape)
	}
	for name, j := range r.Jobs {
		n += len(name) + len(j.Kind) + len(j.Args) + len(j.Group) + len(j.Failed) + len(j.Trace.Parent) + len(j.Trace.State)
	}
	for call := range r.Calls {
		n += len(call) + number
	}
	n += len(r.Mark)
	for _, call := range r.Doubts {
		n += len(call) + 1
	}
	for call, hash := range r.Sent {
		n += len(call) + len(hash)
	}
	if r.Asked != nil {
		n += len(r.Asked.Phase) + len(r.Asked.Said)
	}
	if in := r.Input; in != nil {
		n += len(in.Path) + len(in.Query) + len(in.Snapshot)
		headers(in.Header)
	}
	if r.Response != nil {
		headers(r.Response.Header)
	}
	return n
}

// Taken returns held after a take-over. retention is that of the program that takes it.
func Taken(held *store.Record, now, lease time.Time, retention time.Duration) *store.Record {
	r := *held
	r.Retention = retention
	renew(&r, now, lease)
	r.Run = Millis(now)
	vanished(&r, held, held.Lease)
	return &r
}

// TakenByClient returns held after a take-over by a client's retry, with the
// retry's input and handler, whose name may have changed since. The tenant is that of
// the claim: it is part of the key.
func TakenByClient(held *store.Record, now, lease time.Time, retention time.Duration, in *store.Input, by store.HandlerID) *store.Record {
	r := Taken(held, now, lease, retention)
	r.Input, r.Handler = in, by
	h := store.Handover{At: Millis(now), Kind: HandoverRetry}
	if by.Function != held.Handler.Function {
		h.Function = by.Function
	}
	r.Handovers = handed(held, h)
	return r
}

// TakenUp returns held after a take-over by a completer or an operator. The
// take-over itself counts the try, so that a try that dies is counted too.
func TakenUp(held *store.Record, now, lease time.Time, retention time.Duration) *store.Record {
	r := Taken(held, now, lease, retention)
	r.Tries++
	// Not cut to the last: a store's Take adds to the list without reading it, as
	// often as a completer tries.
	r.Handovers = append(slices.Clone(held.Handovers), store.Handover{At: Millis(now), Kind: HandoverCompleter})
	return r
}

// maxHandovers is how many handovers a record keeps after a release.
const maxHandovers = 10

// handed returns the last handovers of held, and h.
func handed(held *store.Record, h store.Handover) []store.Handover {
	all := append(slices.Clone(held.Handovers), h)
	return all[max(0, len(all)-maxHandovers):]
}

// Refusal is why a ticket's bearer must not take a record over.
type Refusal int

// The refusals.
const (
	Good         Refusal = iota // the take-over is allowed
	Moved                       // the record has been written since the ticket was made
	Held                        // the lease has not ended
	OtherHandler                // the record belongs to another handler
	OtherTenant                 // the operation was invoked for another tenant
	NoRequest                   // the request isn't stored
)

// Fits decides whether a ticket with owner and ver fits the current record rec:
// Good, Moved or Held.
func Fits(rec *store.Record, owner string, ver int64, now time.Time) Refusal {
	switch {
	case rec == nil || rec.Owner != owner || rec.Ver != ver || rec.State != store.Open || Free(rec, now):
		return Moved
	case rec.Lease.After(now):
		return Held
	}
	return Good
}

// MayTake decides about the take-over t of rec. Owner and version are checked
// first: other facts about a record are only for bearers who know both.
func MayTake(rec *store.Record, t store.Take) Refusal {
	why := Fits(rec, t.Owner, t.Ver, t.Now)
	switch {
	case why != Good:
		return why
	case !slices.Contains(t.Handlers, rec.Handler):
		return OtherHandler
	case rec.Tenant != t.Tenant:
		return OtherTenant
	case rec.Input == nil || !rec.Expires.IsZero():
		return NoRequest
	}
	return Good
}

// WithFrom returns t with From set.
func WithFrom(t store.Take) store.Take {
	t.From = func(rec *store.Record) *store.Record {
		if MayTake(rec, t) != Good {
			return nil
		}
		r := TakenUp(rec, t.Now, t.Lease, t.Retention)
		Stamp(r, rec, t.NewOwner)
		return r
	}
	return t
}

// Abandoned reports whether rec is open and no attempt holds it.
func Abandoned(rec *store.Record, now time.Time) bool {
	return rec.State == store.Open && !rec.Lease.After(now) && !Free(rec, now)
}

// LeftUntil returns until when an operation without its request is left to its client,
// whose retry brings the request again: for one retention after the last attempt.
func LeftUntil(r *store.Record) time.Time { return r.Run.Add(r.Retention) }
