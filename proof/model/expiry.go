package model

// Time: leases end, keys expire, TTL removes records, a provider forgets.

// timeSteps are the steps of the clock. Clocks of different hosts may differ: that
// only moves the end of a lease, which is free here.
//
// Code: state.Over, state.claimExpiry
func (m *Model) timeSteps(w world, emit emit) {
	m.withinPasses(w, emit)
	for range w.places() {
		m.recordTimes(w, emit)
		w.at(1 - w.Side)
	}
	if m.Forgets && w.Age == 0 {
		w.Age = 1
		for i := range w.Attempts { // no attempt lives as long as a provider's memory
			if a := &w.Attempts[i]; a.At >= commits && a.At <= calls {
				m.ends(a, failure)
			}
		}
		w.loses(func(c copied) bool { return w.Ops[c.Op].Effects > 0 }) // nor is a copy on its way for as long
		emit(Step{What: ProviderForgets}, w)
	}
}

func (m *Model) recordTimes(w world, emit emit) {
	r := &w.Record
	if r.State != None && r.Lease == Held {
		next := w
		next.Record.Lease = Ended
		emit(Step{What: LeaseEnds}, next)
	}
	// An expiry lies beyond the lease, so it passes later.
	if m.Expire && r.State != None && r.Expires == Ahead && (r.Lease != Held || r.Stale) {
		next := w
		next.Record.Expires = Passed
		m.dropClaims(&next, everybody)
		emit(Step{What: KeyExpires}, next)
	}
	if r.State != None && !r.lives() {
		next := w
		m.removed(&next)
		emit(Step{What: Removed}, next)
	}
}

// removed is the removal by TTL. Jobs that are still there are delivered from the
// removed image.
//
// Code: stream.readChange
func (m *Model) removed(w *world) {
	w.op().Delivered |= w.Record.Jobs
	m.forgets(w)
	m.leaves(w)
	if w.Record.State == Open && w.Record.Lease == Held {
		w.breaks(Robbed)
	}
	w.lifeEnds(&w.Record)
	w.Record = Record{}
	m.dropClaims(w, everybody)
}

// forgets checks a record that expires: who accepts a request completes it.
func (m *Model) forgets(w *world) {
	if w.Record.State == Open && w.Record.Input && w.Record.Expires == Passed {
		w.breaks(Forgotten)
	}
}

// leaves checks a record that is freed, or about to vanish or to be replaced.
func (m *Model) leaves(w *world) {
	op := w.op()
	begun := op.Results != [2]uint8{} || op.Effects != 0 || w.onWay(w.Record.ID)
	if begun && op.Answer == 0 {
		w.breaks(Forgotten)
	}
	if op.Committed&^op.Delivered != 0 {
		w.breaks(JobLost)
	}
}

// dropClaims is assumption P: a claim's packet and its copies die before the record
// that it made expires, and before TTL gets to a freed record.
//
// Code: defaults.MinRetention, idem.claiming.claim
func (m *Model) dropClaims(w *world, of func(i int) bool) {
	w.drop(func(q packet) bool { return q.Write == Claims && of(int(q.Seen.ID)-1) })
	for i := range w.Attempts {
		switch a := &w.Attempts[i]; {
		case !of(i):
		case a.At == claimsAnew, a.Unsure && a.At == claims:
			m.ends(a, failure)
		case a.At == takesOver, a.At == buries:
			a.Old = true
		}
	}
}

func everybody(int) bool { return true }

// drop loses late packets.
func (w *world) drop(which func(packet) bool) {
	for k := range w.Late {
		if w.Late[k].Write != 0 && which(w.Late[k]) {
			w.Late[k] = packet{}
		}
	}
	if w.Late[0].Write == 0 {
		w.Late[0], w.Late[1] = w.Late[1], packet{}
	}
}
