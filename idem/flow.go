package idem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// The state of an attempt's phases. Phases run in step.go and commit in
// commit.go.

// flow is the course of one attempt through its handler's phases. rec is the
// record as this attempt last wrote or saw the record, or nil before the claim
// (MergeClaim).
type flow struct {
	a *attempt

	mu      sync.Mutex
	rec     *store.Record
	passed  int             // phases completed in this run, committed or pending
	names   map[string]bool // names of all phases so far
	busy    bool            // a phase is running
	over    bool            // the handler has returned
	left    bool            // the handler returned while a phase was running
	asked   map[string]bool // calls of this run's Foreigns: true until they are committed
	entered bool            // a Foreign is running or has failed
	err     error           // error of the first failed phase

	pending []store.Phase  // results that join the next commit
	waiting map[string]Job // their jobs
	calls   []string       // and calls

	sent  map[string]string // hashes of the data that this run's calls send, if known
	loose []Job             // jobs staged since the last phase, for the next commit

	statusOnly bool            // store only the answer's status
	kept       *store.Overflow // body that a store has written for an answer that is not stored yet

	started time.Time                // begin of the phase that runs; zero without a hook for it
	took    map[string]time.Duration // of pending phases

	renewing renewals
	turn     chan struct{}           // a writer holds the only slot; nil without renewals
	lost     context.CancelCauseFunc // ends the handler's context; nil if that context is left unchanged

	end     *ending // nil, or &ending
	ending  ending
	within  opContext // the handler's, in the same block
	restart bool      // a merged claim took a record over: run the handler again from that record
}

// ending is the result of an operation that ended in a phase.
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

// fail locks f.mu and calls failed.
func (f *flow) fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed(err)
}

// failed records the failure of a phase: an answer of the handler would now be
// incomplete. f.mu must be locked.
func (f *flow) failed(err error) error {
	err = f.a.phaseError("phase", err)
	if f.err == nil {
		f.err = err
	}
	return err
}

// failure returns the error of the first failed phase, or nil.
func (f *flow) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// leftover returns an error if the handler ended before a recorded phase, or
// before a call that an earlier attempt began and whose outcome is unknown: an
// answer must not hide either.
func (f *flow) leftover() error {
	if f.rec == nil {
		return nil
	}
	if f.passed < len(f.rec.Phases) {
		return fmt.Errorf("%w: the handler ended without %q, which is recorded", ErrPhaseOrder, f.rec.Phases[f.passed].Name)
	}
	return f.unrepeated("the handler ended")
}

// unrepeated returns an error if an earlier attempt may have made a call that
// this run has not repeated: the outcome of that call would stay unknown.
func (f *flow) unrepeated(what string) error {
	for _, call := range f.rec.Doubts {
		if _, asked := f.asked[call]; call != store.AnyCall && !asked {
			return fmt.Errorf("%w: %s without the call %s, which an earlier attempt may have made", ErrPhaseOrder, what, call)
		}
	}
	return nil
}

// complete returns an error if a recorded phase was skipped.
func (f *flow) complete() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.leftover(); err != nil {
		return f.failed(err)
	}
	return nil
}

// stage keeps jobs for the next commit.
func (f *flow) stage(ctx context.Context, jobs []Job) error {
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
	f.a.traced(ctx, f.loose[len(f.loose)-len(jobs):])
	if f.rec != nil && f.passed < len(f.rec.Phases) {
		return nil // the recorded phase that follows already has the jobs
	}
	if _, err := f.stagedJobs(ctx, nil); err != nil {
		return f.failed(err)
	}
	return nil
}

// stagedJobs returns all jobs of the next commit. A job's name in the record is
// the position of its phase and its index in the phase, so the same run of a
// handler gives the same names.
func (f *flow) stagedJobs(ctx context.Context, jobs []Job) (map[string]Job, error) {
	if len(f.waiting)+len(f.loose)+len(jobs) == 0 {
		return nil, nil
	}
	all := make(map[string]Job, len(f.waiting)+len(f.loose)+len(jobs))
	maps.Copy(all, f.waiting)
	for i, j := range slices.Concat(f.loose, jobs) {
		all[strconv.Itoa(f.passed)+"."+strconv.Itoa(i)] = j
	}
	if n := len(all) + f.undelivered(ctx, len(all)); n > maxJobs {
		return nil, fmt.Errorf("%w: %d jobs are waiting in the record: at most %d", ErrWrite, n, maxJobs)
	}
	return all, nil
}

// undelivered returns how many jobs of earlier commits the record has. This attempt's
// view of the record keeps those that were delivered since: if they would be too many
// beside more jobs, undelivered reads the record. f.mu must be locked.
func (f *flow) undelivered(ctx context.Context, more int) int {
	if f.rec == nil || more+len(f.rec.Jobs) <= maxJobs {
		return 0 // few enough, however many
	}
	now, err := f.a.reads(ctx, f.a.until(f.rec))
	if err != nil || now == nil {
		return len(f.rec.Jobs)
	}
	return len(now.Jobs)
}

// outstanding reports whether results or jobs wait for a commit.
func (f *flow) outstanding() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pending)+len(f.waiting)+len(f.loose) > 0
}

// called records that the key of call was handed out.
func (f *flow) called(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked == nil {
		f.asked = make(map[string]bool)
	}
	f.asked[call] = true
}

// recorded marks calls as recorded: their outcome is no longer in doubt.
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

// calledOut returns the unrecorded calls that this run may have made, or nil.
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
		out = append(out, store.AnyCall) // a call without a key, or a call that has not requested its key yet
	}
	return out
}

// sentOut returns hashes of the data that this run's unrecorded calls have sent.
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

// giveBack describes an attempt without an answer. If the program refuses to
// continue, Why is the phase's error, which the handler may have hidden.
func (f *flow) giveBack() state.GiveBack {
	b := state.GiveBack{Calls: f.calledOut(), Sent: f.sentOut()}
	if err := f.failure(); refuses(err) {
		b.Refusal, b.Why = err, redact.Error(err)
	}
	return b
}

// refuses reports whether err is a mistake that the same program will always
// repeat with this record. A retry doesn't help: people have to change the
// program or the record.
func refuses(err error) bool {
	for _, mistake := range []error{ErrPhaseOrder, ErrResult, ErrWrite, ErrKeyReused, ErrDeliveryKey, store.ErrTooLarge} {
		if errors.Is(err, mistake) {
			return true
		}
	}
	return false
}

// lastResult returns the result of the last committed phase. The stored result
// counts, even if this run made a different result.
func (f *flow) lastResult() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rec.Phases[len(f.rec.Phases)-1].Result
}

// stop ends the operation with an answer that the handler can no longer change.
func (f *flow) stop(res Result, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending = ending{res, err}
	f.end = &f.ending
}

func (f *flow) ended() *ending {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// close records that the handler has returned. If a phase is still running, the
// handler didn't wait for its result, and the phase counts as failed.
func (f *flow) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	if f.busy {
		f.left = true
		_ = f.failed(fmt.Errorf("%w: the handler returned while a phase was running", ErrPhaseOrder))
	}
}

// leftBehind reports whether the handler returned while a phase was running.
func (f *flow) leftBehind() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
}
