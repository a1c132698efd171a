package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// MayReach reports whether an operation may call other systems or stage jobs. held is
// the record, or nil before the claim. An operation whose key names a delivery may not,
// unless the record was claimed without DeliveryKey: an attempt may have made a call
// under that claim already.
func MayReach(deliveryKey bool, held *store.Record) bool {
	return !deliveryKey || held != nil && !held.DeliveryKey
}

// AnyCall is the entry in a record's Doubts for unnamed calls that may have been made.
// The commit of any phase with calls removes the entry, because a deploy may have
// renamed the phase that made the calls, or inserted another phase before that phase.
const AnyCall = "?"

// MarkOf returns the mark that stays in the record if the holder vanishes during the
// phase. If repeats is false, the phase's call is never repeated. The mark then
// contains the phase's name, so that the commit of another phase doesn't remove the
// mark.
func MarkOf(phase string, repeats bool) string {
	if repeats {
		return AnyCall
	}
	return AnyCall + phase
}

// NeverRepeated reports whether the phase may have made a call that must never be repeated.
func NeverRepeated(r *store.Record, phase string) bool {
	return slices.Contains(r.Doubts, AnyCall+phase)
}

// SentByAnother returns the name of another phase that may have sent the call, and
// whose calls are never repeated; "" if there is no such phase. A call can come from
// another phase if a deploy renamed the phase, or if an earlier attempt took another
// branch.
func SentByAnother(r *store.Record, phase, call string) string {
	if _, sent := r.Sent[call]; !sent {
		return ""
	}
	for _, mark := range r.Doubts {
		if OthersMark(mark, phase) {
			return strings.TrimPrefix(mark, AnyCall)
		}
	}
	return ""
}

// Marks returns the marks that the commit of the phase removes.
func Marks(phase string) []string { return []string{AnyCall, AnyCall + phase} }

// OthersMark reports whether call, an entry of Doubts, is the mark of another phase.
// Only a phase whose calls are never repeated has such a mark.
func OthersMark(call, phase string) bool { return IsMark(call) && !slices.Contains(Marks(phase), call) }

// InDoubt reports whether the phase may have made a call that no commit has recorded:
// r.Doubts contains a mark of the phase, or the name of any call.
func InDoubt(r *store.Record, phase string) bool {
	return slices.ContainsFunc(r.Doubts, func(call string) bool { return !OthersMark(call, phase) })
}

// MayHaveCalled reports whether an earlier attempt may have made a call whose outcome
// isn't recorded: a call is in doubt, or people have taken the risk of a second call,
// and the phase hasn't committed since. MayHaveCalled can't know this if the decision
// names no phase, or if r may have had more decisions than it keeps. Then it returns
// true.
func MayHaveCalled(r *store.Record) bool {
	return len(r.Doubts) > 0 || len(r.Settled) >= maxSettled || slices.ContainsFunc(r.Settled, func(d store.Decision) bool {
		return strings.HasPrefix(d.What, riskOfTwice) &&
			!slices.ContainsFunc(r.Phases, func(p store.Phase) bool { return !p.Intent && d.What == riskOfTwice+": "+p.Name })
	})
}

// IsMark reports whether an entry in Doubts is a mark. The name of a call can't look like a mark,
// because names are escaped.
func IsMark(call string) bool { return strings.HasPrefix(call, AnyCall) }

// vanished adds the mark of the record held to r.Doubts, because the holder of held
// vanished. The holder may have sent a call until the time end. Without a lease or a
// mark in held, vanished changes nothing.
func vanished(r, held *store.Record, end time.Time) {
	if !held.Lease.IsZero() && held.Mark != "" {
		doubt(r, With(held.Doubts, held.Mark), doubtSince(held), doubtUntil(held, end))
	}
}

// doubt sets the fields Doubts, DoubtSince and DoubtUntil of r. If the list calls is empty, doubt
// clears these fields and r.Sent. If r has no lease, doubt also clears r.Mark.
func doubt(r *store.Record, calls []string, since, until time.Time) {
	if r.Doubts, r.DoubtSince, r.DoubtUntil = calls, since, until; len(calls) == 0 {
		r.Doubts, r.DoubtSince, r.DoubtUntil, r.Sent = nil, time.Time{}, time.Time{}, nil
	}
	if r.Lease.IsZero() {
		r.Mark = ""
	}
}

