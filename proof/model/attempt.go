package model

import (
	"fmt"
	"slices"
	"strings"
)

// The course of an attempt: where it is, which write it sends next, how it ends.

// point is where an attempt is.
type point uint8

const (
	notBegun point = iota
	looks
	claims
	claimsAnew
	buries
	takesOver
	takesUp
	commits
	marks
	marksAnew
	intends
	retracts
	calls
	stores
	finishes
	storesLate // the companion after the finish, if a rule is off
	releases
	givesUp
	decides // an operator
	ended
)

// writes has the write that an attempt sends at a point.
var writes = map[point]Action{
	claims: Claims, claimsAnew: Claims, buries: Buries, takesOver: TakesOver, takesUp: TakesUp, commits: Commits, marks: Marks, marksAnew: MarksAnew, intends: Intends, retracts: Retracts,
	stores: Stores, finishes: Finishes, storesLate: Stores, releases: Releases, givesUp: GivesUp,
}

// How an attempt ends that has no answer for its client.
const (
	another = 253 // refused: the request is another one
	refusal = 254 // refused, or overtaken
	failure = 255 // an error, or an answer that isn't stored
)

// ends ends an attempt.
func (m *Model) ends(a *attempt, told uint8) {
	*a = attempt{At: ended}
	if m.trace {
		a.Told = told
	}
}

// answers tells the client of an attempt the stored answer.
//
// Code: idem.answers.answer
func (m *Model) answers(w *world, i int, op, answer uint8) {
	if w.Ops[op].Answer != answer {
		w.breaks(WrongAnswer)
	}
	m.ends(&w.Attempts[i], answer)
}

// nonce is the owner that an attempt writes.
func (m *Model) nonce(i int) uint8 {
	if m.on(OwnNonce) || m.Who[min(i, len(m.Who)-1)] == Operator {
		return uint8(i) + 1
	}
	return 1
}

// value is the content that an attempt makes: another one in each run of a phase.
func (m *Model) value(i int, a *attempt) uint8 { return 2*uint8(i) + a.Again + 1 }

// starts begins an attempt of a completer or operator with what it sees.
//
// Code: idem.Engine.Resume, idem.Engine.Settle
func (m *Model) starts(w world, i int, emit emit) {
	a := &w.Attempts[i]
	s := Step{Who: uint8(i) + 1, What: Starts}
	switch m.Who[i] { //nolint:exhaustive // clients begin with their claim
	case Completer:
		if !m.ticket(&w, i) {
			return
		}
	case Operator:
		if w.Record.State == None || w.Record.State == Open && w.Record.Lease == Held && !m.EndLeases {
			return
		}
		a.Seen, a.At = known(w.Record), decides
		a.Seen.State = w.Record.State
	}
	emit(s, w)
}

// start is the first world: every client is about to send its first call.
//
// Code: idem.Engine.Do
func (m *Model) start() world {
	w := world{Life: 1, Left: m.Left}
	if len(m.Program) > 0 {
		w.Newest = slices.Min(m.Program)
	}
	for i := range m.Who {
		w.Attempts[i].At, w.Attempts[i].Request = m.first(i), m.Request[i]
	}
	return w
}

func (m *Model) first(i int) point {
	switch m.Who[i] { //nolint:exhaustive // the others begin with what they see
	case Client:
		return claims
	case ReadFirst:
		return looks
	}
	return notBegun
}

// packet makes the next write of an attempt.
func (m *Model) packet(w *world, i int) packet {
	a := &w.Attempts[i]
	p := packet{Write: writes[a.At], By: m.nonce(i), Side: w.Side, Seen: a.Seen, Results: a.Seen.Results, Intent: a.Seen.Intent, Request: a.Request}
	switch p.Write { //nolint:exhaustive // the others need no more
	case Claims:
		p.Seen, p.Over, p.Fence = Record{ID: uint8(i) + 1}, a.Over, a.Fence
	case Commits:
		p.Results[m.place(a)] = m.value(i, a)
		p.Intent = false
	case Intends:
		p.Intent = true
	case Retracts, MarksAnew:
		p.Intent = false
	case Stores:
		p.Value = m.value(i, a)
	case Finishes:
		p.Value, p.Bare = m.value(i, a), a.Bare
	case Releases:
		p.Intent, p.Free, p.Tries = a.Called, m.frees(a), a.Tries
		if a.Refuses {
			p.Value = 1
		}
	case GivesUp:
		p.Tries = a.Tries
	case TakesOver, TakesUp:
		p.Results = [2]uint8{}
	case Buries:
		p.Results, p.By = [2]uint8{}, m.fencer(i)
	}
	return p
}

