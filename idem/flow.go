package idem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
	"github.com/samekey/samekey/internal/state"
	"maps"
	"slices"
	"sync"
	"time"
)

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

func flowOf(ctx context.Context) (*flow, error) {
	op, ok := FromContext(ctx)
	if !ok {
		return nil, fmt.Errorf("%w: does the route require a key, and is this the handler's context?", ErrNoOperation)
	}
	return op.flow, nil
}

// do takes a phase from its name to its commit. raw is its result.
func (f *flow) do(ctx context.Context, s step, fn func(context.Context, *Tx) ([]byte, error)) (raw []byte, err error) {
	if raw, recorded, err := f.begin(s); recorded || err != nil {
		return raw, err
	}
	back := false
	defer func() { // also where fn panics
		f.mu.Lock()
		defer f.mu.Unlock()
		f.busy = false
		if !back {
			err = errPanic
		}
		if _, ended := errors.AsType[*answered](err); err != nil && !ended && f.err == nil {
			f.err = err
		}
	}()
	if s.kind == foreign {
		raw, err = f.foreign(ctx, s, fn)
	} else {
		raw, err = f.atomic(ctx, s, fn)
	}
	back = true
	return raw, err
}

// begin lets a phase run, or returns what is recorded of it.
func (f *flow) begin(s step) (raw []byte, recorded bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.over:
		return nil, false, f.failed(fmt.Errorf("%w: %q begins after the handler has returned", ErrPhaseOrder, s.name))
	case f.busy:
		return nil, false, f.failed(fmt.Errorf("%w: %q begins while another phase runs", ErrPhaseOrder, s.name))
	case f.end != nil:
		return nil, false, ErrAnswered
	case f.err != nil:
		return nil, false, fmt.Errorf("%w: %w", ErrPhaseFailed, f.err)
	case s.kind != last && f.names[s.name]:
		return nil, false, f.failed(fmt.Errorf("%w: a second phase named %q", ErrPhaseOrder, s.name))
	}
	if err := s.check(); err != nil {
		return nil, false, f.failed(err)
	}
	if f.names == nil {
		f.names = make(map[string]bool)
	}
	f.names[s.name] = true
	raw, recorded, err = f.recall(s)
	f.busy = !recorded && err == nil
	return raw, recorded, err
}

