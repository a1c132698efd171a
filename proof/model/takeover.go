package model

// Take-over: another attempt goes on where one has stopped.

// takeOver makes a client's retry the holder.
//
// Code: state.TakenByClient, state.Taken, idem.claiming.judgeOrTakeOver
// Condition: #owner = :owner AND ver = :ver
func (m *Model) takeOver(w *world, p packet) bool {
	r := &w.Record
	if r.State == None || m.on(TakeVer) && r.Ver != p.Seen.Ver || m.on(TakeOwner) && r.Owner != p.Seen.Owner {
		return false
	}
	if r.State == Open && r.Lease != Held && r.Request != p.Request {
		w.breaks(Mismatched)
	}
	m.changeHands(w, p)
	return true
}

// takeUp makes a completer the holder, which has nothing but a ticket.
//
// Code: state.TakenUp, state.MayTake, dynamo.Store.Take, dynamo.takeCondition
// Condition: v = :v AND st = :open AND attribute_exists(req) AND attribute_not_exists(req.o) AND attribute_not_exists(exp_s)
func (m *Model) takeUp(w *world, p packet) bool {
	r := &w.Record
	switch {
	case r.State == None, m.on(TakeVer) && r.Ver != p.Seen.Ver, m.on(TakeOwner) && m.on(TakeOwnerK) && r.Owner != p.Seen.Owner:
		return false
	case m.on(TakeLease) && r.Lease == Held, r.State != Open, r.ID == p.Seen.ID && (!r.Input || r.Expires != Never):
		return false
	}
	if !r.Input || r.Keep != KeepOpen {
		w.breaks(NoRequest)
	}
	if !m.on(BumpOwner) && r.Tries >= m.MaxTries {
		r.State, r.Lease, r.Mark = Stuck, Released, false // under the nonce of the attempt before
		r.Ver++
		return true
	}
	m.changeHands(w, p)
	if m.on(TriesTake) {
		r.Tries++
	}
	return true
}

func (m *Model) changeHands(w *world, p packet) {
	r := &w.Record
	switch {
	case r.ID != p.Seen.ID:
		w.breaks(Mixed)
	case r.State == Done:
		w.breaks(AfterDone)
	case r.State == Stuck:
		w.breaks(OnStuck)
	case r.Lease == Held:
		w.breaks(Robbed)
	}
	if m.on(TakeBump) {
		r.Ver++
	}
	if p.Seen.Lease != Released && r.Mark && m.on(TakeDoubts) {
		m.doubt(r, AnyCall)
	}
	r.Owner, r.Run, r.Turn = p.By, w.Age, m.turn(w)
	m.renewed(r)
}

// renew moves the end of a lease whose handler works on.
//
// Code: state.Renewed, idem.run.renew
// Condition: #owner = :owner AND ver = :ver
func (m *Model) renew(w *world, p packet) bool {
	if !m.fence(w, p) {
		return false
	}
	m.renewed(&w.Record)
	w.Record.Ver++
	return true
}

func (m *Model) renewed(r *Record) {
	r.Lease = Held
	if r.Expires != Never {
		if m.on(TakeExp) {
			r.Expires, r.Stale = Ahead, false
		} else {
			r.Stale = true
		}
	}
}

// taken is the answer to a take-over.
//
// Code: state.Land, idem.attempt.takeOnce, idem.Engine.Resume, idem.attempt.endTries
func (m *Model) taken(w *world, i int, p packet, ok bool) {
	a, r := &w.Attempts[i], &w.Record
	switch {
	case r.State == Open && (ok || m.landed(r, p)):
		m.holds(w, i)
		a.Called = false
		if p.Write == TakesUp && r.Tries > m.MaxTries {
			a.At = givesUp
			if a.Refuses = true; m.frees(a) { // nothing was ever done
				a.At = releases
			} else {
				a.Refuses = false
			}
		}
	case p.Write == TakesUp || ok:
		m.ends(a, refusal)
	case m.judge(w, i) == takeOver: // released meanwhile
		m.freed(w, i)
	default:
		m.meets(w, i)
	}
}
