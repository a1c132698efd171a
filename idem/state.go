package idem

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict is what an attempt does about the record that stood in its way.
type verdict int

const (
	again       verdict = iota // nothing stands there any more: claim once more
	own                        // it is this attempt's own claim: its answer was lost
	otherCaller                // the key was used with other credentials
	mismatch                   // the key was used with another request
	replay                     // finished: give the stored answer
	expired                    // finished, and its lifetime is over
	stuck                      // waits for an operator
	inFlight                   // held by another attempt
	takeOver                   // open, and nobody holds it
)

// same says what is as it was when a record was claimed.
type same struct{ caller, request bool }

// judge decides about the record that refused a claim. It is pure: the claim,
// the take-over and the read-first path all ask it. The order matters:
//
//   - own first, or a lost acknowledgement would lock the caller out;
//   - another caller before everything that a record tells, or does;
//   - mismatch before the lock, so that a wrong retry of a running request is
//     told so (R23) and never takes a record over;
//   - a record without Expires never expires: it is kept.
func judge(held *Record, me string, same same, now time.Time) verdict {
	switch {
	case held == nil || held.State == None:
		return again
	case held.Owner == me && held.Ver == 1 && held.State != Stuck:
		return own
	case over(held.Expires, now):
		return again
	case !same.caller:
		return otherCaller
	case !same.request:
		return mismatch
	case held.State == Done && !held.Expires.IsZero() && over(held.Until, now):
		return expired
	case held.State == Done:
		return replay
	case held.State == Stuck:
		return stuck
	case held.Lease.After(now):
		return inFlight
	default:
		return takeOver
	}
}

// over reports whether t, in whole seconds as the table's TTL attribute, has
// passed. The zero time never passes.
func over(t, now time.Time) bool { return !t.IsZero() && t.Unix() < now.Unix() }

// landing is what became of an attempt's conditional write.
type landing int

const (
	fenced  landing = iota // another attempt holds the record, or it is gone: stop, write nothing
	landed                 // the record shows this very write
	notYet                 // the record is as it was before
	crossed                // ours, but further than this write: decide from the record
)

// land decides what became of a write that was to turn prev into next, from the
// record as it is now.
func land(now, prev, next *Record, me string) landing {
	switch {
	case now == nil || now.State == None || now.Owner != me:
		// A take-over is judged before its nonce is in the record.
		if now != nil && now.State != None && now.Owner == prev.Owner && now.Ver == prev.Ver {
			return notYet
		}
		return fenced
	case now.Ver == prev.Ver+1 && sameShape(now, next):
		return landed
	case now.Ver == prev.Ver && prev.Owner == me:
		return notYet
	case now.Ver > prev.Ver:
		return crossed
	default:
		return fenced
	}
}

// sameShape tells one write of an attempt from an earlier one of the same
// version that it was told had failed, and that landed after all. Contents may
// differ: an Atomic that ran again made others, and then those stored count.
func sameShape(a, b *Record) bool {
	same := a.State == b.State && a.Lease.IsZero() == b.Lease.IsZero() && len(a.Phases) == len(b.Phases)
	for i := 0; same && i < len(a.Phases); i++ {
		same = a.Phases[i].Name == b.Phases[i].Name && a.Phases[i].Intent == b.Phases[i].Intent
	}
	return same
}

// giveBack says how an attempt ended that has no answer to store.
type giveBack struct {
	calls   []string          // that this attempt may have made and has not recorded
	sent    map[string]string // hashes of what they sent, where that is known
	refused bool              // the handler itself refused the request, with a 4xx
	renewed int64             // how often this attempt has renewed its lease
	refusal error             // why the program refuses to go on with what is recorded; nil if it doesn't
	why     string            // for people; "" leaves the record's
}

// refuses reports whether a phase failed so that the same program will always
// fail with this record: trying again doesn't help, people have to change one of
// the two.
func refuses(err error) bool {
	for _, mistake := range []error{ErrPhaseOrder, ErrResult, ErrWrite, ErrKeyReused, ErrDeliveryKey} {
		if errors.Is(err, mistake) {
			return true
		}
	}
	return false
}

// mayReach reports whether an operation may reach other systems, held being its
// record (nil before its claim). Under the key of a delivery it may not; but where
// that was claimed before such keys were refused, its program may have called
// already, and goes on.
func mayReach(deliveryKey bool, held *Record) bool {
	return !deliveryKey || held != nil && !held.DeliveryKey
}

// free reports whether a release may give the key up altogether: only this
// attempt's own claim, with nothing written since but renewals of its lease, and no
// derived key out.
// Anything else stays, because committed work and derived keys hang on the
// record. A request that was stored with its claim has been accepted: unless its
// handler refused it, it is completed, whatever stopped it.
func free(r *Record, b giveBack) bool {
	return r.Ver == 1+b.renewed && len(b.calls) == 0 && len(r.Phases) == 0 && len(r.Jobs) == 0 && (r.Input == nil || b.refused)
}

