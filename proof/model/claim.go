package model

// Claim: the first write of an operation, and what an attempt decides about the
// record in its way.

// claim writes the record of a new operation.
//
// Code: state.Claimed, dynamo.Store.Claim, dynamo.claimCondition
// Condition: attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)
func (m *Model) claim(w *world, p packet) bool {
	if m.on(ClaimCond) && !m.claimable(&w.Record, p) || !m.free(w, p) {
		return false
	}
	m.begin(w, p)
	return true
}

// callsFirst reports whether the handler begins with a call, and has declared that: the
// claim keeps the record, and marks it.
//
// Code: state.Claimed
func (m *Model) callsFirst() bool { return m.Phases[0] == Foreign && !m.Never }

// claimable reports whether a claim may be won at its place. A claim that hasn't seen a
// freed record may be a late copy.
//
// Code: dynamo.Store.Claim, dynamo.seenCondition
// Condition: attribute_not_exists(pk) OR (#owner = :owner AND ver = :ver)
func (m *Model) claimable(r *Record, p packet) bool {
	switch {
	case r.State == None:
		return true
	case p.Over == stamp{}:
		return r.Expires == Passed || r.Expires == Freed && !m.on(ClaimSeen)
	}
	return p.Over == r.stamp()
}

func (m *Model) begin(w *world, p packet) {
	if w.Record.State != None {
		m.forgets(w)
		m.leaves(w)
		if w.Record.Lease == Held && w.Record.State == Open {
			w.breaks(Robbed)
		}
		if w.Record.lives() {
			w.breaks(Mixed)
		}
	}
	w.lifeEnds(&w.Record)
	w.lifeEnds(&w.Beside)
	w.Record = Record{
		State: Open, Owner: p.By, Ver: 1, Lease: Held, Expires: Ahead, Request: p.Request, Scheme: m.scheme(int(p.Seen.ID) - 1), Input: m.Resumable, ID: p.Seen.ID, Run: w.Age, Turn: m.turn(w),
	}
	if m.Resumable && m.on(ClaimOpen) || m.callsFirst() && m.on(KeptCall) {
		m.keeps(&w.Record, KeepOpen)
	}
	w.Record.Mark = m.callsFirst() && m.on(MarkFirst)
	w.Ops[p.Seen.ID].Life, w.Ops[p.Seen.ID].Side = w.Life, w.Side
}

// lifeEnds begins another lifetime of the key if r was the record of this one.
func (w *world) lifeEnds(r *Record) {
	if r.State != None && w.Ops[r.ID].Life == w.Life {
		w.Life++
	}
}

// verdict is an attempt's decision about the record in its way.
type verdict uint8

const (
	again verdict = iota
	own
	mismatch
	replay
	stuck
	inFlight
	takeOver
	unknown // nobody can tell whether the request is another one
)

// judge decides about the record in an attempt's way.
//
// Code: state.Judge
func (m *Model) judge(w *world, i int) verdict {
	r := &w.Record
	switch {
	case r.State == None:
		return again
	case r.Owner == m.nonce(i) && r.Ver == 1 && r.State != Stuck:
		return own
	case !r.lives():
		return again
	}
	switch m.compares(w, i) { //nolint:exhaustive // an equal request goes on
	case incomparable:
		return unknown
	case different:
		if r.Request == w.Attempts[i].Request {
			w.breaks(Misjudged)
		}
		if m.on(MismatchLock) {
			return mismatch
		}
	}
	switch {
	case r.State == Done:
		return replay
	case r.State == Stuck && m.on(StuckStays):
		return stuck
	case r.Lease == Held && m.on(LeaseHolds):
		return inFlight
	}
	return takeOver
}

// meets carries out the verdict about the record that an attempt met.
//
// Code: idem.claiming.judgeOrTakeOver, idem.answers.answer
func (m *Model) meets(w *world, i int) {
	a, r := &w.Attempts[i], &w.Record
	switch m.judge(w, i) {
	case again:
		m.freed(w, i)
	case own:
		m.holds(w, i)
	case replay:
		if r.Request != a.Request {
			w.breaks(Mismatched)
		}
		m.answers(w, i, r.ID, r.Answer)
	case takeOver:
		a.Seen, a.At = known(*r), takesOver
	case mismatch:
		m.ends(a, another)
	case unknown:
		m.ends(a, failure)
	default:
		m.ends(a, refusal)
	}
}

// claimed is the answer to a claim.
//
// Code: idem.claiming.claim
func (m *Model) claimed(w *world, i int, p packet, ok bool) {
	switch {
	case ok:
		m.holds(w, i)
	case m.claimable(&w.Record, p) && !m.free(w, p):
		m.turns(w, i)
	default:
		m.meets(w, i)
	}
}

// looksFirst reads the record of a repetition before the claim: seen, as it is. The
// attempt acts later on what it saw now.
//
// Code: idem.claiming.readFirst, idem.claiming.either
func (m *Model) looksFirst(w *world, i int, seen Record) {
	a, is := &w.Attempts[i], w.Record
	w.Record = seen
	switch r := &w.Record; {
	case r.State == None && !a.Away && m.checks(i):
		a.Away = true // the other place comes next
	case r.State == None, r.Expires == Passed, a.Away && !r.lives():
		a.At, a.Away = claims, false // it refuses no claim, or the claim's transaction decides
	case !m.on(RFJudges) && r.State == Open && r.lives() && r.Lease != Held:
		a.Seen, a.At = known(*r), takesOver
	default:
		if m.judge(w, i) == mismatch && is.lives() && is.Request == a.Request {
			w.breaks(Misjudged)
		}
		m.meets(w, i)
	}
	w.Record = is
}

// remembers keeps an older record for reads that show one, if there are such reads. The
// end of a lease or of a lifetime is no write: a reader's own clock tells it.
func (m *Model) remembers(w *world, s Step, next world, emit emit) {
	was := w.Record
	switch {
	case m.on(RFNow) || next.Record == was:
	case s.What == LeaseEnds && next.Old.Lease == Held:
		next.Old.Lease = Ended
	case s.What == KeyExpires && next.Old.Expires == Ahead:
		next.Old.Expires = Passed
	case s.What != LeaseEnds && s.What != KeyExpires:
		emit(s, next)
		next.Old = was
	}
	emit(s, next)
}

// claimsAgain lets an attempt claim again with its nonce, unless so much time has
// passed that the first claim may have expired: then the attempt goes on under
// another nonce, which another attempt stands for here.
//
// Code: idem.claiming.claim
func (m *Model) claimsAgain(a *attempt) {
	a.Away = a.Away && !m.on(ClaimsHome)
	if a.Old {
		m.ends(a, failure)
		return
	}
	a.At = claimsAnew
}
