package spec

// The answer: companions first, then the finish that names them.

// companion writes the body of an answer outside of the record.
//
// Code: dynamo.Store.encodeBody, dynamo.companionKey
func (m *Model) companion(w *world, p packet) bool {
	w.Companions[m.name(p)] = p.Value
	return true
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
// Code: state.Finished, idem.flow.finish
// Condition: #owner = :owner AND ver = :ver
func (m *Model) finish(w *world, p packet) bool {
	if !m.fence(w, p) {
		return false
	}
	r, op := &w.Record, w.op()
	if op.Answer != 0 {
		w.breaks(AnswerChanged)
	}
	if p.Results != r.Results {
		m.advance(w, p)
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
	r.State, r.Answer, r.Companion, r.Lease, r.Input, r.Intent = Done, answer, companion, Released, false, false
	r.Doubts, r.Since, r.Run = 0, 0, 0
	op.Answer, op.Image = answer, r.Jobs
	why := KeepNothing
	if jobs != 0 && m.on(FinKeep) {
		why = KeepJobs
	}
	m.keeps(r, why)
}

// finished is the answer to a finish.
//
// Code: idem.attempt.finished, idem.attempt.conclude
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
