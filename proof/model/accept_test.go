package model

import (
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// acceptor follows a trace of the real engine in the model. It holds every world in
// which the model may be: what the trace doesn't show, such as a handler's own steps
// and the clock, the model chooses. A trace is accepted as long as there is one.
type acceptor struct {
	m       *Model
	worlds  map[world]bool
	failing [most]bool // handlers that have failed
	steps   int        // accepted

	nonces   map[string]uint8 // attempts by nonce
	ids      map[string]uint8 // operations by id
	requests map[string]uint8 // by fingerprint
	keys     map[uint8]string // derived keys by operation
	ends     []time.Time      // of the holders' leases, by turn; none is the first
}

// plenty is a budget that no trace exhausts.
var plenty = budget{Lost: 9, Late: 9, Conflict: 9, Fail: 9, Twice: 9, Slow: 9}

func newAcceptor(c Config) *acceptor {
	m := c.without()
	m.trace = true
	w := m.start()
	w.Left = plenty
	return &acceptor{
		m: m, worlds: map[world]bool{w: true},
		nonces: make(map[string]uint8), ids: make(map[string]uint8), requests: make(map[string]uint8), keys: make(map[uint8]string), ends: make([]time.Time, 1),
	}
}

// joins adds an attempt, and returns its index; false if the model has no more.
func (a *acceptor) joins(role Role, request uint8, p Program) (int, bool) {
	i := len(a.m.Who)
	if i == most-1 {
		return 0, false
	}
	a.m.Who, a.m.Request, a.m.Program = append(a.m.Who, role), append(a.m.Request, request), append(a.m.Program, p)
	next := make(map[world]bool)
	for w := range a.worlds {
		w.Attempts[i] = attempt{At: a.m.first(i), Request: request}
		next[w] = true
	}
	a.worlds = next
	return i, true
}

// knows gives a new attempt what another one has seen, for which it goes on.
func (a *acceptor) knows(i int, freed, fenced *store.Record) {
	stamped := func(r *store.Record) stamp {
		if r == nil {
			return stamp{}
		}
		return stamp{a.nonces[r.Owner], uint8(r.Ver)}
	}
	next := make(map[world]bool)
	for w := range a.worlds {
		w.Attempts[i].Over, w.Attempts[i].Fence = stamped(freed), stamped(fenced)
		next[w] = true
	}
	a.worlds = next
}

// hidden are the steps that a trace doesn't show.
func (a *acceptor) hidden(s Step, now time.Time) bool {
	switch s.What { //nolint:exhaustive // the trace shows the others
	case LeaseEnds, KeyExpires, TooLate:
		return true
	case Stores:
		return s.Fate == Applied
	case Fails:
		return a.failing[s.Who-1]
	case WithinPasses:
		return s.Op <= a.over(now)
	}
	return false
}

// closure adds what may have happened unseen, and keeps the worlds with these records.
func (a *acceptor) closure(r [2]*store.Record, now time.Time) {
	want := [2]Record{a.abstract(r[0], now), a.abstract(r[1], now)}
	queue := make([]world, 0, len(a.worlds))
	for w := range a.worlds {
		queue = append(queue, w)
	}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		a.m.steps(w, func(s Step, next world) {
			if next.Left = plenty; a.hidden(s, now) && !a.worlds[next] && next.Broken == Holds {
				a.worlds[next] = true
				queue = append(queue, next)
			}
		})
	}
	for w := range a.worlds {
		if !same(w.Record, want[0]) || !same(w.Beside, want[1]) || a.m.LookUp && !a.inTime(&w, r[0], now) {
			delete(a.worlds, w)
		}
	}
}

// over returns the last holder for whose calls within is over.
func (a *acceptor) over(now time.Time) (turn uint8) {
	for int(turn)+1 < len(a.ends) && now.After(a.ends[turn+1].Add(traceWithin)) {
		turn++
	}
	return turn
}

