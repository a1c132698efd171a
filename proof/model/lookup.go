package model

import "slices"

// Look-ups: the provider is asked for the outcome of a call in doubt. A copy of a call may
// arrive after its attempt is gone, and a look-up may be behind. Both together take no longer
// than within, counted from the end of the attempt's lease.

// turn numbers a holder of the record. The end of its lease stands for a time.
func (m *Model) turn(w *world) uint8 {
	if !m.LookUp {
		return 0
	}
	w.Turns++
	return w.Turns
}

// tooLate is an attempt that sees by its clock, before it asks or calls, that its lease is over.
//
// Code: idem.phaseRun.alive
func (m *Model) tooLate(w world, i int, emit emit) {
	a := &w.Attempts[i]
	if w.Record.Turn != a.Seen.Turn || w.Record.Lease == Held {
		return
	}
	a.At = releases
	emit(Step{Who: uint8(i) + 1, What: TooLate}, w)
}

// lookUp asks the provider for the outcome of a call that may have been made.
//
// Code: idem.phaseRun.lookUp, state.Asking.Decide, state.Doubtful.Sent
func (m *Model) lookUp(w world, i int, emit emit) {
	a, s := w.Attempts[i], Step{Who: uint8(i) + 1, What: LooksUp}
	op := &w.Ops[a.Seen.ID]
	late := a.Seen.Until <= w.Within
	shows := op.Effects > 0 && op.Turn <= w.Within && !m.Never
	if op.Effects > 0 {
		made := w
		made.Attempts[i].At = commits
		s.Fate = Made
		emit(s, made)
	}
	if !shows || a.Heard {
		s.Fate = NotMade
		m.notMade(w, i, s, late, emit)
	}
	s.Fate = Failed
	m.asksLater(w, i, s, late, emit)
}

// notMade is what follows from a look-up that has found no call.
//
// Code: state.Asking.Decide, state.Doubtful.CallingOnce
func (m *Model) notMade(w world, i int, s Step, late bool, emit emit) {
	a := &w.Attempts[i]
	switch {
	case late && m.Never && m.on(NeverAgain):
		a.At, a.Seen.Intent = givesUp, true
	case !late && m.on(Within):
		m.asksLater(w, i, s, false, emit)
		if a.Heard = true; m.on(FromBegin) {
			return
		}
	case m.on(MarkAnew):
		a.At = marksAnew
	case w.Record.Turn != a.Seen.Turn || w.Record.Lease != Held:
		a.At = releases // its lease is over, as it knows by its clock
	default:
		a.At, a.Seen.Intent = calls, false
		a.Seen.undoubted()
	}
	emit(s, w)
}

// asksLater ends an attempt whose look-up has decided nothing: the next attempt asks again.
// A look-up after within counts as a try: a completer's, or, of a request that isn't stored,
// one of the client's in each pause. The last of the tries leaves the operation to people.
//
// Code: idem.phaseRun.asksLater, idem.phaseRun.paced, state.LookedUp.on
func (m *Model) asksLater(w world, i int, s Step, late bool, emit emit) {
	a := &w.Attempts[i]
	completer := m.Who[min(i, len(m.Who)-1)] == Completer || i == most-1
	late = late && m.on(AskCounts)
	a.At = releases
	switch {
	case completer && late && w.Record.Tries >= m.MaxTries:
		a.At, a.Seen.Intent = givesUp, true
	case completer && !late:
		a.Tries = -1 // the take-over has counted
	case !completer && late && !w.Record.Input:
		counts := w
		b := &counts.Attempts[i]
		if b.Tries = 1; w.Record.Tries+1 >= m.MaxTries {
			b.At, b.Seen.Intent = givesUp, true
		}
		emit(s, counts)
	}
	emit(s, w)
}

// tries changes the tries of a record as a release says.
func (p packet) tries(n uint8) uint8 { return uint8(max(0, int8(n)+p.Tries)) }

// markAnew writes that a call follows which the look-up has not found: what the record knows
// of earlier copies ends with the same write.
//
// Code: state.Doubtful.CallingOnce
// Condition: #owner = :owner AND ver = :ver
func (m *Model) markAnew(w *world, p packet) bool {
	if !m.mark(w, p) {
		return false
	}
	w.Record.Intent = false
	w.Record.undoubted()
	return true
}

// undoubted ends the doubts of a record.
//
// Code: state.doubt
func (r *Record) undoubted() { r.Doubts, r.Since, r.Until = 0, 0, 0 }

// withinPasses lets so much time pass that the calls of some holders have arrived, or never
// will, and that look-ups show them. A call that is never made again has no such bound.
// Until an attempt is near its call, nothing depends on it.
func (m *Model) withinPasses(w world, emit emit) {
	if !m.LookUp || !m.trace && !slices.ContainsFunc(w.Attempts[:], near) {
		return
	}
	for turn := w.Within + 1; turn <= w.Turns; turn++ {
		if turn == w.Record.Turn && w.Record.Lease == Held {
			return // its lease comes first
		}
		next := w
		m.within(&next, turn)
		emit(Step{What: WithinPasses, Op: turn}, next)
	}
}

// near reports whether an attempt is about to ask, to call, or to decide.
func near(a attempt) bool {
	return a.At == marks || a.At == marksAnew || a.At == calls || a.At == decides || a.At != ended && a.Unsure
}

// within lets within pass since the end of a holder's lease. An attempt that sleeps between
// its look at the clock and its call has a call on its way.
func (m *Model) within(w *world, turn uint8) {
	w.Within = turn
	if m.Never {
		return
	}
	w.loses(func(c copied) bool { return c.Turn <= turn })
	for i := range w.Attempts {
		if a := &w.Attempts[i]; a.At == calls && a.Seen.Turn <= turn && !m.doubtful(w, a) {
			m.ends(a, failure)
		}
	}
}

// onWay reports whether calls of an operation are on their way.
func (w *world) onWay(op uint8) bool { return w.Slow[0].Op == op || w.Slow[1].Op == op }

// loses loses calls that are on their way.
func (w *world) loses(which func(copied) bool) {
	for k, c := range w.Slow {
		if c.Op != 0 && which(c) {
			w.Slow[k] = copied{}
		}
	}
	if w.Slow[0].Op == 0 {
		w.Slow[0], w.Slow[1] = w.Slow[1], copied{}
	}
}

// asksAtLast lets within pass, and looks a call up for a completer.
func (m *Model) asksAtLast(w *world, i int, how course) {
	m.within(w, max(w.Within, w.Attempts[i].Seen.Until))
	want := NotMade
	switch {
	case how == asksInVain:
		want = Failed
	case w.Ops[w.Attempts[i].Seen.ID].Effects > 0:
		want = Made
	}
	m.lookUp(*w, i, func(s Step, next world) {
		if s.Fate == want {
			*w = next
		}
	})
}