// claimed returns the record of a new operation.
func claimed(r Record, now time.Time, lease time.Time, retention time.Duration) *Record {
	r.State, r.Ver, r.Calls = Open, 1, map[string]int{}
	r.Created, r.Run = millis(now), millis(now)
	r.Lease = millis(lease)
	if r.Input != nil {
		r.Keep = KeepOpen // from the claim on: somebody is to complete it
	} else {
		r.Expires = claimExpiry(now, lease, retention)
	}
	return &r
}

// advanced returns held with more phases, their jobs and the calls they made.
// From the first one on the record is kept: committed work must not be
// forgotten. The caller raises Ver.
func advanced(held *Record, phases []Phase, jobs map[string]Job, calls []string) *Record {
	if len(phases)+len(jobs) == 0 {
		return held
	}
	r := *held
	r.Phases = slices.Concat(held.Phases, phases)
	r.Jobs = merged(held.Jobs, jobs)
	r.Calls = tally(held.Calls, calls)
	r.doubt(without(held.Doubts, calls), held.DoubtSince)
	for _, call := range calls {
		if _, known := r.Sent[call]; known {
			r.Sent = maps.Clone(r.Sent)
			delete(r.Sent, call)
		}
	}
	r.Keep, r.Expires, r.Blocked = KeepOpen, time.Time{}, false // it goes on
	return &r
}

// taken returns held as the attempt me takes it over.
func taken(held *Record, me string, now, lease time.Time, retention time.Duration) *Record {
	r := renewed(held, now, lease, retention)
	r.Owner, r.Run = me, millis(now)
	if !held.Lease.IsZero() {
		// Its holder never came back to say what it had called.
		r.doubt(with(held.Doubts, AnyCall), held.doubtSince())
	}
	return r
}

// renewed returns held with a later end of its lease, for a holder that still
// works. Expires is renewed where it is there, so that TTL can't delete the record
// under its holder.
func renewed(held *Record, now, lease time.Time, retention time.Duration) *Record {
	r := *held
	r.Ver, r.Lease = held.Ver+1, millis(lease)
	if !held.Expires.IsZero() {
		r.Expires = claimExpiry(now, lease, retention)
	}
	return &r
}

// From returns rec as t takes it over: held by t.NewOwner, with the try counted,
// so that one which dies is counted too. An error says that it must not be taken:
// [ErrMoved] since it is no longer what the ticket has seen, [ErrInFlight] since
// its lease is not over, [ErrNotMine] since it is another handler's or tenant's,
// [ErrNotKept] since its request isn't stored. Owner and version come first: they
// are no secret, while what else is said of a record is for those who know them.
func (t Take) From(rec *Record) (*Record, error) {
	err := t.fits(rec, t.Now)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(t.Handlers, rec.Handler):
		return nil, fmt.Errorf("%w: it is of the %v", ErrNotMine, rec.Handler)
	case rec.Tenant != t.Tenant:
		return nil, fmt.Errorf("%w: it was invoked for another tenant", ErrNotMine)
	case rec.Input == nil || !rec.Expires.IsZero():
		return nil, fmt.Errorf("%w: the request was not stored with its claim", ErrNotKept)
	}
	r := taken(rec, t.NewOwner, t.Now, t.Lease, 0) // without an expiry, there is nothing to renew
	r.Tries++
	return r, nil
}

// fits says why a ticket is of no use for rec as it is now; nil if it is of use.
func (t Ticket) fits(rec *Record, now time.Time) error {
	switch {
	case rec == nil || rec.Owner != t.Owner || rec.Ver != t.Ver || rec.State != Open || over(rec.Expires, now):
		return ErrMoved
	case rec.Lease.After(now):
		return ErrInFlight
	}
	return nil
}

// renewal reports whether now is prev after a renewal, and nothing else: no other
// write of a holder moves the end of its lease and leaves the phases.
func renewal(now, prev *Record) bool {
	return now.Owner == prev.Owner && now.Ver == prev.Ver+1 && now.Lease.After(prev.Lease) && sameShape(now, prev)
}

// finished returns held with its response. The phases keep their names only,
// the input is no longer needed, and no lease is left.
//
// With a tombstone the record outlives its answer by that long, and Until says
// when the answer ends.
func finished(held *Record, resp Response, now time.Time, retention, tombstone time.Duration) *Record {
	r := *held
	r.State, r.Ver = Done, held.Ver+1
	r.Response, r.Lease, r.LastErr, r.Input = &resp, time.Time{}, "", nil
	r.Phases, r.Calls, r.Blocked = names(held.Phases), nil, false
	r.doubt(nil, time.Time{})
	if until := seconds(now.Add(retention)); len(held.Jobs) > 0 {
		r.Keep, r.Expires, r.Until, r.Tombstone = KeepJobs, time.Time{}, until, (tombstone + time.Second - 1).Truncate(time.Second)
		r.Run = millis(now) // from now on they are left to the drain
	} else {
		r.Keep, r.Expires, r.Until = KeepNothing, until, time.Time{}
		if tombstone > 0 {
			r.Expires, r.Until = until.Add(tombstone), until
		}
	}
	return &r
}

