package model

// Operators: people decide about an operation.

// settlements are the decisions of an operator who knows what happened.
//
// Code: state.Settled, idem.Engine.Settle
func (m *Model) settlements(w *world, a *attempt) (all []Action) {
	switch called := w.Ops[a.Seen.ID].Effects != 0; {
	case !a.Seen.Intent || !m.on(IntentNeedsOutcome):
		return []Action{SettlesRetry, SettlesAnswer}
	case called:
		all = append(all, SettlesResult)
	case !w.calling(): // else nobody can say that the call will not be made
		all = append(all, SettlesNotMade)
	}
	if m.LookUp && a.Seen.Input {
		all = append(all, SettlesAsk)
	}
	return append(all, SettlesAnswer)
}

// calling reports whether an attempt may still make the call.
func (w *world) calling() bool {
	for _, a := range w.Attempts {
		if a.At == calls {
			return true
		}
	}
	return w.Slow != [2]copied{}
}

// settle carries out a decision about a stuck operation.
//
// Code: state.Settled, state.Settleable, idem.Engine.Settle
// Condition: #owner = :owner AND ver = :ver
func (m *Model) settle(w *world, p packet) bool {
	r := &w.Record
	if m.on(OpCond) && (r.State != Stuck || r.Owner != p.Seen.Owner || r.Ver != p.Seen.Ver) || r.State == None {
		return false
	}
	switch {
	case r.ID != p.Seen.ID:
		w.breaks(Mixed)
	case r.State == Done:
		w.breaks(AfterDone)
	}
	r.Ver++
	if m.on(BumpOwner) {
		r.Owner = p.By
	}
	r.State, r.Tries, r.Lease, r.Run = Open, 0, Released, w.Age
	switch p.Write { //nolint:exhaustive // the others are no settlements
	case SettlesResult:
		r.Results, r.Intent = p.Results, false
		r.undoubted()
		w.op().Results = p.Results
	case SettlesNotMade:
		r.Intent = false
		r.undoubted()
	case SettlesAsk: // its call stays in doubt
	case SettlesRetry:
		r.Intent = false // it has none, if no rule is off
	case SettlesAnswer:
		if w.op().Answer != 0 {
			w.breaks(AnswerChanged)
		}
		name := uint8(len(w.Companions) - 1)
		w.Companions[name] = p.Value
		m.done(w, p.Value, name, p.Seen.Jobs)
	}
	return true
}

// endLease ends the lease of an attempt that will not come back, as an operator
// knows. If the attempt comes back all the same, it can write nothing.
//
// Code: state.LeaseEnded, idem.Engine.EndLease
// Condition: #owner = :owner AND ver = :ver
func (m *Model) endLease(w *world, p packet) bool {
	r := &w.Record
	if r.State != Open || r.Lease == Released || r.Expires == Passed || r.Owner != p.Seen.Owner || r.Ver != p.Seen.Ver {
		return false
	}
	if r.Mark && m.on(EndLeaseDoubts) {
		m.doubt(r, AnyCall)
	}
	r.Owner, r.Lease, r.Run, r.Mark = p.By, Released, w.Age, false
	r.Ver++
	return true
}

// forget frees the key of an operation without work, calls and jobs. What people
// give up by force is their own decision, and not in the model.
//
// Code: state.Forgotten, idem.Engine.Forget
// Condition: #owner = :owner AND ver = :ver
func (m *Model) forget(w *world, p packet) bool {
	r := &w.Record
	if !r.lives() || r.Owner != p.Seen.Owner || r.Ver != p.Seen.Ver {
		return false
	}
	work := r.State == Done || r.Results != [2]uint8{} || r.Intent || r.Doubts != 0 || r.Lease != Released
	if m.on(ForgetAsks) && (work || r.Jobs != 0) {
		return false
	}
	m.leaves(w)
	r.State, r.Owner, r.Lease, r.Input, r.Mark = Open, p.By, Released, false, false
	r.Keep, r.Expires, r.Run = KeepNothing, Freed, w.Age
	r.Ver++
	return true
}
