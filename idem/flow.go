package idem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
	"github.com/samekey/samekey/internal/state"
)

// What an attempt's phases have come to so far. Phases run in step.go and
// commit in commit.go.

// flow is the course of one attempt through its handler's phases. rec is the
// record as this attempt last wrote or saw it, nil while the claim is still to
// come (MergeClaim).
type flow struct {
	a *attempt

	mu      sync.Mutex
	rec     *store.Record
	passed  int             // phases this run has behind it, committed and pending
	names   map[string]bool // of phases, so far
	busy    bool            // a phase is running
	over    bool            // the handler has returned
	left    bool            // while a phase was running
	asked   map[string]bool // calls of this run's Foreigns: true until they are committed
	entered bool            // a Foreign runs, or has failed
	err     error           // why the first failed phase failed

	pending []store.Phase  // results that join the next commit
	waiting map[string]Job // their jobs
	calls   []string       // and calls

	sent  map[string]string // hashes of what this run's calls send, where that is known
	loose []Job             // staged since the last phase, for the next commit

	statusOnly bool            // the answer itself can't be stored
	kept       *store.Overflow // where a store has put the body of an answer that is not stored yet

	renewals int64 // of the lease, by this attempt

	turn chan struct{}           // who has put something in may write; nil: nobody else does
	lost context.CancelCauseFunc // ends the handler's context; nil where that is left alone

	end     *ending
	restart bool // a merged claim took a record over: run the handler again, from it
}

// ending is the answer of an operation that ended in a phase.
type ending struct {
	res Result
	err error
}

func (f *flow) record() *store.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rec
}

func (f *flow) set(rec *store.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rec = rec
}

func (f *flow) id() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rec != nil {
		return f.rec.ID
	}
	return f.a.id
}

// fail is failed, for who doesn't hold the lock.
func (f *flow) fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed(err)
}

// failed remembers that a phase failed: what the handler then answers would
// have a hole in it.
func (f *flow) failed(err error) error {
	err = f.a.phaseError("phase", err)
	if f.err == nil {
		f.err = err
	}
	return err
}

// failure is why the first failed phase failed; nil if none did.
func (f *flow) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// leftover says that the handler ended before a phase that is recorded, or that
// was begun by an attempt that never told how it ended: an answer must not
// cover that up.
func (f *flow) leftover() error {
	if f.rec == nil {
		return nil
	}
	if f.passed < len(f.rec.Phases) {
		return fmt.Errorf("%w: the handler ended without %q, which is recorded", ErrPhaseOrder, f.rec.Phases[f.passed].Name)
	}
	return f.unrepeated("the handler ended")
}

// unrepeated refuses to go on past a call that an earlier attempt may have made,
// and that this one has not repeated: nothing would tell what it came to.
func (f *flow) unrepeated(what string) error {
	for _, call := range f.rec.Doubts {
		if _, asked := f.asked[call]; call != store.AnyCall && !asked {
			return fmt.Errorf("%w: %s without the call %s, which an earlier attempt may have made", ErrPhaseOrder, what, call)
		}
	}
	return nil
}

// complete says what is missing for the answer to be stored.
func (f *flow) complete() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.leftover(); err != nil {
		return f.failed(err)
	}
	return nil
}

// stage keeps jobs for the next commit.
func (f *flow) stage(jobs []Job) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.end != nil:
		return ErrAnswered
	case f.over:
		return f.failed(fmt.Errorf("%w: jobs are staged after the handler has returned", ErrPhaseOrder))
	case f.busy:
		return f.failed(fmt.Errorf("%w: Stage while a phase runs: use its Tx", ErrPhaseOrder))
	}
	for _, j := range jobs {
		if err := checkJob(j); err != nil {
			return f.failed(err)
		}
	}
	f.loose = append(f.loose, jobs...)
	if f.rec != nil && f.passed < len(f.rec.Phases) {
		return nil // a recorded phase follows, which has them already
	}
	if _, err := f.stagedJobs(nil); err != nil {
		return f.failed(err)
	}
	return nil
}

// stagedJobs returns everything that joins the next commit. A job's name in the record
// is the position of its phase and its own in that, so the same run of a handler gives
// the same names.
func (f *flow) stagedJobs(jobs []Job) (map[string]Job, error) {
	if len(f.waiting)+len(f.loose)+len(jobs) == 0 {
		return nil, nil
	}
	all := make(map[string]Job, len(f.waiting)+len(f.loose)+len(jobs))
	maps.Copy(all, f.waiting)
	for i, j := range slices.Concat(f.loose, jobs) {
		all[strconv.Itoa(f.passed)+"."+strconv.Itoa(i)] = j
	}
	n := len(all)
	if f.rec != nil {
		n += len(f.rec.Jobs)
	}
	if n > maxJobs {
		return nil, fmt.Errorf("%w: %d jobs are waiting in the record: at most %d", ErrWrite, n, maxJobs)
	}
	return all, nil
}

// outstanding reports whether results or jobs wait for a commit.
func (f *flow) outstanding() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pending)+len(f.waiting)+len(f.loose) > 0
}

// called notes that a key is out.
func (f *flow) called(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked == nil {
		f.asked = make(map[string]bool)
	}
	f.asked[call] = true
}

// recorded notes that nothing about calls is in doubt any more.
func (f *flow) recorded(calls []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entered = false
	for _, call := range calls {
		if f.asked[call] {
			f.asked[call] = false
		}
	}
}

// calledOut names the calls that this run may have made and that are not
// recorded; nil if there are none.
func (f *flow) calledOut() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for call, open := range f.asked {
		if open {
			out = append(out, call)
		}
	}
	if f.entered && len(out) == 0 || f.left {
		out = append(out, store.AnyCall) // without a key, or its key is still to be asked for
	}
	return out
}

// sentOut is what this run's calls have sent that are not recorded.
func (f *flow) sentOut() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[string]string)
	for call, open := range f.asked {
		if hash := f.sent[call]; open && hash != "" {
			out[call] = hash
		}
	}
	return out
}

// giveBack is what there is to say of an attempt without an answer. That the
// program refuses to go on is told in the words of its phase, which the handler may
// have kept to itself.
func (f *flow) giveBack() state.GiveBack {
	f.mu.Lock()
	renewals := f.renewals
	f.mu.Unlock()
	b := state.GiveBack{Calls: f.calledOut(), Sent: f.sentOut(), Renewed: renewals}
	if err := f.failure(); refuses(err) {
		b.Refusal, b.Why = err, redact.Error(err)
	}
	return b
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

// lastResult is the result of the phase that was committed last, from the
// record: what it holds counts, not what this run made.
func (f *flow) lastResult() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rec.Phases[len(f.rec.Phases)-1].Result
}

// stop ends the operation with an answer that the handler no longer changes.
func (f *flow) stop(res Result, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = &ending{res, err}
}

func (f *flow) ended() *ending {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// close notes that the handler has returned. A phase that still runs was not
// waited for: its result is missing from the answer.
func (f *flow) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	if f.busy {
		f.left = true
		_ = f.failed(fmt.Errorf("%w: the handler returned while a phase was running", ErrPhaseOrder))
	}
}

// leftBehind reports whether the handler has returned while a phase was running.
func (f *flow) leftBehind() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
}
