package state

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// MayReach reports whether an operation may reach other systems, held being its
// record (nil before its claim). Under the key of a delivery it may not; but where
// that was claimed before such keys were refused, its program may have called
// already, and goes on.
func MayReach(deliveryKey bool, held *store.Record) bool {
	return !deliveryKey || held != nil && !held.DeliveryKey
}

// doubt sets which calls may have been made, and since when.
func doubt(r *store.Record, calls []string, since time.Time) {
	if r.Doubts, r.DoubtSince = calls, since; len(calls) == 0 {
		r.Doubts, r.DoubtSince, r.Sent = nil, time.Time{}, nil
	}
}

// doubtSince is the time from which on the record's calls are in doubt, if those
// of its last attempt are: that began no earlier.
func doubtSince(r *store.Record) time.Time {
	if len(r.Doubts) > 0 {
		return r.DoubtSince
	}
	return r.Run
}

// Sending is sent with what more calls send. It changes neither.
func Sending(sent, more map[string]string) map[string]string {
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
	case slices.Contains(doubts, store.AnyCall):
		return sent
	}
	kept := maps.Clone(sent)
	maps.DeleteFunc(kept, func(call, _ string) bool { return !slices.Contains(doubts, call) })
	return kept
}

// Skipped counts in [store.Record].Calls, for every service, the calls of phases that
// people settled: nobody knows how many there were.
const Skipped = "*"

// tells reports whether a committed phase made this call, as idem.Tx.Key names it.
func tells(r *store.Record, call string) bool {
	service, number, numbered := strings.Cut(call, "#")
	if !numbered {
		return r.Calls[call] > 0
	}
	n, err := strconv.Atoi(number)
	return err == nil && n <= r.Calls[service+"#"]+r.Calls[Skipped]
}

// Tally returns made with calls counted in. Without counts, nil, there are
// none afterwards either: the record's keys are made in another way.
func Tally(made map[string]int, calls []string) map[string]int {
	if made == nil || len(calls) == 0 {
		return made
	}
	made = maps.Clone(made)
	for _, call := range calls {
		made[counted(call)]++
	}
	return made
}

// counted is the name under which a call is counted: "service#", or "service/step".
func counted(call string) string {
	if i := strings.IndexByte(call, '#'); i >= 0 {
		return call[:i+1]
	}
	return call
}

// With returns calls with more, each once; without returns them without some.
// Neither changes calls.
func With(calls []string, more ...string) []string {
	all := slices.Concat(calls, more)
	slices.Sort(all)
	return slices.Compact(all)
}

func without(calls, some []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return slices.Contains(some, call) })
}
