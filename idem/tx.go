package idem

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// Write is one of the user's own writes, or a check of something that was read,
// which commits together with the record. It is made by a store's package
// (dynamo.Put and its like).
type Write = store.Write

// Tx collects what one run of a phase commits: nothing handed to it has any
// effect before, and all of it has, together with the recovery point, or
// nothing. It is made anew for each run. It is safe for concurrent use until
// the phase's function returns; later calls are ignored.
type Tx struct {
	id      string         // the operation's
	phase   string         // only the keys of older records are made from it
	made    map[string]int // the calls of the phases before this one; nil in an older record
	repeats bool           // an earlier attempt may have made this phase's calls
	called  func(string)   // is told of each call; nil in a phase that makes none

	mu     sync.Mutex
	closed bool
	writes []Write
	jobs   []Job
	calls  []string // that keys were asked for
	err    error    // the first thing that can't be committed
}

// Write adds writes to the commit. A write that could not be built
// (Write.Err), or nil, fails the phase with [ErrWrite]. Writes of one item more
// than once are refused by the store.
func (tx *Tx) Write(writes ...Write) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.closed {
		return
	}
	for _, w := range writes {
		if w == nil {
			tx.fail(fmt.Errorf("%w: a write is nil", ErrWrite))
			continue
		}
		if err := w.Err(); err != nil {
			tx.fail(fmt.Errorf("%w: %w", ErrWrite, err))
		}
		tx.writes = append(tx.writes, w)
	}
}

// Stage adds jobs to the commit: they are handed on after it, at least once,
// each under an id of its own ([jobs.JobID]), and never if the phase does not commit.
func (tx *Tx) Stage(jobs ...Job) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.closed {
		return
	}
	for _, j := range jobs {
		if err := checkJob(j); err != nil {
			tx.fail(err)
		}
	}
	tx.jobs = append(tx.jobs, jobs...)
}

// Key returns the idempotency key for a call to service: the same for every
// attempt at this operation, another one for any other operation, also once the
// client's key has expired and is used again (R61, R62). It has the form of a
// UUID.
//
// It is made from the operation, the service, and the step, if one is named;
// else from how many calls without a step the phases before this one made to the
// service. The name of the phase and its place don't matter, so phases can be
// renamed, inserted and removed while operations are under way. A service or a
// step can't: under another name it is another call.
//
// A phase that calls one service more than once names each call by a step. A
// second call without one in a run of a phase, and a step that this or an
// earlier phase has used, gets the key it got before, and fails the phase
// ([ErrKeyReused]): so a loop that tries a call again never makes it twice.
func (tx *Tx) Key(service string, step ...string) string {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	call := callName(tx.made, service, step)
	if slices.Contains(tx.calls, call) || len(step) > 0 && tx.made[call] > 0 {
		tx.fail(fmt.Errorf("%w: %s", ErrKeyReused, strings.Join(append([]string{service}, step...), ", ")))
	}
	if !tx.closed {
		tx.calls = state.With(tx.calls, call)
		if tx.called != nil {
			tx.called(call)
		}
	}
	if tx.made == nil {
		return derived(append([]string{tx.id, tx.phase, service}, step...))
	}
	return derived([]string{tx.id, call})
}

// Repeats reports whether an earlier attempt may have made this phase's calls:
// it died, or failed in a call. Then an answer that isn't the call's own outcome
// (401, 404, a refusal of parameters) does not mean that nothing has happened.
func (tx *Tx) Repeats() bool { return tx.repeats }

// callName names a call: "service#2", or "service/step".
func callName(made map[string]int, service string, step []string) string {
	name := url.PathEscape(service)
	if len(step) == 0 {
		name += "#"
		return name + strconv.Itoa(made[name]+made[state.Skipped]+1)
	}
	parts := []string{name}
	for _, s := range step {
		parts = append(parts, url.PathEscape(s))
	}
	return strings.Join(parts, "/")
}

// derived hashes parts, each after its length so that no two lists are alike,
// into a UUID of version 8 (RFC 9562, 5.8), which every service takes.
func derived(parts []string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	u := h.Sum(nil)[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

func (tx *Tx) fail(err error) {
	if tx.err == nil {
		tx.err = err
	}
}

// close ends the collecting, so that a goroutine left behind can't change what
// is being sent.
func (tx *Tx) close() (collected, error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.closed = true
	return collected{writes: slices.Clone(tx.writes), jobs: slices.Clone(tx.jobs), calls: tx.calls}, tx.err
}

// collected is what a run of a phase commits besides its result.
type collected struct {
	writes []Write
	jobs   []Job
	calls  []string // as [Tx.Key] named them

	sent map[string]string // of the calls that begin now
}
