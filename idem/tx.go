package idem

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// Write is one of the user's own writes, or a check of an item that was read. A Write
// commits together with the record. Writes come from functions of the store's package, such
// as dynamo.Put.
type Write = store.Write

// Tx collects the writes and jobs of one run of a phase. The writes and jobs take effect
// together with the recovery point, or not at all. Each run gets a new Tx. A Tx is safe for
// concurrent use until the phase's function returns. Afterwards, calls of Write and Stage
// are ignored, and Key panics.
type Tx struct {
	id        string                  // the operation's id
	made      map[string]int          // calls of earlier phases, counted by name
	repeats   bool                    // an earlier attempt may have made this phase's calls
	called    func(string)            // is told the name of each call; nil if the phase is not a Foreign
	checkJobs func([]Job) error       // returns an error if the jobs of this run can't be committed together
	refuse    context.CancelCauseFunc // ends the context of a Foreign at the first error; nil in other phases
	others    func(call string) error // returns an error if another phase may have made the call; nil if the phase is not a Foreign
	only      string                  // the one call of a phase with a look-up; "" in other phases

	mu     sync.Mutex
	closed bool
	writes []Write
	jobs   []Job
	calls  []string // names of the calls whose keys were requested
	err    error    // the first error of a write, job or key
}

// Write adds writes to the commit. The phase fails with [ErrWrite] after a nil write, a
// write that could not be built (Write.Err), or a write in a [Foreign]. The store
// refuses a commit with two writes of the same item. A checked read and a write of the
// same item count as one write; only a dynamo.Raw write can't be combined with a
// checked read.
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
		tx.refuseInForeign("a write or a checked read")
		tx.writes = append(tx.writes, w)
	}
}

// Stage adds jobs to the commit. After the commit each job is delivered at least once,
// under the job's own id ([state.JobID]). docs/start/jobs.md has the exceptions:
// cancelled jobs, and jobs that can't be delivered. If the phase does not commit, the
// jobs are never delivered. Three kinds of jobs fail the phase ([ErrWrite],
// [store.ErrTooLarge]):
//
//   - a job in a [Foreign];
//   - an invalid job: without a Kind, with a Kind of more than 128 bytes, with a Kind
//     or Group that isn't UTF-8, with Tries, Failed or Begun, with an At further in the
//     future than [Options.Retention], with Args that aren't JSON, or with Args of more
//     than 250 KiB in the form that a sink sends;
//   - a job that doesn't fit into the record, or is one too many: at most 50 jobs may
//     wait in a record.
func (tx *Tx) Stage(jobs ...Job) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.closed {
		return
	}
	tx.jobs = append(tx.jobs, jobs...)
	tx.refuseInForeign("a job")
	if tx.err != nil {
		return
	}
	if err := tx.checkJobs(tx.jobs); err != nil {
		tx.fail(err)
	}
}

// Key returns the idempotency key, a UUID, for a call to the system that service names.
// The key is the same for every attempt at this operation. Any other operation has
// another key, even if a client reuses its own key for a later operation.
//
// The key is made from the operation, the service and the step. A call without a step
// has a number instead. The number counts the earlier phases that have called service
// without a step, and the earlier phases whose result a person has given. The phase's
// name doesn't matter, nor do calls to other services. But an operation under way
// survives only the changes of phases that docs/operate/changes.md lists. Services and
// steps must not be renamed: under the new name the call would have another key, and so
// could be made twice.
//
// If a phase calls a service more than once, give each call a step. Key returns the
// same key again if one run of a phase calls a service twice without a step, or if this
// or an earlier phase has used the step. The phase then fails ([ErrKeyReused]). So if a
// loop repeats a call, the other system gets the same key, and doesn't carry out the
// call twice.
//
// Key panics if the phase's function has already returned, because the call could no
// longer be recorded. This happens in a goroutine that outlives the function.
func (tx *Tx) Key(service string, step ...string) string {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.closed {
		panic(fmt.Sprintf("idem: Tx.Key(%q) after its phase has ended: its call would not be recorded, and the key stand for two calls", service)) //nolint:forbidigo // a mistake in the program, before a call that nobody could account for
	}
	call := callName(tx.made, service, step)
	if slices.Contains(tx.calls, call) || len(step) > 0 && tx.made[call] > 0 {
		tx.fail(fmt.Errorf("%w: %s", ErrKeyReused, strings.Join(append([]string{service}, step...), ", ")))
	}
	if tx.only != "" && call != tx.only {
		tx.fail(fmt.Errorf("%w: %s: a phase with a look-up makes one call, %s, as Sends declares it", ErrKeyReused, call, tx.only))
	}
	if tx.others != nil {
		if err := tx.others(call); err != nil {
			tx.fail(err)
		}
	}
	tx.calls = state.With(tx.calls, call)
	if tx.called != nil {
		tx.called(call)
	}
	return state.DerivedKey(tx.id, call)
}

// Repeats reports whether an earlier attempt may have made this phase's calls, because
// the attempt died, or failed in a call. This remains so if a person takes the risk of
// a second call ([Settlement.RiskTwice]). If Repeats returns true, trust only an answer
// that gives the outcome of the earlier call. Another answer (401, 404, a refusal of
// parameters) does not prove that the earlier call had no effect.
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

// refuseInForeign refuses writes and jobs in a Foreign phase. If a look-up or a person
// supplies the result of the call, the phase's function doesn't run, so its writes and jobs
// would be lost.
func (tx *Tx) refuseInForeign(what string) {
	if tx.called != nil {
		tx.fail(fmt.Errorf("%w: %s in a Foreign: hand it to a following Atomic or Finish", ErrWrite, what))
	}
}

func (tx *Tx) fail(err error) {
	if tx.err == nil {
		tx.err = err
	}
	if tx.refuse != nil {
		tx.refuse(tx.err)
	}
}

// Tx.close ends the collection, so that a goroutine that is still running can't change
// the commit.
func (tx *Tx) close() (collected, error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.closed = true
	return collected{writes: slices.Clone(tx.writes), jobs: slices.Clone(tx.jobs), calls: tx.calls}, tx.err
}

// The type collected holds the writes, jobs and calls of one run of a phase.
type collected struct {
	writes []Write
	jobs   []Job
	calls  []string // names of the calls, from [Tx.Key]
}
