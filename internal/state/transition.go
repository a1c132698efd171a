package state

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// Retained rounds a program's retention up to whole seconds, the form in which items store a retention.
func Retained(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// Stamp prepares next, the record that replaces prev. Stamp sets Owner to owner, and
// Ver to prev.Ver+1. For a claim, prev is nil, and Ver becomes 1. Every later write of
// an attempt checks Owner and Ver. Apart from Stamp, only the update expression of a
// store's Take sets these fields.
func Stamp(next, prev *store.Record, owner string) {
	next.Owner, next.Ver = owner, 1
	if prev != nil {
		next.Ver = prev.Ver + 1
	}
}

// Claimed returns the record of a new operation, made from r. Set r.Retention to the
// program's retention and, if the handler will make calls, r.Keep to store.KeepOpen.
func Claimed(r store.Record, now time.Time, lease time.Time) *store.Record {
	r.State = store.Open
	r.Created, r.Run = Millis(now), Millis(now)
	r.Lease = Millis(lease)
	if r.Input != nil || r.Keep == store.KeepOpen {
		r.Keep = store.KeepOpen // the record is kept from the claim on, because a completer may have to finish the operation, or a person may have to settle a call in doubt
	} else {
		r.Expires = claimExpiry(now, lease, r.Retention)
	}
	return &r
}

// Calling returns the copy of held that is written before a call. The copy has the mark
// and the hashes in the map sent, and it has no expiry. If the process dies during the
// call, it writes nothing more. Without the mark, the operation could later end with a
// stored answer although the call is in doubt. With an expiry, the key could expire,
// and the next request would make the call again under another derived key.
func Calling(held *store.Record, mark string, sent map[string]string) *store.Record {
	r := *held
	r.Keep, r.Expires, r.Mark, r.Sent = store.KeepOpen, time.Time{}, mark, Sending(held.Sent, sent)
	r.Asked = ended(held.Asked) // the attempt sends another copy of the call, so the time of the earlier copy no longer counts
	return &r
}

// Advanced returns a copy of held to which phases, jobs and calls are added. Without phases and
// jobs, it returns held itself. From the first phase on, the record is kept, because committed work
// must not be forgotten. If a phase makes calls, the list calls must contain the phase's [Marks].
func Advanced(held *store.Record, now time.Time, phases []store.Phase, jobs map[string]store.Job, calls []string) *store.Record {
	if len(phases)+len(jobs) == 0 {
		return held
	}
	r := *held
	r.Phases = slices.Concat(held.Phases, phases)
	for i := len(held.Phases); i < len(r.Phases); i++ {
		r.Phases[i].At = max(Millis(now).Sub(held.Created), time.Millisecond) // this host's clock may be behind the clock of the host that made the claim
	}
	r.Jobs = Merged(held.Jobs, jobs)
	r.Calls = Tally(held.Calls, calls)
	if doubt(&r, without(held.Doubts, calls), held.DoubtSince, held.DoubtUntil); slices.Contains(calls, AnyCall) {
		r.Mark = ""
	}
	r.Sent = maps.Clone(r.Sent)
	for _, call := range calls {
		delete(r.Sent, call)
	}
	if slices.ContainsFunc(phases, func(p store.Phase) bool { return !p.Intent }) {
		r.Asked = ended(held.Asked)
	}
	r.Keep, r.Expires, r.Blocked = store.KeepOpen, time.Time{}, false // the operation continues
	WaitFrom(&r, r.Run)
	return &r
}

// IntentReplaced returns a copy of held without its last phase, an intent. The only
// entry of phases takes the intent's place. If phases is empty, the intent is only
// removed, so that the intent's call counts as not begun.
func IntentReplaced(held *store.Record, now time.Time, phases []store.Phase, calls []string) *store.Record {
	r := *held
	r.Phases = held.Phases[:len(held.Phases)-1]
	if len(phases) == 0 {
		return &r
	}
	return Advanced(&r, now, phases, nil, calls)
}

// Renewed returns a copy of held with a later end of the lease, for a holder that still works. If
// Expires is set, Renewed also moves Expires, so that TTL can't delete a held record.
func Renewed(held *store.Record, now, lease time.Time) *store.Record {
	r := *held
	renew(&r, now, lease)
	return &r
}

func renew(r *store.Record, now, lease time.Time) {
	r.Lease = Millis(lease)
	if !r.Expires.IsZero() {
		r.Expires = claimExpiry(now, lease, r.Retention)
	}
}

// Finished returns a copy of held as a finished record with the response resp. The response is
// replayed for the retention of the program that last claimed or took over the record. A record
// with jobs is kept (KeepJobs) until the drain lets it go. Phases keep only name and time; the
// input and the lease are removed.
func Finished(held *store.Record, resp store.Response, now time.Time) *store.Record {
	whole := &struct { // one allocation
		record   store.Record
		response store.Response
	}{*held, resp}
	r := &whole.record
	r.State, r.Response, r.Lease, r.LastErr, r.Input = store.Done, &whole.response, time.Time{}, "", nil
	r.Phases, r.Mark, r.Blocked = slices.Clone(held.Phases), "", false
	for i, p := range r.Phases {
		r.Phases[i] = store.Phase{Name: p.Name, At: p.At}
	}
	r.Doubts, r.DoubtSince, r.DoubtUntil, r.Sent, r.Asked = nil, time.Time{}, time.Time{}, nil, ended(held.Asked)
	r.Retention = 0 // not needed any more: Expires or Until now says when the retention ends
	if until := Seconds(now.Add(held.Retention)); len(held.Jobs) > 0 {
		r.Keep, r.Expires, r.Until = store.KeepJobs, time.Time{}, until
		r.Run = Millis(now) // Run says since when the jobs are left to the drain
		WaitFrom(r, now)
	} else {
		r.Keep, r.Expires, r.Until = store.KeepNothing, until, time.Time{}
		r.WaitSince = time.Time{}
	}
	return r
}

// Lifetime returns the end of the key's lifetime, or the zero time if the end isn't known yet.
func Lifetime(r *store.Record) time.Time {
	if !r.Until.IsZero() {
		return r.Until
	}
	return r.Expires
}

// Buried returns a copy of found, a record that has expired or was freed. The engine
// writes the copy under a new owner to fence found, so that former holders can't write
// the record. If found has expired, the copy's expiry lies at least a minute in the
// past, so that hosts whose clocks are behind also see that the record has expired. The
// copy of a freed record is unchanged, because hosts need no clock to see that a record
// was freed.
func Buried(found *store.Record, now time.Time) *store.Record {
	r := *found
	if end := Seconds(now).Add(-time.Minute); !Freed(found) && end.Before(r.Expires) {
		r.Expires = end
	}
	return &r
}

// StatusOnly reduces the response of a finished record to the status, and marks the body as not
// kept. Headers are removed too, because they may have made the record too large.
func StatusOnly(r *store.Record) {
	body := r.Response.Body
	r.Overflow = &store.Overflow{Length: len(body), SHA256: sha256.Sum256(body)}
	r.Response = &store.Response{Status: r.Response.Status}
}

// MadeStuck returns a copy of held that is stuck: the record is kept until an operator settles the
// operation.
func MadeStuck(held *store.Record, now time.Time, why string) *store.Record {
	r := *held
	r.State, r.Lease, r.LastErr = store.Stuck, time.Time{}, redact.Cut(why)
	doubt(&r, held.Doubts, held.DoubtSince, held.DoubtUntil)
	r.Keep, r.Expires, r.Blocked = store.KeepOpen, time.Time{}, false
	WaitFrom(&r, now)
	return &r
}

// claimExpiry returns an expiry after the end of the lease, so that no claim can overwrite a held
// record and TTL can't delete it.
func claimExpiry(now, lease time.Time, retention time.Duration) time.Time {
	end := now.Add(retention)
	if beyond := lease.Add(time.Hour); beyond.After(end) {
		end = beyond
	}
	return Seconds(end)
}

// Seconds cuts t to whole seconds, the precision of an item's expiry.
func Seconds(t time.Time) time.Time { return time.Unix(t.Unix(), 0) }

// Millis cuts t to whole milliseconds, the precision of an item's other times.
func Millis(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()) }
