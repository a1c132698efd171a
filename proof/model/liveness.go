package model

// Liveness: from every state, with all attempts dead, completer, drain and sweep
// alone bring the operation to its end: finished, or waiting for people, with all
// jobs delivered, and kept for nothing.

// ending runs the background functions from w on, twice: with handlers that live,
// and with handlers that die in each try; if calls are looked up, also with look-ups that fail.
func (m *Model) ending(w *world) Invariant {
	if w.Record.settled() && w.Beside.settled() {
		return w.undelivered()
	}
	all := []course{lives, dies, asksInVain}
	if !m.LookUp {
		all = all[:2]
	}
	for _, how := range all {
		end := *w
		for range w.places() {
			m.complete(&end, how)
			m.sweep(&end)
			if broken := m.ended(&end); broken != Holds {
				return broken
			}
			end.at(1 - end.Side)
		}
		if broken := end.undelivered(); broken != Holds {
			return broken
		}
		if w.Record.State != Open && w.Beside.State != Open {
			break // the handler had no part in it
		}
	}
	return Holds
}

// settled reports whether nothing in r is left to the background functions.
func (r *Record) settled() bool {
	return r.State == None || r.State == Done && r.Keep == KeepNothing && r.Jobs == 0
}

// ended checks the end that the background functions have come to.
func (m *Model) ended(w *world) Invariant {
	r := &w.Record
	switch {
	case w.Broken != Holds:
		return w.Broken
	case r.State == Open && r.Keep == KeepOpen:
		return NeverEnds
	case r.State == Done && r.Keep != KeepNothing:
		return KeptForEver
	}
	return Holds
}

func (w *world) undelivered() Invariant {
	for _, op := range w.Ops {
		if op.Committed&^op.Delivered != 0 {
			return NeverDelivered
		}
	}
	return Holds
}

// course is how the handlers go on that completers run.
type course uint8

const (
	lives course = iota
	dies
	asksInVain
)

// complete tries the operation until it ends. The attempts of completers share a
// place that no configuration uses: one ends before the next begins.
//
// Code: stream.Completer.Handle, idem.Engine.Resume, idem.Engine.MarkStuck
func (m *Model) complete(w *world, how course) {
	const i = most - 1
	r := &w.Record
	for try := uint8(0); try < m.MaxTries+3 && r.State == Open && r.Keep == KeepOpen; try++ {
		if r.Lease == Held {
			r.Lease = Ended
		}
		a := &w.Attempts[i]
		*a = attempt{At: takesUp, Seen: known(*r), Request: r.Request}
		if !r.Input { // its client never came back: the sweep gives it up
			*a = attempt{At: takesOver, Seen: known(*r), Request: r.Request}
		}
		for n := 0; n < 16 && a.At != ended; n++ {
			unknown := (a.At == marks || a.At == calls) && m.doubtful(w, a)
			switch {
			case unknown && m.LookUp:
				m.asksAtLast(w, i, how)
			case unknown:
				a.At, a.Seen.Intent = givesUp, true
			case a.At == calls:
				m.called(*w, i, func(s Step, next world) {
					if s.Fate == Plain {
						*w = next
					}
				})
			default:
				p := m.packet(w, i)
				m.hears(w, i, p, m.write(w, p))
				if how == dies && p.Write == TakesUp && a.At != givesUp && a.At != releases {
					a.At = ended
				}
				if p.Write == TakesOver && a.At != ended {
					a.At = givesUp
				}
			}
		}
		*a = attempt{}
	}
}

// sweep delivers what is left, and lets the record go.
//
// Code: stream.Sweep.Run
func (m *Model) sweep(w *world) {
	r := &w.Record
	switch {
	case r.State == None:
		return
	case r.Jobs != 0:
		m.deliver(w, r.ID, r.Jobs)
		w.Drain = drain{Step: acks, Op: r.ID, Jobs: r.Jobs}
		if r.State == Done {
			w.Drain.Step = acksLast
		}
	case m.on(Clean) && w.noJobsLeft():
		w.Drain = drain{Step: letsGo, Op: r.ID}
	}
	for n := 0; n < 4 && w.Drain.Step != idle; n++ {
		m.drains(w)
	}
}
