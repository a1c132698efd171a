package model

// Phases: a handler's steps, each committed once with its result, the user's writes
// and jobs.

// Phase is a step of the handler.
type Phase uint8

// The phases.
const (
	NoPhase       Phase = iota
	Atomic              // writes of the user, and a job
	Foreign             // a call with a derived key
	NotIdempotent       // a call that can't be repeated
)

// place returns the number of the next phase that has no result.
func (m *Model) place(a *attempt) int {
	for k, phase := range m.Phases {
		if phase != NoPhase && a.Seen.Results[k] == 0 {
			return k
		}
	}
	return len(m.Phases)
}

// holds makes what is stored the attempt's view, and lets the handler begin from
// there.
func (m *Model) holds(w *world, i int) {
	a := &w.Attempts[i]
	a.Seen, a.Unsure, a.Fenced = held(w.Record), false, false
	m.proceed(w, i)
}

// proceed lets the handler go on to its next step.
//
// Code: idem.run.runPhase, idem.progress.recall, idem.phaseRun.foreign, idem.phaseRun.alive
func (m *Model) proceed(w *world, i int) {
	a := &w.Attempts[i]
	k := m.place(a)
	if k == len(m.Phases) {
		a.At = stores
		if !m.on(CompBefore) {
			a.At = finishes
		}
		return
	}
	switch phase := m.Phases[k]; {
	case phase == Atomic:
		a.At = commits
	case m.LookUp && w.Record.Lease != Held && m.on(LeaseFirst):
		a.At = releases // its lease is over
	case a.Seen.Intent && !m.LookUp && m.on(IntentIsUnknown):
		a.At = givesUp
	case m.intent(k) && m.on(IntentFirst) && !a.Seen.Intent:
		a.At = intends
	case !m.intent(k) && m.on(MarkFirst) && !a.Seen.Mark:
		a.At = marks
	default:
		a.At = calls
	}
}

// intent reports whether the begin of a phase's call is committed as its phase.
//
// Code: idem.phaseSpec.recordsBegin
func (m *Model) intent(k int) bool { return m.Phases[k] == NotIdempotent && !m.LookUp }

// fence is the condition of every write of a holder. What it lets pass must be the
// holder's own.
//
// Code: dynamo.holderCondition, dynamo.Store.Commit, idem.writer.write
// Condition: #owner = :owner AND ver = :ver
func (m *Model) fence(w *world, p packet) bool {
	r := &w.Record
	if r.State == None || m.on(CommitOwner) && r.Owner != p.Seen.Owner || m.on(CommitVer) && r.Ver != p.Seen.Ver {
		return false
	}
	if r.Owner != p.Seen.Owner {
		w.breaks(Zombie)
	}
	if r.ID != p.Seen.ID {
		w.breaks(Mixed)
	}
	if r.Request != p.Seen.Request {
		w.breaks(Mismatched)
	}
	if r.State == Done {
		w.breaks(AfterDone)
	}
	if r.State == Stuck {
		w.breaks(OnStuck)
	}
	return true
}

// commit writes a phase, or the intent of a call.
//
// Code: state.Advanced, idem.run.commit, dynamo.Store.update
// Condition: #owner = :owner AND ver = :ver
func (m *Model) commit(w *world, p packet) bool {
	if !m.fence(w, p) {
		return false
	}
	m.advance(w, p)
	w.Record.Ver++
	return true
}

func (m *Model) advance(w *world, p packet) {
	r, op := &w.Record, w.op()
	for k, phase := range m.Phases {
		if p.Results[k] == 0 || p.Results[k] == p.Seen.Results[k] {
			continue
		}
		switch phase { //nolint:exhaustive // the others are neither writes nor calls
		case Atomic:
			if op.Writes++; op.Writes > 1 {
				w.breaks(UserTwice)
			}
		case Foreign, NotIdempotent:
			r.Mark = false
			r.undoubted()
		}
	}
	r.Results, op.Results, r.Intent = p.Results, p.Results, p.Intent
	if p.Seen.Results == [2]uint8{} && p.Results != p.Seen.Results {
		m.stage(w, p, Early)
	}
	if m.on(PhaseKeep) {
		m.keeps(r, KeepOpen)
	}
}

// mark writes that a call follows. From then on the record is kept.
//
// Code: state.Calling, idem.run.markCall
// Condition: #owner = :owner AND ver = :ver
func (m *Model) mark(w *world, p packet) bool {
	if !m.fence(w, p) {
		return false
	}
	r := &w.Record
	if r.Mark = true; m.on(KeptCall) {
		m.keeps(r, KeepOpen)
	}
	r.Ver++
	return true
}

// stage puts jobs into the record.
//
// Code: idem.progress.jobsOfCommit, dynamo.update.addJobs
func (m *Model) stage(w *world, p packet, jobs Jobs) {
	if jobs &= m.Jobs; jobs == 0 {
		return
	}
	r, op := &w.Record, w.op()
	op.Committed |= jobs
	if m.on(JobEntry) {
		r.Jobs |= jobs
	} else {
		r.Jobs = p.Seen.Jobs | jobs
	}
	if r.Jobs&op.Acked&^jobs != 0 {
		w.breaks(JobBack)
	}
}

// overtaken ends an attempt whose write was fenced: it gives the answer of the
// attempt that has finished meanwhile, or none.
//
// Code: idem.answers.overtaken
func (m *Model) overtaken(w *world, i int) {
	a, r := &w.Attempts[i], &w.Record
	if r.State == Done && r.Request == a.Request && r.lives() {
		m.answers(w, i, r.ID, r.Answer)
		return
	}
	m.ends(a, refusal)
}

// landed reports whether the record shows the write of p, whose answer was lost.
//
// Code: state.Land, state.SameShape
func (m *Model) landed(r *Record, p packet) bool {
	raised := r.Ver == p.Seen.Ver+1 || !m.on(TakeBump) && p.Write.takes()
	return r.State != None && r.Owner == p.By && raised
}

// committed is the answer to a commit: the stored results count.
//
// Code: idem.run.write, idem.progress.lastResult
func (m *Model) committed(w *world, i int, p packet, ok bool) {
	a, r := &w.Attempts[i], &w.Record
	if !ok && !m.landed(r, p) {
		m.overtaken(w, i)
		return
	}
	view := held(*r)
	if !m.on(Adopt) {
		view.Results = p.Results
	}
	if p.Results != p.Seen.Results {
		a.Called = false
	}
	a.Seen, a.Again, a.Unsure = view, 0, false
	if p.Intent {
		a.At = calls
		return
	}
	if a.Refuses { // the intent was taken back
		a.Refuses, a.At = false, releases
		return
	}
	m.proceed(w, i)
}
