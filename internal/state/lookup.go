package state

import (
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// This file decides whether to look up a call in doubt, and what to do after a look-up.

// Found is the result of a look-up.
type Found int

// The results.
const (
	FoundNothing       Found = iota // the look-up failed: nothing is known yet
	FoundMade                       // the call was made, and has a result
	FoundNotMade                    // the provider knows no such call
	FoundContradiction              // the provider knows two calls, or one that differs from the call that was sent
)

// Asking is a look-up of a call in doubt.
type Asking struct {
	Sent   time.Time     // the last moment at which a copy of the call may have been sent
	Within time.Duration // how long a copy that was sent may be missing from the look-up
	Began  time.Time     // when the look-up began
	Never  bool          // the call is never made again (idem.Remembers(0))
	Found  Found
}

// Course is the next step after a look-up.
type Course int

// The courses.
const (
	AskAgain  Course = iota // nothing is decided
	UseResult               // the look-up's result is the result of the phase
	CallOnce                // no copy of the call was made or is on its way: the call may be made
	ToPeople                // only people may decide
)

// Decide returns the next step after a look-up, and whether the look-up counts as a
// try. FoundNotMade proves nothing while a copy of the call may be on its way, or may
// be missing from the look-up. If the call were made then, it could be made twice.
// Afterwards FoundNotMade permits the call, or leaves it to people if Never is set.
func (a Asking) Decide() (c Course, counts bool) {
	late := a.Began.After(a.Sent.Add(a.Within))
	switch {
	case a.Found == FoundMade:
		return UseResult, false
	case a.Found == FoundContradiction, a.Found == FoundNotMade && late && a.Never:
		return ToPeople, late
	case a.Found == FoundNotMade && late:
		return CallOnce, false
	}
	return AskAgain, late
}

// Word returns the word for the look-up's result that the record stores.
func (a Asking) Word() string {
	switch c, _ := a.Decide(); {
	case a.Found == FoundMade:
		return "made"
	case a.Found == FoundNotMade && c == AskAgain:
		return "not made yet"
	case a.Found == FoundNotMade:
		return "not made"
	case a.Found == FoundContradiction:
		return "contradiction"
	}
	return "unknown"
}

// Doubtful names a call that may be in doubt, and its phase.
type Doubtful struct {
	Phase, Call string
	Keyless     bool          // the call has no key, so the provider can't recognize a repetition
	Memory      time.Duration // how long the provider remembers the call's key; 0: never repeat the call
}

// Never reports whether the call is never made again, whatever a look-up says.
func (d Doubtful) Never() bool { return d.Memory <= 0 }

// Mark returns the mark that stays if the holder vanishes during the call.
func (d Doubtful) Mark() string { return MarkOf(d.Phase, !d.Never() && !d.Keyless) }

// Calls returns the entries of Doubts that a commit of the phase removes.
func (d Doubtful) Calls() []string { return append(Marks(d.Phase), d.Call) }

// Begun reports whether the last phase in r is an intent of d.Phase: an earlier attempt noted that
// the call begins.
func (d Doubtful) Begun(r *store.Record) bool {
	n := len(r.Phases)
	return n > 0 && r.Phases[n-1].Intent && r.Phases[n-1].Name == d.Phase
}

// Asks reports whether the provider, or people, must be asked about the call. They must
// be asked if the call may have been made and can't be repeated under its key: it has
// no key, it is never repeated, or the provider may have forgotten its key since
// r.DoubtSince.
func (d Doubtful) Asks(r *store.Record, now time.Time) bool {
	if d.Begun(r) || NeverRepeated(r, d.Phase) {
		return true
	}
	return InDoubt(r, d.Phase) && (d.Keyless || d.Never() || now.Sub(r.DoubtSince) >= d.Memory)
}

// Stranger returns the name of a call in doubt other than d's call; "" if there is
// none. A look-up of d's call doesn't tell whether the other call was made.
func (d Doubtful) Stranger(r *store.Record) string {
	for _, call := range r.Doubts {
		if !IsMark(call) && call != d.Call {
			return call
		}
	}
	for _, call := range slices.Sorted(maps.Keys(r.Sent)) { // a mark in Doubts doesn't name its call, but r.Sent does
		if call != d.Call {
			return call
		}
	}
	return ""
}

// Sent returns the last moment at which a copy of the call may have been sent. The
// attempt that holds r must not have made the call.
func (d Doubtful) Sent(r *store.Record) time.Time {
	var until time.Time
	if InDoubt(r, d.Phase) {
		until = r.DoubtUntil
	}
	if LookedUpInVain(r) && r.Asked.Phase == d.Phase {
		until = later(r.Asked.Sent, until)
	}
	if until.IsZero() {
		return r.Run.Add(maxHold) // the attempt that wrote the intent may still be at work, for up to maxHold
	}
	return until
}

// Asked returns the note about the look-up a, to be stored in the record r.
func (d Doubtful) Asked(r *store.Record, a Asking) *store.Asked {
	n := &store.Asked{Phase: d.Phase, At: Millis(a.Began), Times: 1, Said: a.Word(), Sent: Millis(a.Sent)}
	if LookedUpInVain(r) && r.Asked.Phase == d.Phase {
		n.Times += r.Asked.Times
	}
	return n
}

// Noted returns a copy of held with a new note about a look-up.
func Noted(held *store.Record, asked *store.Asked) *store.Record {
	r := *held
	r.Asked = asked
	return &r
}

// CallingOnce returns the record to write before a call that may be made after a
// look-up: a copy of held without the doubt about the call, and with the call's mark.
func (d Doubtful) CallingOnce(held *store.Record, sent map[string]string) *store.Record {
	r := *held
	if d.Begun(held) {
		r.Phases = held.Phases[:len(held.Phases)-1]
	}
	doubt(&r, without(held.Doubts, d.Calls()), held.DoubtSince, held.DoubtUntil)
	r.Sent = maps.Clone(r.Sent)
	delete(r.Sent, d.Call)
	return Calling(&r, d.Mark(), sent)
}

// LookedUp is a look-up that decided nothing. The attempt releases the record after it.
type LookedUp struct {
	Asked  *store.Asked
	Counts bool // the look-up counts as a try
}

// LookedUp.on stores the note in the released record r, and corrects r.Tries so that
// the look-up is counted as a try only if l.Counts is set. The parameter taken tells
// whether the take-over has already counted a try.
func (l *LookedUp) on(r *store.Record, taken bool) {
	r.Asked = l.Asked
	switch {
	case l.Counts && !taken:
		r.Tries++
	case !l.Counts && taken:
		r.Tries = max(0, r.Tries-1) // the look-up was too early to count as a try
	}
}

// LookedUpInVain reports whether r has a call in doubt and the look-up has decided nothing yet.
func LookedUpInVain(r *store.Record) bool { return r.Asked != nil && !r.Asked.Sent.IsZero() }

// ended returns a copy of the note a, without Sent, for a record whose doubt has ended
// or whose call is sent again.
func ended(a *store.Asked) *store.Asked {
	if a == nil || a.Sent.IsZero() {
		return a
	}
	c := *a
	c.Sent = time.Time{}
	return &c
}
