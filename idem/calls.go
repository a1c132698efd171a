package idem

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/samekey/samekey/internal/state"
)

// A calls value records the calls that a run's Foreign phases may have made.
type calls struct {
	mu    sync.Mutex
	asked map[string]bool   // calls whose key the handler got; the value is true until the call's outcome is stored
	sent  map[string]string // hash of the data that each call sends, if known
	marks []string          // marks of the Foreign phase that runs or has failed; nil without such a phase
}

// calls.enter stores the marks of a Foreign phase that begins. They stand for the
// calls that the phase may make without asking for a key.
func (c *calls) enter(phase string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = state.Marks(phase)
}

// calls.missed reports whether the record has the mark of a call that this run has not
// repeated. The parameter doubts is the record's list of calls in doubt, which contains
// the marks. If a Foreign phase runs or has failed, this run repeats the phase's calls,
// so the phase's marks don't count. The list has no marks of committed phases.
func (c *calls) missed(doubts []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(doubts, func(call string) bool { return state.IsMark(call) && !slices.Contains(c.marks, call) })
}

// keyGiven records that the handler has got the key of a call.
func (c *calls) keyGiven(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = make(map[string]bool)
	}
	c.asked[call] = true
}

// calls.send records a hash of each call's data.
func (c *calls) send(hashes map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = state.Sending(hashes, c.sent)
}

// calls.recorded ends the doubt about the given calls: their outcomes are stored,
// or the calls had no effect.
func (c *calls) recorded(calls []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = nil
	for _, call := range calls {
		if c.asked[call] {
			c.asked[call] = false
		}
	}
}

// calls.out returns the calls that the run may have made and whose outcome isn't
// recorded. The parameter outlived tells whether the handler returned while a phase was
// running: that phase may make more calls.
func (c *calls) out(outlived bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for call, open := range c.asked {
		if open {
			out = append(out, call)
		}
	}
	if len(c.marks) > 0 && len(out) == 0 || outlived {
		out = append(out, state.AnyCall) // stands for calls without a key, and for calls whose key isn't requested yet
	}
	return out
}

// sentOut returns the hashes of the data that was sent with the calls whose outcome
// isn't recorded.
func (c *calls) sentOut() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := maps.Clone(c.sent)
	maps.DeleteFunc(out, func(call, hash string) bool { return !c.asked[call] || hash == "" })
	return out
}

// calls.unrepeated returns an error if the list doubts names a call that this run has
// not repeated. The list contains the record's calls in doubt. An earlier attempt may
// have made the call, and only a repetition shows the call's outcome. The marks in the
// list don't count.
func (c *calls) unrepeated(doubts []string, what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range doubts {
		if _, asked := c.asked[call]; !state.IsMark(call) && !asked {
			return fmt.Errorf("%w: %s without the call %s, which an earlier attempt may have made", ErrPhaseOrder, what, call)
		}
	}
	return nil
}