// recall finds the phase in the record, where the one at its position must be
// this very one: anything else means that the handler's phases have changed.
func (f *flow) recall(s step) (raw []byte, recorded bool, err error) {
	if f.rec == nil || f.passed >= len(f.rec.Phases) {
		return nil, false, nil
	}
	p := f.rec.Phases[f.passed]
	if s.kind == last || p.Name != s.name {
		return nil, false, f.failed(fmt.Errorf("%w: %q is next, but %q is recorded there", ErrPhaseOrder, s.name, p.Name))
	}
	if p.Intent && s.kind != foreign {
		return nil, false, f.failed(fmt.Errorf("%w: %q is recorded as a call whose outcome is unknown", ErrPhaseOrder, s.name))
	}
	if p.Intent {
		return nil, false, nil // begun by an attempt that never told how it ended: foreign decides
	}
	f.passed++
	f.loose = nil // committed with the phase
	return slices.Clone(p.Result), true, nil
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

// rerunFor is for how long an Atomic runs again after conflicts.
const rerunFor = 5 * time.Second

// atomic runs fn until its commit meets no conflict.
func (f *flow) atomic(ctx context.Context, s step, fn func(context.Context, *Tx) ([]byte, error)) ([]byte, error) {
	giveUp := time.Now().Add(rerunFor)
	for round := 0; ; round++ {
		tx := f.tx(s)
		raw, err := fn(ctx, tx)
		raw, err = f.outcome(ctx, s, tx, raw, err)
		if !errors.Is(err, ErrConflict) || !f.a.rerun(ctx, round, giveUp) {
			return raw, err
		}
	}
}

// rerun waits before the next run of an Atomic; false where its time is over.
func (a *attempt) rerun(ctx context.Context, round int, giveUp time.Time) bool {
	return pause(ctx, round) && time.Now().Before(giveUp) && time.Until(a.deadline) > a.opt.Reserve
}

// foreign claims and commits what is outstanding, calls fn once, and commits.
func (f *flow) foreign(ctx context.Context, s step, fn func(context.Context, *Tx) ([]byte, error)) ([]byte, error) {
	f.mu.Lock()
	leading := f.rec == nil && len(f.pending) == 0
	outstanding := f.rec == nil || len(f.pending) > 0
	begun := f.rec != nil && f.passed < len(f.rec.Phases)
	f.mu.Unlock()
	if begun {
		return nil, f.giveUp(ctx, fmt.Sprintf("the outcome of phase %q is unknown: an attempt began the call and never came back", s.name))
	}
	if err := f.reaches(fmt.Sprintf("phase %q calls another system", s.name)); err != nil {
		return nil, f.fail(err)
	}
	sent, err := f.sends(s)
	if err != nil {
		return nil, f.fail(err)
	}
	if since := f.forgotten(s); !since.IsZero() {
		return nil, f.giveUpCall(ctx, s, fmt.Sprintf("the outcome of phase %q is unknown: an attempt may have made the call since %s, and its provider may have forgotten that",
			s.name, since.UTC().Format(time.RFC3339)))
	}
	if s.intent {
		if err := f.intend(ctx, s); err != nil {
			return nil, err
		}
	} else if outstanding {
		if err := f.commit(ctx, nil, collected{sent: sent}, false); err != nil {
			return nil, f.commitFailed(s, err)
		}
		s.joins = leading
	}
	if call := f.differs(sent); call != "" && !s.intent {
		return nil, f.giveUpCall(ctx, s, fmt.Sprintf("the outcome of phase %q is unknown: the call %s may have been made with other parameters than it would send now", s.name, call))
	}
	if err := f.alive(ctx, s); err != nil {
		if !s.intent {
			return nil, err
		}
		if rerr := f.replaceIntent(ctx, nil); rerr != nil {
			return nil, f.commitFailed(s, rerr)
		}
		return nil, err
	}
	f.mu.Lock()
	f.entered = true
	f.mu.Unlock()
	tx := f.tx(s)
	raw, err := fn(ctx, tx)
	if s.intent {
		return f.settleIntent(ctx, s, tx, raw, err)
	}
	return f.outcome(ctx, s, tx, raw, err)
}

// reaches refuses to reach other systems under a key that names a delivery.
func (f *flow) reaches(what string) error {
	if state.MayReach(f.a.req.DeliveryKey, f.record()) {
		return nil
	}
	return fmt.Errorf("%w: %s, and would do so again, under a new derived key, once the message comes back from a dead-letter queue with another id; "+
		"have a key that names the work: lambda.Batch.WithKey or WithBodyKey, or the message attribute lambda.KeyAttribute; "+
		"or say that you accept it: lambda.Batch.CallsAgainAfterRedrive", ErrDeliveryKey, what)
}

// intend commits that a call begins which can't be repeated, with the claim or
// the results that wait for a commit.
func (f *flow) intend(ctx context.Context, s step) error {
	f.mu.Lock()
	var err error
	if len(f.loose) > 0 {
		// Whoever settles its outcome could not stage them.
		err = fmt.Errorf("%w: jobs are staged for %q, which is NotIdempotent: stage them with another phase", ErrWrite, s.name)
	} else if f.rec != nil {
		err = f.unrepeated(fmt.Sprintf("%q, which is NotIdempotent, begins", s.name))
	}
	f.mu.Unlock()
	if err != nil {
		return f.fail(err)
	}
	if err := f.alive(ctx, s); err != nil {
		return err
	}
	if err := f.commit(ctx, []store.Phase{{Name: s.name, Intent: true}}, collected{}, false); err != nil {
		return f.commitFailed(s, err)
	}
	return nil
}

// tx is an empty Tx for a run of s.
func (f *flow) tx(s step) *Tx {
	f.mu.Lock()
	defer f.mu.Unlock()
	tx := &Tx{id: f.a.id, phase: s.name, made: map[string]int{}}
	if f.rec != nil {
		tx.id, tx.made, tx.repeats = f.rec.ID, f.rec.Calls, len(f.rec.Doubts) > 0
	}
	tx.made = state.Tally(tx.made, f.calls)
	if s.kind == foreign {
		tx.called = f.called
	}
	return tx
}

// sends is what s says that its calls send, as hashes by the calls' names.
func (f *flow) sends(s step) (map[string]string, error) {
	if len(s.sends) == 0 {
		return nil, nil
	}
	tx := f.tx(s)
	sent := make(map[string]string, len(s.sends))
	for _, one := range s.sends {
		raw, err := json.Marshal(one.v)
		if err != nil {
			return nil, fmt.Errorf("%w: what %q sends: %w", ErrResult, s.name, err)
		}
		sum := sha256.Sum256(slices.Concat([]byte(tx.id), raw))
		sent[callName(tx.made, one.service, one.step)] = hex.EncodeToString(sum[:16])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = state.Sending(sent, f.sent)
	return sent, nil
}

// differs names a call that may have been made with something else than is to be
// sent now; "" if none is known of.
func (f *flow) differs(sent map[string]string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for call, hash := range sent {
		if first := f.rec.Sent[call]; first != "" && first != hash {
			return call
		}
	}
	return ""
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

// forgotten returns since when a call of s may have been made, where that is so
// long ago that its provider may have forgotten the key; else the zero time.
func (f *flow) forgotten(s step) (since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rec == nil || f.a.opt.Now().Sub(f.rec.DoubtSince) < s.memory {
		return time.Time{}
	}
	return f.rec.DoubtSince // zero where no call is in doubt
}

// alive refuses a call whose context is over: it would fail before anything is
// sent, and whether that is so nobody could tell from its error.
func (f *flow) alive(ctx context.Context, s step) error {
	if ctx.Err() == nil {
		return nil
	}
	return f.fail(fmt.Errorf("%w: phase %q is not begun: %w", ErrNoTime, s.name, context.Cause(ctx)))
}

// outcome commits what a run of a phase came to.
func (f *flow) outcome(ctx context.Context, s step, tx *Tx, raw []byte, err error) ([]byte, error) {
	got, txErr := tx.close()
	noop := errors.Is(err, NoOp)
	answer, responds := errors.AsType[*answered](err)
	switch {
	case errors.Is(err, ErrResult):
		return nil, f.fail(err)
	case err != nil && !noop && !responds:
		return nil, err
	case txErr != nil:
		return nil, f.fail(txErr)
	case noop && (s.kind != atomically || len(got.writes)+len(got.jobs) > 0):
		return nil, f.fail(fmt.Errorf("%w: NoOp is for an Atomic without writes and jobs", ErrWrite))
	case s.deferred && !responds && len(got.writes) > 0:
		return nil, f.fail(fmt.Errorf("%w: %q is Deferred: write in the phase that follows", ErrWrite, s.name))
	}
	rerun := s.kind != foreign
	switch {
	case responds:
		resp, rerr := f.a.response(answer.v)
		if rerr != nil {
			return nil, f.fail(rerr)
		}
		if ferr := f.finish(ctx, resp, got.writes, got.jobs, rerun); ferr != nil {
			return nil, f.commitFailed(s, ferr)
		}
		return nil, err
	case noop || s.deferred || s.joins && len(got.writes) == 0:
		return raw, f.postpone(store.Phase{Name: s.name, Result: raw}, got)
	}
	if err := f.commit(ctx, []store.Phase{{Name: s.name, Result: raw}}, got, rerun); err != nil {
		return nil, f.commitFailed(s, err)
	}
	return slices.Clone(f.lastResult()), nil
}

// commitFailed puts the engine's words around what a commit came to, but for
// what the phase itself has to see.
func (f *flow) commitFailed(s step, err error) error {
	if _, ours := errors.AsType[*Error](err); ours || errors.Is(err, ErrAnswered) {
		return err
	}
	if errors.Is(err, store.ErrUnknown) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return f.a.phaseError("phase "+s.name, err)
}

func (a *attempt) phaseError(op string, err error) *Error {
	e := a.fail(op, err)
	e.phase = true
	return e
}

// settleIntent writes how a call ended that can't be repeated.
func (f *flow) settleIntent(ctx context.Context, s step, tx *Tx, raw []byte, err error) ([]byte, error) {
	got, txErr := tx.close()
	answer, responds := errors.AsType[*answered](err)
	_, retry := errors.AsType[*safe](err)
	if txErr == nil && len(got.writes)+len(got.jobs) > 0 {
		txErr = fmt.Errorf("%w: a NotIdempotent phase takes neither writes nor jobs", ErrWrite)
	}
	var resp Response
	if responds && txErr == nil {
		resp, txErr = f.a.response(answer.v)
	}
	switch {
	case retry && txErr == nil:
		// As if it had never begun: the key stays, the call may be made again.
		f.recorded(got.calls)
		if rerr := f.replaceIntent(ctx, nil); rerr != nil {
			return nil, f.commitFailed(s, rerr)
		}
		return nil, err
	case err != nil && !responds || txErr != nil:
		return nil, f.giveUp(ctx, fmt.Sprintf("the outcome of phase %q is unknown: %s", s.name, redact.Error(errors.Join(err, txErr))))
	case responds:
		f.mu.Lock()
		f.passed++ // its outcome is the answer
		f.mu.Unlock()
		if ferr := f.finish(ctx, resp, nil, nil, false); ferr != nil {
			return nil, f.commitFailed(s, ferr)
		}
		return nil, err
	}
	if err := f.replaceIntent(ctx, got.calls, store.Phase{Name: s.name, Result: raw}); err != nil {
		return nil, f.commitFailed(s, err)
	}
	return slices.Clone(f.lastResult()), nil
}

// postpone keeps a result for the next commit.
func (f *flow) postpone(p store.Phase, got collected) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting, err := f.stagedJobs(got.jobs)
	if err != nil {
		return f.failed(err)
	}
	f.waiting, f.loose = waiting, nil
	f.pending, f.calls = append(f.pending, p), state.With(f.calls, got.calls...)
	f.passed++
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

// stagedJobs is everything that joins the next commit, named.
func (f *flow) stagedJobs(jobs []Job) (map[string]Job, error) {
	all := state.Merged(maps.Clone(f.waiting), numbered(f.passed, 0, slices.Concat(f.loose, jobs)))
	n := len(all)
	if f.rec != nil {
		n += len(f.rec.Jobs)
	}
	if n > maxJobs {
		return nil, fmt.Errorf("%w: %d jobs are waiting in the record: at most %d", ErrWrite, n, maxJobs)
	}
	return all, nil
}

func (f *flow) id() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rec != nil {
		return f.rec.ID
	}
	return f.a.id
}

// lastResult is the result of the phase that was committed last, from the
// record: what it holds counts, not what this run made.
func (f *flow) lastResult() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rec.Phases[len(f.rec.Phases)-1].Result
}