// acts are the next steps of an attempt.
func (m *Model) acts(w world, i int, emit emit) {
	a := &w.Attempts[i]
	if a.At <= buries && m.Who[i] != Completer && m.Who[i] != Operator && !m.runs(&w, i) {
		return
	}
	who := uint8(i) + 1
	w.at(m.side(i, a))
	switch a.At {
	case notBegun:
		m.starts(w, i, emit)
		if w.Beside.State != None {
			a.Away = true
			w.at(m.side(i, a))
			m.starts(w, i, emit)
		}
	case ended:
	case looks:
		if !m.on(RFNow) && w.Old.State != None {
			old := w
			m.looksFirst(&old, i, w.Old)
			emit(Step{Who: who, What: Looks}, old)
		}
		m.looksFirst(&w, i, w.Record)
		emit(Step{Who: who, What: Looks}, w)
	case marks, calls:
		unknown := m.doubtful(&w, a)
		if m.LookUp && (unknown || a.At == marks) {
			m.tooLate(w, i, emit)
		}
		switch {
		case unknown && m.LookUp:
			m.lookUp(w, i, emit)
			return
		case unknown:
			a.At, a.Seen.Intent = givesUp, true // people must say what became of it
			m.sends(w, i, emit)
			return
		}
		m.early(w, i, emit)
		if a.At == marks {
			m.sends(w, i, emit)
		} else {
			m.called(w, i, emit)
			m.takesBack(w, i, emit)
		}
		m.fails(w, i, false, emit)
	case decides:
		m.decisions(w, i, emit)
	default:
		m.sends(w, i, emit)
		switch a.At { //nolint:exhaustive // elsewhere no code of the handler runs
		case commits:
			m.fails(w, i, false, emit)
			m.renews(w, i, emit)
		case stores:
			m.losesBody(w, i, emit)
		case finishes:
			m.fails(w, i, true, emit)
		}
	}
}

// fails is a handler that returns an error, or panics; refuses, one that answers
// with a 4xx that isn't stored. Nothing was done by then, or the attempt knows.
func (m *Model) fails(w world, i int, refuses bool, emit emit) {
	a := &w.Attempts[i]
	if w.Left.Fail == 0 || a.Seen.Intent {
		return
	}
	w.Left.Fail--
	a.At = releases
	emit(Step{Who: uint8(i) + 1, What: Fails}, w)
	if refuses {
		a.Refuses = true
		emit(Step{Who: uint8(i) + 1, What: Declines}, w)
	}
}

// renews renews the lease of a handler that works past its time.
func (m *Model) renews(w world, i int, emit emit) {
	if w.Left.Renew == 0 || w.Attempts[i].Unsure {
		return
	}
	w.Left.Renew--
	a := &w.Attempts[i]
	p := packet{Write: Renews, By: m.nonce(i), Seen: a.Seen}
	s := Step{Who: uint8(i) + 1, What: Renews, Fate: Refused}
	if m.write(&w, p) {
		s.Fate = Applied
		a.Seen.Ver++
	} else {
		m.ends(a, refusal)
	}
	emit(s, w)
}

// decisions are what an operator may do with the record as seen.
func (m *Model) decisions(w world, i int, emit emit) {
	a := &w.Attempts[i]
	var all []Action
	switch {
	case a.Seen.State == Stuck:
		all = m.settlements(&w, a)
	case a.Seen.State == Open && a.Seen.Lease != Released && m.EndLeases:
		all = []Action{EndsLease}
	}
	if m.Forget {
		all = append(all, Forgets)
	}
	for _, what := range all {
		next := w
		p := packet{Write: what, By: m.nonce(i), Seen: a.Seen, Results: a.Seen.Results}
		switch what { //nolint:exhaustive // the others need no value
		case SettlesResult:
			p.Results[m.place(a)] = 2*uint8(i) + 1
		case SettlesAnswer:
			p.Value = 2*uint8(i) + 1
		}
		s := Step{Who: uint8(i) + 1, What: what, Fate: Refused}
		if m.write(&next, p) {
			s.Fate = Applied
		}
		m.ends(&next.Attempts[i], failure)
		emit(s, next)
	}
}

// Step is a step of the model: an action, and who does it.
type Step struct {
	Who  uint8 // number of the attempt, from 1; 0 for drain, sweep and time
	What Action
	Fate Fate
	Op   uint8 // the operation of delivered jobs
	Jobs Jobs
}

type emit func(Step, world)