// inTime reports whether within has passed in w as in the trace, and whether the doubts of the
// record r last as long.
func (a *acceptor) inTime(w *world, r *store.Record, now time.Time) bool {
	until := w.Record.Until
	return w.Within == a.over(now) && (r == nil || int(until) < len(a.ends) && a.ends[until].Equal(r.DoubtUntil))
}

// follows takes a step of the trace: one that match accepts. Without such a step the
// model stays where it is if stay is true, and stops otherwise.
func (a *acceptor) follows(match func(Step, *world) bool, stay bool) {
	next := make(map[world]bool)
	for w := range a.worlds {
		if stay {
			next[w] = true
		}
		a.m.steps(w, func(s Step, to world) {
			if to.Left = plenty; match(s, &to) && to.Broken == Holds {
				next[to] = true
			}
		})
	}
	a.worlds = next
	a.steps++
}

// loses loses late packets, by their numbers.
func (a *acceptor) loses(which func(n int) bool) {
	next := make(map[world]bool)
	for w := range a.worlds {
		n := -1
		w.drop(func(packet) bool { n++; return which(n) })
		next[w] = true
	}
	a.worlds = next
}

// abstract is the model's view of a real record.
func (a *acceptor) abstract(r *store.Record, now time.Time) (m Record) {
	if r == nil || r.State == store.None {
		return m
	}
	m = Record{
		State: map[store.State]RecordState{store.Open: Open, store.Done: Done, store.Stuck: Stuck}[r.State],
		Keep:  map[store.Keep]Keep{store.KeepOpen: KeepOpen, store.KeepJobs: KeepJobs}[r.Keep],
		Owner: a.nonces[r.Owner], Ver: uint8(r.Ver), ID: a.ids[r.ID], Request: a.requests[r.Fingerprint], Input: r.Input != nil, Tries: uint8(r.Tries),
	}
	if r.Scheme != "" {
		m.Scheme = 1
	}
	switch {
	case r.Lease.After(now):
		m.Lease = Held
	case !r.Lease.IsZero():
		m.Lease = Ended
	}
	switch {
	case r.Expires.IsZero():
	case state.Freed(r):
		m.Expires = Freed
	case r.Expires.Unix() < now.Unix():
		m.Expires = Passed
	default:
		m.Expires = Ahead
	}
	for k, p := range r.Phases {
		if p.Intent {
			m.Intent = r.State != store.Done
		} else if r.State != store.Done { // which keeps only the names
			m.Results[k] = number(p.Result)
		}
	}
	for name := range r.Jobs {
		if strings.HasPrefix(name, "0.") && a.m.Jobs&Early != 0 {
			m.Jobs |= Early
		} else {
			m.Jobs |= Late
		}
	}
	m.Mark = r.Mark != ""
	for _, call := range r.Doubts {
		if state.IsMark(call) {
			m.Doubts |= AnyCall
		} else {
			m.Doubts |= TheCall
		}
	}
	if r.Response != nil {
		m.Answer = number(r.Response.Body)
	}
	return m
}

func number(b []byte) (n uint8) {
	for _, c := range b {
		if n = 10*n + c - '0'; c < '0' || c > '9' {
			return 200
		}
	}
	return n
}

// same compares what a trace shows of a record.
func same(model, real Record) bool {
	model.Stale, model.Since, model.Run, model.Companion, model.Turn, model.Until = false, 0, 0, 0, 0, 0
	if model.State == Done {
		model.Results = [2]uint8{}
	}
	return model == real
}

// by matches a write of an attempt, a claim or another one, with a fate.
func by(k *ask, fates ...Fate) func(Step, *world) bool {
	return func(s Step, _ *world) bool {
		claim := s.What == Claims
		return int(s.Who) == k.i+1 && slices.Contains(fates, s.Fate) && claim == (k.claim != nil) &&
			s.What != Stores && s.What != Looks && s.What != Fails && s.What != Calls
	}
}

// lost matches a write of an attempt that never arrives: a late one that is dropped.
// There are n late packets.
func lost(k *ask, n int) func(Step, *world) bool {
	return func(s Step, w *world) bool {
		if !by(k, Delayed)(s, w) {
			return false
		}
		w.Late[n] = packet{}
		return true
	}
}
