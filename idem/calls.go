package idem

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/samekey/samekey/internal/state"
)

// calls logs the calls that the Foreign phases of a run have made.
type calls struct {
	mu    sync.Mutex
	asked map[string]bool   // calls whose key the phase has requested: true until the call is committed
	sent  map[string]string // hashes of the data that the calls send, if known
	marks []string          // marks of the Foreign phase that runs or has failed; nil if there is none
}

// enter records that a Foreign phase runs. The phase may make calls without a key.
func (c *calls) enter(phase string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = state.Marks(phase)
}

// missed reports whether doubts contain the mark of a call that this run has not repeated.
// Marks of the running Foreign phase are excluded. Commits have removed the marks of their
// phases from doubts.
func (c *calls) missed(doubts []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(doubts, func(call string) bool { return state.IsMark(call) && !slices.Contains(c.marks, call) })
}

// keyGiven records that the key of call was handed out.
func (c *calls) keyGiven(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = make(map[string]bool)
	}
	c.asked[call] = true
}

// send records the hashes of the data that calls send.
func (c *calls) send(hashes map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = state.Sending(hashes, c.sent)
}

// recorded marks calls as recorded: their outcome is no longer in doubt.
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

// out returns the unrecorded calls that the run may have made, or nil. left says that a
// phase was left running, and may still call.
func (c *calls) out(left bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for call, open := range c.asked {
		if open {
			out = append(out, call)
		}
	}
	if len(c.marks) > 0 && len(out) == 0 || left {
		out = append(out, state.AnyCall) // a call without a key, or a call that has not requested its key yet
	}
	return out
}

// sentOut returns hashes of the data that the unrecorded calls have sent.
func (c *calls) sentOut() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := maps.Clone(c.sent)
	maps.DeleteFunc(out, func(call, hash string) bool { return !c.asked[call] || hash == "" })
	return out
}

// unrepeated returns an error if this run has not repeated one of the calls in doubts,
// which earlier attempts may have made. The outcome of that call would stay unknown.
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
