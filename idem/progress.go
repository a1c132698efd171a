package idem

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// progress holds an attempt's record, and the jobs for the next commit.
type progress struct {
	mu        sync.Mutex
	rec       *store.Record // the record as this attempt last wrote or read it
	completed int           // phases completed in this run
	loose     []Job         // jobs staged outside of phases, for the next commit

	started time.Time // when the running phase began
}

func (p *progress) record() *store.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rec
}

func (p *progress) set(rec *store.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rec = rec
}

// progress.recall finds phase s in the record, at the position that the run has
// reached. If another phase is recorded there, the handler's phases have changed, and
// recall returns an error.
func (p *progress) recall(s phaseSpec) (raw []byte, recorded bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = time.Now()
	if p.completed >= len(p.rec.Phases) {
		return nil, false, nil
	}
	was := p.rec.Phases[p.completed]
	if was.Name != s.name { // s.name of a Finish is "", which no recorded phase has
		return nil, false, fmt.Errorf("%w: %q is next, but %q is recorded there", ErrPhaseOrder, s.name, was.Name)
	}
	if was.Intent && s.kind != foreign {
		return nil, false, fmt.Errorf("%w: %q is recorded as a call whose outcome is unknown", ErrPhaseOrder, s.name)
	}
	if was.Intent {
		return nil, false, nil // an earlier attempt began the call and recorded no outcome: phaseRun.foreign decides what follows
	}
	p.advanceLocked() // also drops the loose jobs, which an earlier attempt committed with the phase
	return slices.Clone(was.Result), true, nil
}

// progress.leftover returns an error if the handler left out a recorded phase, or an
// earlier attempt's call whose outcome is unknown. An answer must not hide such a phase or
// call. The parameter made holds the calls of this run.
func (p *progress) leftover(made *calls) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.completed < len(p.rec.Phases):
		return fmt.Errorf("%w: the handler ended without %q, which is recorded", ErrPhaseOrder, p.rec.Phases[p.completed].Name)
	case len(p.rec.Doubts) > 0:
		return made.unrepeated(p.rec.Doubts, "the handler ended")
	}
	return nil
}

// progress.begun reports whether an earlier attempt began the call of the running
// phase.
func (p *progress) begun() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.completed < len(p.rec.Phases)
}

func (p *progress) tx() *Tx {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Tx{id: p.rec.ID, made: p.rec.Calls, repeats: state.MayHaveCalled(p.rec)}
}

// lastResult returns the stored result of the most recently committed phase, even if this
// run made a different result.
func (p *progress) lastResult() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.rec.Phases[len(p.rec.Phases)-1].Result)
}

// progress.keep adds jobs to the next commit. If the record has the next phase already,
// an earlier attempt has made that commit and staged the jobs. keep then returns false.
func (p *progress) keep(jobs []Job) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loose = append(p.loose, jobs...)
	return p.completed >= len(p.rec.Phases)
}

// jobsOfCommit returns all jobs of the next commit. In the record, a job's name is made
// of the position of its phase and the job's index in the phase, so a handler that runs
// again gives its jobs the same names. The parameter rounded is a function that checks
// and rounds a job's time.
//
// The record in p may still list jobs that are delivered by now. So if the listed and
// the new jobs together are more than maxJobs, jobsOfCommit calls the function count,
// which returns how many jobs the stored record still has.
func (p *progress) jobsOfCommit(ctx context.Context, jobs []Job, rounded func(Job) (Job, error), count func(context.Context, *store.Record) int) (map[string]Job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.loose)+len(jobs) == 0 {
		return nil, nil
	}
	all := make(map[string]Job, len(p.loose)+len(jobs))
	for i, j := range slices.Concat(p.loose, jobs) {
		j, err := rounded(j)
		if err != nil {
			return nil, err
		}
		all[strconv.Itoa(p.completed)+"."+strconv.Itoa(i)] = j
	}
	n := len(all)
	if n+len(p.rec.Jobs) > maxJobs { // else the jobs are few enough, even if none of the listed jobs is delivered
		n += count(ctx, p.rec)
	}
	if n > maxJobs {
		return nil, fmt.Errorf("%w: %d jobs are waiting in the record: at most %d", ErrWrite, n, maxJobs)
	}
	return all, nil
}

func (p *progress) hasLoose() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.loose) > 0
}

// progress.advance records that the running phase is committed.
func (p *progress) advance() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked()
}

// advanceLocked does the work of advance. p must be locked. The loose jobs are dropped,
// since they were committed with the phase.
func (p *progress) advanceLocked() {
	p.completed++
	p.loose = nil
}

// progress.duration returns the duration of the phase that was just stored.
func (p *progress) duration() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.started)
}