// released returns held without a lease: free for a new request where that is
// safe, else as it is for the next attempt. Run is renewed, since from now on it
// is left to its client, however long the attempt took.
func released(held *Record, now time.Time, b giveBack) *Record {
	r := *held
	r.Ver, r.Lease, r.Run = held.Ver+1, time.Time{}, millis(now)
	r.Blocked = b.refusal != nil
	if b.why != "" {
		r.LastErr = b.why
	}
	// One whose commit landed after all is in no doubt: nobody will repeat it.
	if calls := slices.DeleteFunc(slices.Clone(b.calls), held.tells); len(calls) > 0 {
		r.doubt(with(held.Doubts, calls...), held.doubtSince())
		r.Sent = sending(held.Sent, b.sent)
	}
	r.Sent = inDoubt(r.Sent, r.Doubts) // what was to be sent, and was not, binds nobody
	if free(held, b) {
		// A minute ago, for hosts whose clocks are behind; not 0, since TTL ignores
		// what is over five years old.
		r.Keep, r.Expires, r.Input, r.Blocked = KeepNothing, seconds(now).Add(-time.Minute), nil, false
	}
	return &r
}

// leftToClient reports whether an operation whose stored request is not there can
// wait for its client, whose retry brings it again: for as long after the last
// attempt as clients retry.
func leftToClient(held *Record, now time.Time, retention time.Duration) bool {
	return now.Before(held.Run.Add(retention))
}

// stuckFor returns held as given up: kept until an operator settles it.
func stuckFor(held *Record, why string) *Record {
	r := *held
	r.State, r.Ver, r.Lease, r.LastErr = Stuck, held.Ver+1, time.Time{}, truncate(why)
	r.Keep, r.Expires, r.Blocked = KeepOpen, time.Time{}, false
	return &r
}

// claimExpiry lies beyond the lease, so that no claim can overwrite and TTL
// can't delete a record that somebody holds.
func claimExpiry(now, lease time.Time, retention time.Duration) time.Time {
	return seconds(later(now.Add(retention), lease.Add(time.Hour)))
}

// AnyCall stands in [Record.Doubts] for calls whose names nobody knows.
const AnyCall = "?"

// doubt sets which calls may have been made, and since when.
func (r *Record) doubt(calls []string, since time.Time) {
	if r.Doubts, r.DoubtSince = calls, since; len(calls) == 0 {
		r.Doubts, r.DoubtSince, r.Sent = nil, time.Time{}, nil
	}
}

// sending is sent with what more calls send.
func sending(sent, more map[string]string) map[string]string {
	if len(more) == 0 {
		return sent
	}
	all := maps.Clone(more)
	maps.Copy(all, sent) // of a call that may have been made, what went out first
	return all
}

// inDoubt is the part of sent that calls in doubt may have sent.
func inDoubt(sent map[string]string, doubts []string) map[string]string {
	switch {
	case len(doubts) == 0:
		return nil
	case slices.Contains(doubts, AnyCall):
		return sent
	}
	kept := maps.Clone(sent)
	maps.DeleteFunc(kept, func(call, _ string) bool { return !slices.Contains(doubts, call) })
	return kept
}

// doubtSince is the time from which on the record's calls are in doubt, if those
// of its last attempt are: that began no earlier.
func (r *Record) doubtSince() time.Time {
	if len(r.Doubts) > 0 {
		return r.DoubtSince
	}
	return r.Run
}

// tells reports whether a committed phase made this call, as [Tx.Key] names it.
func (r *Record) tells(call string) bool {
	service, number, numbered := strings.Cut(call, "#")
	if !numbered {
		return r.Calls[call] > 0
	}
	n, err := strconv.Atoi(number)
	return err == nil && n <= r.Calls[service+"#"]+r.Calls[skipped]
}

// tally returns made with calls counted in. Without counts, nil, there are
// none afterwards either: the record's keys are made in another way.
func tally(made map[string]int, calls []string) map[string]int {
	if made == nil || len(calls) == 0 {
		return made
	}
	made = maps.Clone(made)
	for _, call := range calls {
		made[counted(call)]++
	}
	return made
}

// with returns calls with more, each once; without returns them without some.
// Neither changes calls.
func with(calls []string, more ...string) []string {
	all := slices.Concat(calls, more)
	slices.Sort(all)
	return slices.Compact(all)
}

func without(calls, some []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return slices.Contains(some, call) })
}

func names(phases []Phase) []Phase {
	if phases == nil {
		return nil
	}
	out := make([]Phase, len(phases))
	for i, p := range phases {
		out[i].Name = p.Name
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func seconds(t time.Time) time.Time { return time.Unix(t.Unix(), 0) }
func millis(t time.Time) time.Time  { return time.UnixMilli(t.UnixMilli()) }
