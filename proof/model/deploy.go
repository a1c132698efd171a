package model

import "slices"

// Deploy: a release of the program changes the meaning of a key: its scope, or its
// fingerprint. Every change has the same order: read it in one release, write it in the
// next.

// Change is what a deploy changes.
type Change uint8

// The changes.
const (
	NoChange      Change = iota
	OfScope              // a key has two places: a record under the former scope, and one under the new scope
	OfFingerprint        // a record has a scheme: the former one, or the new one
)

// Program is the release of the program that an attempt runs in.
type Program uint8

// The releases of a change.
const (
	Former Program = iota // writes the former meaning, and knows no other
	First                 // writes the former meaning, and reads both
	Second                // writes the new meaning, and reads both
	Latest                // writes the new meaning, and knows no other
)

// program is the release that an attempt runs in.
func (m *Model) program(i int) Program {
	if i < len(m.Program) {
		return m.Program[i]
	}
	return Former
}

// home is the place where an attempt claims the key.
//
// Code: idem.ask.find, idem.naming.other
func (m *Model) home(i int) uint8 {
	if m.Change == OfScope && m.program(i) >= Second {
		return 1
	}
	return 0
}

// side is the place at which an attempt is.
//
// Code: idem.ask.placeOf
func (m *Model) side(i int, a *attempt) uint8 {
	if a.Away {
		return 1 - m.home(i)
	}
	return m.home(i)
}

// scheme is the scheme of an attempt's fingerprints.
//
// Code: idem.Fingerprint.scheme
func (m *Model) scheme(i int) uint8 {
	if m.Change == OfFingerprint && m.program(i) >= Second {
		return 1
	}
	return 0
}

// comparison is how a request compares with the request that claimed a record.
type comparison uint8

const (
	equal comparison = iota
	different
	incomparable
)

// compares compares an attempt's request with that of a record, by the record's scheme.
//
// Code: idem.ask.compare, idem.Fingerprint.matches
func (m *Model) compares(w *world, i int) comparison {
	r, p := &w.Record, m.program(i)
	switch readsBoth := p == First || p == Second; {
	case r.Scheme == m.scheme(i), readsBoth && m.on(OwnScheme):
	case readsBoth, !m.on(Incomparable):
		return different
	default:
		return incomparable
	}
	if r.Request != w.Attempts[i].Request {
		return different
	}
	return equal
}

// checks reports whether a claim checks the key's other place too.
func (m *Model) checks(i int) bool {
	p := m.program(i)
	return m.Change == OfScope && (p == First && m.on(FirstChecks) || p == Second && m.on(SecondChecks))
}

// free reports whether a claim may be won beside the record at the key's other place.
//
// Code: dynamo.seenCondition, dynamo.Store.Claim, idem.claiming.claim
// Condition: attribute_not_exists(pk) OR (#owner = :owner AND ver = :ver)
func (m *Model) free(w *world, p packet) bool {
	r := &w.Beside
	return r.State == None || !m.checks(int(p.Seen.ID)-1) || p.Fence != stamp{} && (p.Fence == r.stamp() || !m.on(BesideSeen))
}

// turns goes on at the key's other place, because the record there has refused the claim.
//
// Code: idem.claiming.claim, idem.ask.placeOf
func (m *Model) turns(w *world, i int) {
	a := &w.Attempts[i]
	a.Away = !a.Away
	w.at(m.side(i, a))
	m.meets(w, i)
}

// freed goes on where the key was refused and is free now: with another claim. Holders of
// an expired or freed record at the other place are fenced before.
//
// Code: idem.claiming.claim, idem.claiming.bury
func (m *Model) freed(w *world, i int) {
	a, r := &w.Attempts[i], &w.Record
	if !a.Away {
		a.Over = stamp{}
		if r.Expires == Freed {
			a.Over = r.stamp()
		}
	}
	switch fences := a.Away && !a.Old && r.State != None && m.on(Bury) && (!r.lives() || !m.on(BuryOver)); {
	case !a.Away && r.Expires == Freed && r.ID == uint8(i)+1:
		m.ends(a, failure) // goes on as another attempt
	case !fences:
		m.claimsAgain(a)
	case a.Fenced && !m.trace: // the engine tries five times
		m.ends(a, refusal)
	default:
		a.Seen, a.At, a.Fenced = known(*r), buries, true
	}
}

// fencer is the owner that an attempt writes into a record that it fences. It isn't the
// attempt's nonce: a record that the attempt takes over later must not look the same.
func (m *Model) fencer(i int) uint8 {
	if m.on(FenceNonce) {
		return m.nonce(i) + fencers
	}
	return m.nonce(i)
}

const fencers = 8

// bury makes a fencer the owner of a record whose key is free, so that nobody else can
// write it.
//
// Code: state.Buried, idem.claiming.bury
// Condition: #owner = :owner AND ver = :ver
func (m *Model) bury(w *world, p packet) bool {
	r := &w.Record
	if r.State == None || r.Owner != p.Seen.Owner || r.Ver != p.Seen.Ver {
		return false
	}
	if r.lives() {
		w.breaks(Mixed)
	}
	m.forgets(w)
	m.leaves(w)
	r.Owner = p.By
	r.Ver++
	if r.Expires == Ahead {
		r.Expires = Passed
	}
	return true
}

// deploys rolls the next release out, or the newest one back. At most two neighbours run
// side by side: attempts of another one make no claim any more.
func (m *Model) deploys(w world, emit emit) {
	if m.Change == NoChange {
		return
	}
	last := Latest
	if !m.trace {
		last = slices.Max(m.Program)
	}
	if w.Newest < last && (w.Newest+1 != Latest || !m.on(OtherOver) || m.over(&w, 0)) {
		next := w
		next.Newest++
		m.leavesTo(&next)
		emit(Step{What: Deploys}, next)
	}
	if w.Newest > First && w.Left.Back > 0 && (w.Newest-1 != First || !m.on(OtherOver) || m.over(&w, 1)) {
		w.Left.Back--
		w.Newest--
		m.leavesTo(&w)
		emit(Step{What: RollsBack}, w)
	}
}

// over reports whether nothing under a scope is open any more, or an answer.
func (m *Model) over(w *world, side uint8) bool {
	w.at(side)
	r := &w.Record
	freed := m.on(RelFree) && r.State == Open && r.Lease == Released && r.Doubts == 0
	return m.Change != OfScope || !r.lives() && (r.State != Open || freed)
}

// runs reports whether attempts of a release may begin, or claim.
func (m *Model) runs(w *world, i int) bool {
	p := m.program(i)
	return m.Change == NoChange || p <= w.Newest && (p+1 >= w.Newest || !m.on(Neighbours))
}

// leavesTo ends the claims of releases that don't run any more.
func (m *Model) leavesTo(w *world) {
	m.dropClaims(w, func(i int) bool { return !m.runs(w, i) })
}