// steps gives every step that can follow w.
func (m *Model) steps(w world, to emit) {
	emit := func(s Step, next world) {
		next.at(0)
		m.remembers(&w, s, next, to)
	}
	for i := range m.Who {
		m.acts(w, i, emit)
	}
	m.lands(w, emit)
	m.drainSteps(w, emit)
	m.timeSteps(w, emit)
	m.deploys(w, emit)
}

// Action is an action of a step.
type Action uint8

// The actions.
const (
	Starts Action = iota + 1
	Looks
	Claims
	Buries
	TakesOver
	TakesUp
	Renews
	Commits
	Marks
	MarksAnew
	Intends
	Retracts
	Calls
	Arrives
	LooksUp
	TooLate
	Stores
	Finishes
	Releases
	GivesUp
	Fails
	Declines
	AnswersEarly
	LosesBody
	SettlesRetry
	SettlesAnswer
	SettlesResult
	SettlesNotMade
	SettlesAsk
	EndsLease
	Forgets
	Delivers
	Acknowledges
	AcknowledgesLast
	LetsGo
	SweepFinds
	DrainDies
	LeaseEnds
	KeyExpires
	Removed
	ProviderForgets
	WithinPasses
	Deploys
	RollsBack
)

var actionNames = [...]string{
	Starts: "starts", Looks: "reads the record", Claims: "claims", Buries: "fences the expired record at the other place", TakesOver: "takes over", TakesUp: "takes up, with its ticket",
	Renews: "renews its lease", Commits: "commits the phase", Marks: "writes that a call follows", MarksAnew: "writes that a call follows which the look-up has not found", Intends: "commits the begin of its call",
	Retracts: "takes the begin of its call back", Calls: "calls the provider", Arrives: "a call arrives", LooksUp: "looks the call up", TooLate: "finds that its lease is over", Stores: "writes the companion", Finishes: "finishes", Releases: "releases",
	GivesUp: "gives up: stuck", Fails: "its handler fails", Declines: "its handler refuses the request", AnswersEarly: "its handler answers before its call", LosesBody: "can't write the body of its answer", SettlesRetry: "settles: try again",
	SettlesAnswer: "settles: an answer", SettlesResult: "settles: the call's result", SettlesNotMade: "settles: the call was not made",
	SettlesAsk: "settles: ask again", EndsLease: "ends the lease", Forgets: "forgets the operation", Delivers: "the drain delivers", Acknowledges: "the drain acknowledges",
	AcknowledgesLast: "the drain acknowledges the last jobs", LetsGo: "the record is let go", SweepFinds: "the sweep finds a record that is kept for nothing",
	DrainDies: "the drain dies", LeaseEnds: "the lease ends", KeyExpires: "the key expires", Removed: "TTL removes the record",
	ProviderForgets: "the provider forgets its calls", WithinPasses: "within is over", Deploys: "the next release rolls out", RollsBack: "the newest release is rolled back",
}

func (a Action) String() string { return actionNames[a] }

func (a Action) takes() bool { return a == TakesOver || a == TakesUp }

// reruns reports whether a conflict makes the handler's phase run again.
func (a Action) reruns() bool { return a == Commits || a == Finishes }

// Fate is what became of a write or call.
type Fate uint8

// The fates.
const (
	Plain Fate = iota
	Applied
	Refused
	AnswerLost   // applied, and the attempt doesn't know
	Delayed      // under way, and the attempt doesn't know
	Doubled      // applied, and a copy is under way: the store's client sent it twice
	Lands        // a late packet, applied
	LandsRefused // a late packet, refused
	Conflict     // refused because of another write in progress
	Failed       // a call: made, and answered with an error
	Slow         // a call: on its way, and the attempt doesn't know
	Made         // a look-up: the provider has the call
	NotMade      // a look-up: the provider knows no such call
)

var fateNames = [...]string{
	Plain: "", Applied: "", Refused: ": refused", AnswerLost: ": applied, its answer is lost", Delayed: ": the packet is late",
	Doubled: ", and a copy is late", Lands: ": the late packet lands", LandsRefused: ": the late packet is refused", Conflict: ": a conflict, so it runs again", Failed: ", and gets an error",
	Slow: ": it is on its way, and there is no answer", Made: ": made", NotMade: ": not made",
}

// String describes the step for people.
func (s Step) String() string {
	var b strings.Builder
	if s.Who > 0 {
		fmt.Fprintf(&b, "attempt %d ", s.Who)
	}
	b.WriteString(s.What.String() + fateNames[s.Fate])
	switch {
	case s.What == WithinPasses:
		fmt.Fprintf(&b, " for the calls of holder %d", s.Op)
	case s.Jobs != 0:
		fmt.Fprintf(&b, " job %02b of operation %d", s.Jobs, s.Op)
	}
	return b.String()
}
