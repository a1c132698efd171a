package model

import "slices"

// The answer: companions first, then the finish that names them.

// companion writes the body of an answer outside of the record.
//
// Code: dynamo.Store.encodeBody, dynamo.companionKey
func (m *Model) companion(w *world, p packet) bool {
	w.Companions[m.name(p)] = p.Value
	return true
}

// losesBody is a store of companions that fails by itself, for good or for lack of time.
//
// Code: idem.run.endStored, idem.mayDrop
func (m *Model) losesBody(w world, i int, emit emit) {
	a := &w.Attempts[i]
	if w.Left.Body == 0 || a.Unsure {
		return
	}
	w.Left.Body--
	if a.At = releases; !m.on(BodyOrOpen) {
		a.At, a.Bare = finishes, true
	}
	emit(Step{Who: uint8(i) + 1, What: LosesBody}, w)
}

// name is the name of a companion.
func (m *Model) name(p packet) uint8 {
	switch {
	case !m.on(CompOwner):
		return 0
	case !m.on(CompTry):
		return 2*p.Seen.Owner - 2
	}
	return p.Value - 1 // the writer's nonce, and a number that it uses once
}

// finish stores the answer, with pending results and the last jobs.
//
// Code: state.Finished, idem.run.finish
// Condition: #owner = :owner AND ver = :ver
func (m *Model) finish(w *world, p packet) bool {
	if !m.fence(w, p) {
		return false
	}
	r, op := &w.Record, w.op()
	if op.Answer != 0 {
		w.breaks(AnswerChanged)
	}
	if p.Bare && r.Keep == KeepOpen {
		w.breaks(ReceiptLost)
	}
	if p.Results != r.Results {
		m.advance(w, p)
	}
	if k := slices.Index(m.Phases[:], Foreign); k >= 0 && op.Sent != 0 && r.Results[k] == 0 {
		w.breaks(CallHidden)
	}
	m.stage(w, p, Late)
	m.done(w, p.Value, m.name(p), p.Seen.Jobs|Late&m.Jobs)
	r.Ver++
	return true
}

// done makes the record a finished one. jobs are those of the writer's view: no job
// of the record is missing there.
//
// Code: state.Finished
func (m *Model) done(w *world, answer, companion uint8, jobs Jobs) {
	r, op := &w.Record, w.op()
	r.State, r.Answer, r.Companion, r.Lease, r.Input, r.Intent, r.Mark = Done, answer, companion, Released, false, false, false
	r.Run = 0
	r.undoubted()
	op.Answer, op.Image = answer, r.Jobs
	why := KeepNothing
	if jobs != 0 && m.on(FinKeep) {
		why = KeepJobs
	}
	m.keeps(r, why)
}

// finished is the answer to a finish.
//
// Code: idem.answers.finished, idem.run.endStored
func (m *Model) finished(w *world, i int, p packet, ok bool) {
	a, r := &w.Attempts[i], &w.Record
	if !ok && !m.landed(r, p) {
		m.overtaken(w, i)
		return
	}
	if !m.on(CompBefore) {
		a.At, a.Unsure = storesLate, false
		return
	}
	answer := r.Answer
	if !m.on(Adopt) {
		answer = p.Value
	}
	m.answers(w, i, p.Seen.ID, answer)
}
