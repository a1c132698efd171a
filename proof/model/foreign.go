package model

import "slices"

// Foreign calls, and doubt about them.

// call makes the call of the next phase. Its derived key comes from the operation's
// id; its data is the result of the phase before.
//
// Code: idem.phaseRun.call, idem.Tx.Key, state.DerivedKey
func (m *Model) call(w *world, i int) {
	a := &w.Attempts[i]
	k := m.place(a)
	op := &w.Ops[a.Seen.ID]
	m.behind(w, i, a.Seen.ID)
	data := uint8(1)
	if k > 0 {
		data += a.Seen.Results[k-1]
	}
	if op.Sent != 0 && op.Sent != data {
		w.breaks(KeyForTwoCalls)
	}
	id := a.Seen.ID
	if !m.on(AdoptID) {
		id = uint8(i) + 1
	}
	if key := &w.KeyOf[op.Life]; *key == 0 {
		*key = id
	} else if *key != id {
		w.breaks(TwoKeys)
	}
	op.Sent = data
	a.Called = true
}

// arrives lets a copy of a call arrive at the provider.
func (m *Model) arrives(w *world, c copied) {
	op := &w.Ops[c.Op]
	if op.Effects > 0 && op.Age == w.Age && !m.keyless() {
		return // the provider remembers the key
	}
	if op.Effects++; op.Effects > 1 {
		w.breaks(CalledTwice)
	}
	op.Age, op.Turn = w.Age, c.Turn
}

// keyless reports whether the provider makes each copy of the call.
func (m *Model) keyless() bool { return m.Never || slices.Contains(m.Phases[:], NotIdempotent) }

// doubtful reports whether a call may have been made that must not be repeated: its
// provider may have forgotten the key, or never had one.
//
// Code: idem.phaseRun.forgotten, state.Doubtful.Asks, idem.Remembers
func (m *Model) doubtful(w *world, a *attempt) bool {
	if m.LookUp && m.keyless() {
		return m.on(AskKeyless) && (a.Seen.Doubts != 0 || a.Seen.Intent)
	}
	return m.on(Memory) && a.Seen.Doubts != 0 && a.Seen.Since < w.Age || m.LookUp && a.Seen.Intent
}

// doubt adds calls in doubt to a record. They are as old as the attempt that may
// have made them.
//
// Code: state.doubt, state.doubtSince, state.doubtUntil
func (m *Model) doubt(r *Record, calls Doubts) {
	if !m.Forgets && !m.LookUp && !m.Forget && m.Left.Fail == 0 && m.Left.Early == 0 && !m.trace {
		return // nothing there depends on doubts: fewer states
	}
	if r.Doubts == 0 {
		r.Since = r.Run
	}
	if r.Until == 0 || m.on(LastCopy) {
		r.Until = r.Turn
	}
	r.Doubts |= calls
}

// called ends a call: with a result, with an error, or not at all, which needs no
// step since an attempt may stop anywhere.
//
// Code: idem.phaseRun.commitOutcome, idem.phaseRun.endIntent
func (m *Model) called(w world, i int, emit emit) {
	k := m.place(&w.Attempts[i])
	who := uint8(i) + 1
	m.call(&w, i)
	c := copied{w.Attempts[i].Seen.ID, w.Attempts[i].Seen.Turn}
	if w.Left.Slow > 0 && w.Slow[1].Op == 0 {
		slow := w
		slow.Left.Slow--
		slow.Slow[1] = c
		slow.loses(func(copied) bool { return false })
		slow.Attempts[i].At = releases
		emit(Step{Who: who, What: Calls, Fate: Slow}, slow)
	}
	m.arrives(&w, c)
	ok := w
	ok.Attempts[i].At = commits
	emit(Step{Who: who, What: Calls}, ok)
	if w.Left.Fail == 0 {
		return
	}
	w.Left.Fail--
	w.Attempts[i].At = releases
	if m.intent(k) {
		if w.Attempts[i].At = givesUp; !m.on(UnknownIsStuck) {
			w.Attempts[i].At, w.Attempts[i].Refuses = retracts, true
		}
	}
	emit(Step{Who: who, What: Calls, Fate: Failed}, w)
}

// early is a handler that answers before its call: it looks, and finds that the call has
// nothing to do. An earlier attempt's call may be the reason.
//
// Code: idem.calls.missed, idem.run.endUnstored, idem.progress.leftover
func (m *Model) early(w world, i int, emit emit) {
	a := &w.Attempts[i]
	if w.Left.Early == 0 || a.Unsure || m.Phases[m.place(a)] != Foreign {
		return
	}
	w.Left.Early--
	if a.At = stores; a.Seen.Doubts != 0 && m.on(EarlyWaits) {
		a.At = releases
	} else if !m.on(CompBefore) {
		a.At = finishes
	}
	emit(Step{Who: uint8(i) + 1, What: AnswersEarly}, w)
}

// takesBack is a call that can't be repeated, and that certainly had no effect
// (SafeToRetry): the attempt takes its intent back, and gives the record back.
//
// Code: idem.SafeToRetry, state.IntentReplaced, idem.run.replaceIntent
func (m *Model) takesBack(w world, i int, emit emit) {
	a := &w.Attempts[i]
	if w.Left.Fail == 0 || !a.Seen.Intent {
		return
	}
	w.Left.Fail--
	a.At, a.Refuses = retracts, true
	emit(Step{Who: uint8(i) + 1, What: Fails}, w)
}
