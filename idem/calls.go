package idem

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/samekey/samekey/internal/state"
)

// A calls value records the calls that a run's Foreign phases have made.
type calls struct {
	mu    sync.Mutex
	asked map[string]bool   // the calls whose key was requested; the value is true until the call's outcome is committed
	sent  map[string]string // hashes of the data that the calls send, if known
	marks []string          // marks of the Foreign phase that runs or has failed; nil without such a phase
}

// The method enter records that a Foreign phase runs, since the phase may make calls
// without asking for a key.
func (c *calls) enter(phase string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = state.Marks(phase)
}

// calls.missed reports whether the record has the mark of a call that this run has not
// repeated. The parameter doubts is the record's list of calls in doubt, with the marks.
// The marks of a Foreign phase that runs or has failed in this run don't count. The marks
// of committed phases are no longer in the list.
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

// send records a hash of each call's data.
func (c *calls) send(hashes map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = state.Sending(hashes, c.sent)
}

// The method recorded ends the doubt about the given calls, whose outcomes are now stored.
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

// The method out returns the calls that the run may have made and whose outcome isn't
// recorded. The parameter outlived says that a phase still runs and may make more calls.
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
		out = append(out, state.AnyCall) // a call without a key, or a call whose key isn't requested yet
	}
	return out
}

// For each call whose outcome isn't recorded, sentOut returns the hash of the sent data.
func (c *calls) sentOut() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := maps.Clone(c.sent)
	maps.DeleteFunc(out, func(call, hash string) bool { return !c.asked[call] || hash == "" })
	return out
}

// unrepeated returns an error if this run has left out a call that is named in the
// parameter doubts, the record's list of calls in doubt. An earlier attempt may have made
// that call: if it isn't repeated, its outcome stays unknown.
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
