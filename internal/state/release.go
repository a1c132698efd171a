package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// Release describes an attempt that ended without an answer to store.
type Release struct {
	Calls   []string          // calls that the attempt may have made; Released skips those that a phase has recorded
	Sent    map[string]string // for each of Calls, the hash of the data sent, if known
	Refused bool              // the handler refused the request with a 4xx, or the tries are used up, so no completer needs to run the request
	Answers bool              // the handler gave an answer that isn't stored; if the record is kept, the answer is withheld
	Counted bool              // the take-over that began the attempt has already added one to the record's Tries
	Refusal error             // why the program refuses to continue with the record; nil if the program doesn't refuse
	Why     string            // why the attempt ended, for people (LastErr); "" leaves LastErr as it is
	Look    *LookedUp         // a look-up that has decided nothing; nil if there was none
}

// Released returns a copy of held that has no lease. If nothing was done and no
// completer needs to run the request, the copy is the record of a freed key. Otherwise
// the copy is ready for the next attempt. Run becomes now, because the time for which
// the operation is left to its client begins at Run.
func Released(held *store.Record, now time.Time, b Release) *store.Record {
	r := *held
	r.Lease, r.Run = time.Time{}, Millis(now)
	r.Blocked = b.Refusal != nil
	if b.Why != "" {
		r.LastErr = b.Why
	}
	calls := unrecorded(held, b.Calls)
	if len(calls) > 0 {
		r.Sent = Sending(held.Sent, b.Sent)
	}
	until := held.DoubtUntil
	if len(calls) > 0 { // the attempt's process may send a copy of a call until the lease ends
		until = doubtUntil(held, later(held.Lease, now))
	}
	doubt(&r, With(held.Doubts, calls...), doubtSince(held), until)
	r.Sent = inDoubt(r.Sent, r.Doubts) // only the hashes of calls in doubt matter
	if free(&r, b.Refused) {
		frees(&r, now)
	} else {
		h := store.Handover{At: r.Run, Kind: HandoverRelease, Err: redact.Cut(b.Why)}
		if b.Answers && Kept(&r) {
			h.Kind = HandoverWithheld
			if !b.Counted {
				r.Tries++ // the limit on Tries keeps retries from running the handler for ever
			}
		}
		r.Handovers = handed(held, h)
	}
	if b.Look != nil {
		b.Look.on(&r, b.Counted)
	}
	WaitFrom(&r, now)
	return &r
}

// Kept reports whether r is open and must not expire. A completer, a sweep or people
// will act on such a record without the client. While a record is kept, an answer of
// the handler that isn't stored is withheld.
func Kept(r *store.Record) bool { return r.State == store.Open && r.Keep == store.KeepOpen }

// Withheld returns the time from which another attempt at rec may run. If an answer was withheld,
// the attempt must wait, since the handler would give the same answer if it ran at once. If a
// look-up decided nothing, the attempt must wait for the next look-up. Otherwise Withheld returns
// the zero time.
func Withheld(rec *store.Record) (until time.Time) {
	n := len(rec.Handovers)
	if LookedUpInVain(rec) && Kept(rec) && rec.Lease.IsZero() {
		return rec.Asked.At.Add(BackOff(withheldFor, rec.Asked.Times-1))
	}
	if !Kept(rec) || !rec.Lease.IsZero() || n == 0 || rec.Handovers[n-1].Kind != HandoverWithheld {
		return time.Time{}
	}
	return rec.Run.Add(BackOff(withheldFor, rec.Tries))
}

// free reports whether a release may free the key of r. If a phase is committed, a job
// is staged or a call may have been made, the record must stay, because work or derived
// keys depend on the record. If the request is stored, the record must stay for a completer,
// unless refused is set.
func free(r *store.Record, refused bool) bool {
	return !MayHaveCalled(r) && len(r.Phases) == 0 && len(r.Jobs) == 0 && (r.Input == nil || refused)
}

// freedFor is how long a freed record stays. No copy of the claim's write can be
// delayed for so long. If TTL deleted the record earlier, a late copy would start the
// operation again.
const freedFor = 15 * time.Minute

// frees makes r the record of a freed key.
func frees(r *store.Record, now time.Time) {
	r.Keep, r.Expires, r.Input, r.Mark, r.Blocked = store.KeepFreed, Seconds(now).Add(freedFor), nil, "", false
}

// Freed reports whether an attempt or a person freed the key of r. If so, the next
// claim replaces r.
func Freed(r *store.Record) bool { return r.Keep == store.KeepFreed }

// Free reports whether a new operation may have the key of r, because r has expired or
// was freed.
func Free(r *store.Record, now time.Time) bool { return Over(r.Expires, now) || Freed(r) }
