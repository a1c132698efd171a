package model

// The network: a write may be applied without an answer, arrive late, or be refused
// for a conflict.

// write applies a packet to the store, if its condition is true.
func (m *Model) write(w *world, p packet) (applied bool) {
	switch p.Write { //nolint:exhaustive // the others are no writes
	case Claims:
		return m.claim(w, p)
	case TakesOver:
		return m.takeOver(w, p)
	case TakesUp:
		return m.takeUp(w, p)
	case Buries:
		return m.bury(w, p)
	case Renews:
		return m.renew(w, p)
	case Commits, Intends, Retracts:
		return m.commit(w, p)
	case Marks:
		return m.mark(w, p)
	case MarksAnew:
		return m.markAnew(w, p)
	case Stores:
		return m.companion(w, p)
	case Finishes:
		return m.finish(w, p)
	case Releases:
		return m.release(w, p)
	case GivesUp:
		return m.markStuck(w, p)
	case EndsLease:
		return m.endLease(w, p)
	case Forgets:
		return m.forget(w, p)
	}
	return m.settle(w, p)
}

// hears gives an attempt the answer to its write; w is the world after the write.
// An attempt without an answer reads the record, which shows the same as a refusal.
func (m *Model) hears(w *world, i int, p packet, applied bool) {
	a := &w.Attempts[i]
	switch p.Write {
	case Claims:
		a.Unsure = false
		m.claimed(w, i, p, applied)
	case Buries:
		a.Unsure = false
		if applied || m.landed(&w.Record, p) {
			a.Fence = w.Record.stamp()
		}
		m.claimsAgain(a)
	case TakesOver, TakesUp:
		a.Unsure = false
		m.taken(w, i, p, applied)
	case Renews, Commits, Intends, Retracts, Marks, MarksAnew:
		m.committed(w, i, p, applied)
	case Stores:
		a.Unsure = false
		if a.At = finishes; !m.on(CompBefore) {
			m.ends(a, failure)
		}
	case Finishes:
		m.finished(w, i, p, applied)
	case Releases:
		m.released(w, i, p, applied)
	case GivesUp:
		if !applied && !m.landed(&w.Record, p) {
			m.overtaken(w, i)
			return
		}
		m.ends(a, failure)
	default:
		m.ends(a, failure)
	}
}

// shows reports whether the record tells the sender of a write without an answer
// more than that the write is not applied yet. Else the sender sends the same bytes
// again.
//
// Code: state.Land, idem.writer.once, idem.claiming.load
func (m *Model) shows(r *Record, p packet) bool {
	switch p.Write { //nolint:exhaustive // the others are conditional on what was seen
	case Claims:
		return true
	case Stores:
		return false
	}
	return r.State == None || r.Owner != p.Seen.Owner || r.Ver != p.Seen.Ver
}

// sends are the ways in which an attempt's next write can go.
//
// Code: idem.writer.send, idem.writer.once, idem.claiming.load
func (m *Model) sends(w world, i int, emit emit) {
	a := &w.Attempts[i]
	p := m.packet(&w, i)
	s := Step{Who: uint8(i) + 1, What: p.Write}
	next := w
	if a.Unsure && m.shows(&w.Record, p) {
		claim := p.Write == Claims
		switch next.Attempts[i].Unsure = false; {
		case w.Record.State == None && claim && !a.Away && m.checks(i): // the other place may have refused it
			next.Attempts[i].Unsure, next.Attempts[i].Away = true, true
		case w.Record.State == None && p.Write != Buries:
			m.ends(&next.Attempts[i], failure) // a claim that was not applied
		case claim: // a look at this record only
			m.meets(&next, i)
		default:
			m.hears(&next, i, p, false)
		}
		s.What = Looks
		emit(s, next)
		return
	}
	next.Attempts[i].Unsure = false
	applied := m.write(&next, p)
	if s.Fate = Refused; applied {
		s.Fate = Applied
		if p.Write == Commits || p.Write == Finishes {
			m.behind(&next, i, p.Seen.ID)
		}
	}
	if w.Left.Lost > 0 && applied && p.Write != Stores {
		lost := next
		lost.Left.Lost--
		lost.Attempts[i].Unsure = true
		emit(Step{Who: s.Who, What: s.What, Fate: AnswerLost}, lost)
	}
	m.hears(&next, i, p, applied)
	emit(s, next)
	if w.Left.Late > 0 && applied && p.Write == Claims {
		next.Left.Late--
		next.late(p)
		emit(Step{Who: s.Who, What: s.What, Fate: Doubled}, next)
	}
	if w.Left.Late > 0 && p.Write != Releases {
		late := w
		late.Left.Late--
		late.Attempts[i].Unsure = true
		late.late(p)
		emit(Step{Who: s.Who, What: s.What, Fate: Delayed}, late)
	}
	if w.Left.Conflict > 0 && a.Again == 0 && p.Write.reruns() {
		again := w
		again.Left.Conflict--
		again.Attempts[i].Again = 1
		if p.Write == Finishes {
			again.Attempts[i].At = stores
		}
		emit(Step{Who: s.Who, What: s.What, Fate: Conflict}, again)
	}
}

// late leaves a packet under way.
func (w *world) late(p packet) {
	if w.Late[0].Write == 0 {
		w.Late[0] = p
	} else {
		w.Late[1] = p
	}
}

// lands are late packets that arrive, and late calls.
func (m *Model) lands(w world, emit emit) {
	for _, c := range w.Slow {
		if c.Op == 0 {
			continue
		}
		next := w
		next.loses(func(late copied) bool { return late == c })
		m.arrives(&next, c)
		emit(Step{What: Arrives, Op: c.Turn}, next)
	}
	for k, p := range w.Late {
		if p.Write == 0 {
			continue
		}
		next := w
		next.at(p.Side)
		next.Late[k] = packet{}
		if k == 0 {
			next.Late[0], next.Late[1] = next.Late[1], packet{}
		}
		s := Step{Who: (p.By-1)%fencers + 1, What: p.Write, Fate: LandsRefused}
		if m.write(&next, p) {
			s.Fate = Lands
		}
		emit(s, next)
	}
}