// doubtSince returns the earliest time at which a call in doubt can have begun: r.DoubtSince if r
// has doubts; otherwise r.Run, the start of the last attempt.
func doubtSince(r *store.Record) time.Time {
	if len(r.Doubts) > 0 {
		return r.DoubtSince
	}
	return r.Run
}

// doubtUntil returns the last moment at which a call in doubt may have been sent: the
// later of r.DoubtUntil, for earlier attempts, and the time end, for the last attempt.
func doubtUntil(r *store.Record, end time.Time) time.Time {
	return later(r.DoubtUntil, Millis(end))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Sending returns the entries of the maps sent and more, and changes neither map.
func Sending(sent, more map[string]string) map[string]string {
	if len(more) == 0 {
		return sent
	}
	all := maps.Clone(more)
	maps.Copy(all, sent) // a call in both maps keeps the hash of the data that was sent first
	return all
}

// inDoubt returns the entries of the map sent whose calls may be in doubt: those in the
// list doubts. If doubts has a mark, inDoubt returns all entries, because a mark
// doesn't name its call.
func inDoubt(sent map[string]string, doubts []string) map[string]string {
	if slices.ContainsFunc(doubts, IsMark) {
		return sent
	}
	kept := maps.Clone(sent)
	maps.DeleteFunc(kept, func(call, _ string) bool { return !slices.Contains(doubts, call) })
	return kept
}

// Skipped is the entry in [store.Record].Calls that counts the phases that operators
// settled. Each such phase counts as a call of every service, because nobody knows
// which calls it made.
const Skipped = "*"

// unrecorded returns the calls that are in doubt, because no committed phase has
// recorded them in held. For a call without a name, it returns the mark of held, if
// there is one.
func unrecorded(held *store.Record, calls []string) (doubts []string) {
	for _, call := range calls {
		switch {
		case call == AnyCall && held.Mark != "":
			doubts = append(doubts, held.Mark)
		case call != AnyCall && !tells(held, call):
			doubts = append(doubts, call)
		}
	}
	if len(doubts) > 0 && held.Mark != "" && held.Mark != AnyCall { // keep this mark, so that the call isn't repeated even if the next program would repeat it
		doubts = With(doubts, held.Mark)
	}
	return doubts
}

// tells reports whether a committed phase of r has recorded the call. idem.Tx.Key made
// the call's name.
func tells(r *store.Record, call string) bool {
	service, number, numbered := strings.Cut(call, "#")
	if !numbered {
		return r.Calls[call] > 0
	}
	n, err := strconv.Atoi(number)
	return err == nil && n <= r.Calls[service+"#"]+r.Calls[Skipped]
}

// Tally returns the counts in the map made, increased by one for each entry of calls
// that isn't a mark. It doesn't change the map.
func Tally(made map[string]int, calls []string) map[string]int {
	if calls = slices.DeleteFunc(slices.Clone(calls), IsMark); len(calls) == 0 {
		return made
	}
	if made = maps.Clone(made); made == nil {
		made = make(map[string]int, len(calls))
	}
	for _, call := range calls {
		made[counted(call)]++
	}
	return made
}

// counted returns the name under which a call is counted: "service#" for "service#3",
// and "service/step" unchanged.
func counted(call string) string {
	return cmp.Or(call[:strings.IndexByte(call, '#')+1], call)
}

// With merges two lists of calls into a new list, which is sorted and has no duplicates.
func With(calls []string, more ...string) []string {
	all := slices.Concat(calls, more)
	slices.Sort(all)
	return slices.Compact(all)
}

func without(calls, some []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return slices.Contains(some, call) })
}

// DerivedKey hashes parts into a UUID of version 8 (RFC 9562, 5.8), which every service
// accepts as an idempotency key. The parts are an operation's id, and the name and
// number of a call. DerivedKey hashes the length of each part too, so that ("a", "bc")
// and ("ab", "c") have different keys.
func DerivedKey(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	u := h.Sum(nil)
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}
