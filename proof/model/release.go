package model

// Release: the end of an attempt without an answer.

// release gives the record back. It frees the key if nothing was done.
//
// Code: state.Released, idem.run.release
// Condition: #owner = :owner AND ver = :ver
func (m *Model) release(w *world, p packet) bool {
	if !m.fence(w, p) {
		return false
	}
	r := &w.Record
	if p.Intent && m.on(RelDoubts) { // the attempt may have made the call
		m.doubt(r, TheCall)
		if m.LookUp && m.keyless() && r.Mark {
			m.doubt(r, AnyCall) // its mark has the phase's name, and stays
		}
	}
	if p.Free {
		m.leaves(w)
		if r.Input && !p.refuses() {
			w.breaks(Forgotten) // who accepts a request completes it
		}
		r.Keep, r.Expires, r.Input = KeepNothing, Freed, false
	}
	r.Lease, r.Run, r.Mark = Released, w.Age, false
	r.Tries = p.tries(r.Tries)
	if m.on(TakeBump) {
		r.Ver++
	}
	return true
}

// refuses reports whether the handler itself refused the request of a release.
func (p packet) refuses() bool { return p.Value != 0 }

// frees reports whether a release frees the key.
//
// Code: state.free, idem.run.releasing
func (m *Model) frees(a *attempt) bool {
	return m.on(RelFree) && a.Seen.Results == [2]uint8{} &&
		(!a.Called || !m.on(RelKeepID)) &&
		(a.Seen.Doubts == 0 || !m.on(RelDoubted)) &&
		(!a.Seen.Input || a.Refuses || !m.on(AcceptedIsKept))
}

// released is the answer to a release. Where an earlier write of the attempt has
// landed after all, the attempt decides again from the record.
//
// Code: idem.run.release, idem.run.endUnstored
func (m *Model) released(w *world, i int, p packet, ok bool) {
	a, r := &w.Attempts[i], &w.Record
	crossed := !ok && r.State != None && r.Owner == m.nonce(i) && r.Ver > p.Seen.Ver && r.Lease != Released
	switch {
	case crossed && m.on(RelForm):
		a.Seen, a.Unsure = held(*r), false
	case crossed:
		a.Seen.Ver, a.Unsure = r.Ver, false
	case !ok && r.State == Done:
		m.overtaken(w, i) // the answer was stored after all, by this attempt or by another
	default:
		m.tells(w, i, p, ok || m.landed(r, p))
		m.ends(a, failure)
	}
}

// tells tells the client of a handler that refused its request so, unless the operation
// may go on without the client.
//
// Code: idem.run.endUnstored, idem.answers.withhold
func (m *Model) tells(w *world, i int, p packet, landed bool) {
	if !w.Attempts[i].Refuses || m.Who[min(i, len(m.Who)-1)] == Completer {
		return
	}
	switch {
	case !landed && m.on(TellLanded):
	case landed && w.Record.Keep == KeepOpen && m.on(TellKept):
	default:
		w.Ops[p.Seen.ID].Told = true
	}
}

// behind checks that a completer's step comes before any client was told that the
// operation has failed.
func (m *Model) behind(w *world, i int, id uint8) {
	if m.Who[min(i, len(m.Who)-1)] == Completer && w.Ops[id].Told {
		w.breaks(Believed)
	}
}
