package model

// Completer: finishing an operation without its client.

// ticket gives a completer a ticket of what the stream shows now. The completer may
// use it at any later time.
//
// Code: state.Completable, state.TicketFor
func (m *Model) ticket(w *world, i int) bool {
	r := &w.Record
	if r.State != Open || r.Keep != KeepOpen || !r.Input {
		return false
	}
	a := &w.Attempts[i]
	a.Seen, a.Request, a.At = known(*r), r.Request, takesUp
	return true
}

// markStuck leaves the operation to people: after too many tries, or where the outcome
// of a call is unknown.
//
// Code: state.MadeStuck, idem.run.markStuck, idem.Engine.MarkStuck
// Condition: #owner = :owner AND ver = :ver
func (m *Model) markStuck(w *world, p packet) bool {
	if !m.fence(w, p) {
		return false
	}
	r := &w.Record
	if p.Results != r.Results {
		m.advance(w, p)
	}
	r.State, r.Lease, r.Intent, r.Mark, r.Tries = Stuck, Released, p.Intent, false, p.tries(r.Tries)
	m.keeps(r, KeepOpen)
	r.Ver++
	return true
}
