package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/internal/state"
)

// A trace is a random history of the real engine on the memory store: clients, a
// completer and an operator use one key, each call to the store waits for its turn,
// and may be lost, late, doubled, refused for a conflict, or the last that its
// process makes. The acceptor follows call by call.

// fault is a planted one: it changes calls or their answers, or the handler's keys.
type fault struct {
	name   string
	claim  func(*trace, store.Claim) (*store.Record, error)
	commit func(*trace, store.Commit) (*store.Record, error)
	answer func(*store.Record) // what a client is shown
	key    func(*actor, string) string
	take   func(*store.Record)
	amend  func(*function, *call) (*dynamodb.UpdateItemOutput, error) // a write of drain or sweep
	sink   func(*function, []jobs.Delivery) []error
	within time.Duration // of the handler's look-ups
	again  bool          // a call that is never made again is declared as another one
}

type trace struct {
	t       *testing.T
	rnd     *mathrand.Rand
	config  Config
	fault   *fault
	accept  *acceptor
	store   fullStore
	table   *table    // nil: the memory store
	running *function // drain or sweep under way
	pks     [2]string // of the record; of the one at the key's other place, too, while the scope changes
	newest  Program
	now     time.Time
	actors  []*actor
	late    []*ask
	sent    []sent // calls
	turns   map[int]uint8
	story   strings.Builder
	refused string // the step that the model doesn't take
	full    bool   // more attempts than the model has
	fired   map[string]int
}

// fullStore is a store that completers can use.
type fullStore interface {
	store.Store
	Take(context.Context, store.Take) (*store.Record, bool, error)
}

type actor struct {
	t        *trace
	role     Role
	program  Program
	i        int // in the model
	nonce    string
	request  string
	fails    int // the step of the handler that fails; 0 for none
	at       int
	runs     [3]int
	data     int
	ticket   jobs.Ticket
	settles  idem.Settlement
	settled  string // the record
	pending  *ask
	asks     chan *ask
	answers  chan answer
	dead     bool
	engine   *idem.Engine
	conflict bool // its last write was refused for a conflict
	called   bool
}

type ask struct {
	i      int // of the attempt that sends it
	claim  *store.Claim
	commit *store.Commit
	take   *store.Take
	look   *idem.Call // that is looked up
	found  *answer    // of the provider to a look-up
	pk     string     // of what is read or written
	key    string     // of a call to the provider
	op     string     // of the operation that calls
	data   int
	err    bool // the provider answers with an error
}

type answer struct {
	held  *store.Record
	taken bool
	found idem.Found
	err   error
}

func (k *ask) String() string {
	switch {
	case k.claim != nil:
		return "Claim"
	case k.commit != nil:
		return "Commit"
	case k.take != nil:
		return "Take"
	case k.key != "":
		return "a call"
	case k.look != nil:
		return "a look-up"
	}
	return "Load"
}

func (a *actor) Claim(_ context.Context, c store.Claim) (*store.Record, error) {
	a.joins(&c)
	r := a.ask(&ask{claim: &c, pk: c.Next.PK})
	return r.held, r.err
}

func (a *actor) Commit(_ context.Context, c store.Commit) (*store.Record, error) {
	switch fences := c.Next.Owner != c.Prev.Owner && c.Next.Lease.Equal(c.Prev.Lease) && state.Free(c.Prev, a.t.now); {
	case fences && a.claims():
		a.t.accept.nonces[c.Next.Owner] = uint8(a.i) + 1 + fencers
	case a.role == Client && a.nonce != c.Next.Owner:
		a.t.full = true // it goes on as another attempt, and takes over; the model's attempts claim first
	default:
		a.t.accept.nonces[c.Next.Owner] = uint8(a.i) + 1
	}
	r := a.ask(&ask{commit: &c, pk: c.Prev.PK})
	return r.held, r.err
}

func (a *actor) Load(_ context.Context, pk string) (*store.Record, error) {
	if a.t.config.Change != OfScope {
		a.t.pks[0] = pk
	}
	r := a.ask(&ask{pk: pk})
	return r.held, r.err
}

func (a *actor) Take(_ context.Context, t store.Take) (*store.Record, bool, error) {
	a.t.accept.nonces[t.NewOwner] = uint8(a.i) + 1
	r := a.ask(&ask{take: &t, pk: t.PK})
	return r.held, r.taken, r.err
}

// joins names the attempt of a claim with a new nonce.
func (a *actor) joins(c *store.Claim) {
	r, beside := c.Next, c.Beside
	if a.nonce == r.Owner {
		return
	}
	switch { // the others have run their handler or read before it
	case a.role == Client:
		a.enters()
	case a.nonce != "":
		a.t.full = true
	}
	if a.t.full {
		return
	}
	ac := a.t.accept
	a.nonce = r.Owner
	home := ac.m.home(a.i)
	a.t.pks[home] = r.PK
	if beside != "" {
		a.t.pks[1-home] = beside
	}
	ac.nonces[r.Owner], ac.ids[r.ID], ac.requests[r.Fingerprint] = uint8(a.i)+1, uint8(a.i)+1, a.number()
	ac.knows(a.i, c.Seen, c.Fenced) // it may go on for another attempt
}

// enters gives the actor a place in the model.
func (a *actor) enters() {
	i, ok := a.t.accept.joins(a.role, a.number(), a.program)
	if !ok {
		a.t.full = true
		return
	}
	a.i = i
}

// claims reports whether the actor claims before its handler runs.
func (a *actor) claims() bool { return a.role == Client || a.role == ReadFirst }

// number is the request's in the model.
func (a *actor) number() uint8 {
	if a.request != "A" {
		return 2
	}
	return 1
}

func (a *actor) ask(k *ask) answer {
	if a.dead {
		runtime.Goexit()
	}
	k.i = a.i
	a.asks <- k
	r := <-a.answers
	if a.dead {
		runtime.Goexit()
	}
	return r
}

var errHandler = errors.New("the handler fails")

// step is a step of the handler that may fail.
func (a *actor) step() error {
	if a.at++; a.at == a.fails {
		a.t.accept.failing[a.i] = true
		return errHandler
	}
	return nil
}

func (a *actor) value(k int) int {
	a.runs[k]++
	return 2*a.i + min(a.runs[k], 2)
}

// handle is the handler: the configuration's phases.
func (a *actor) handle(ctx context.Context) (idem.Response, error) {
	a.at, a.data, a.runs = 0, 0, [3]int{}
	for k, phase := range a.t.config.Phases {
		name := "phase" + strconv.Itoa(k)
		var v int
		var err error
		switch phase {
		case NoPhase:
			continue
		case Atomic:
			v, err = idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
				if err := a.step(); err != nil {
					return 0, err
				}
				tx.Stage(idem.NewJob("early", 1))
				return a.value(k), nil
			})
		default:
			opts := a.options(phase, k)
			v, err = idem.Foreign(ctx, name, func(ctx context.Context, tx *idem.Tx) (int, error) {
				key := tx.Key("pay")
				if a.t.fault != nil && a.t.fault.key != nil {
					key = a.t.fault.key(a, key)
				}
				a.at++
				failed := a.at == a.fails
				op, _ := idem.FromContext(ctx)
				r := a.ask(&ask{key: key, op: op.ID(), data: a.data + 1, err: failed})
				if failed || r.err != nil {
					return 0, errHandler
				}
				return a.value(k), nil
			}, opts...)
		}
		if err != nil {
			return idem.Response{}, err
		}
		a.data = v
	}
	if err := a.step(); err != nil {
		return idem.Response{}, err
	}
	if a.t.config.Jobs&Late != 0 {
		if err := idem.Stage(ctx, idem.NewJob("late", 2)); err != nil {
			return idem.Response{}, err
		}
	}
	return idem.Response{Status: http.StatusCreated, Body: []byte(strconv.Itoa(a.value(2)))}, nil
}

func (a *actor) live() {
	defer close(a.asks)
	ctx, cancel := context.WithTimeout(asleep.With(context.Background()), time.Hour)
	defer cancel()
	var res idem.Result
	var err error
	switch a.role { //nolint:exhaustive // the others are clients
	case Completer:
		_, _ = a.engine.Resume(ctx, a.ticket, func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return a.handle(ctx) })
		return
	case Operator:
		_ = a.engine.Settle(ctx, a.settled, a.settles)
		return
	}
	req := idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: http.MethodPost, Path: "/", Body: []byte(a.request), ReadFirst: a.role == ReadFirst}
	res, err = a.engine.Do(ctx, req, a.handle)
	if !a.dead {
		a.t.told(a, res, err)
	}
}

// told compares the answer that a client gets with the model's.
func (t *trace) told(a *actor, res idem.Result, err error) {
	var want uint8
	switch {
	case err == nil && !res.Expires.IsZero():
		want = number(res.Body)
	case errors.Is(err, idem.ErrMismatch):
		want = another
	case errors.Is(err, idem.ErrIncomparable):
		want = failure
		t.fired["incomparable"]++
	default:
		return
	}
	t.closed()
	for w := range t.accept.worlds {
		if at := w.Attempts[a.i]; at.At != ended || at.Told != want {
			delete(t.accept.worlds, w)
		}
	}
	t.note("attempt %d is told %d", a.i+1, want)
}

// closed lets hidden steps happen up to the record as it is.
func (t *trace) closed() { t.accept.closure(t.records(), t.now) }

// note adds a line to the story, and stops the trace if the model doesn't follow.
func (t *trace) note(format string, args ...any) {
	fmt.Fprintf(&t.story, "    "+format+"\n", args...)
	if len(t.accept.worlds) == 0 && t.refused == "" {
		t.refused = fmt.Sprintf(format, args...)
	}
}

// records are those at the key's two places.
func (t *trace) records() (all [2]*store.Record) {
	for side, pk := range t.pks {
		if pk != "" {
			all[side] = t.record(pk)
		}
	}
	return all
}

func (t *trace) record(pk string) *store.Record {
	r, err := t.store.Load(context.Background(), pk)
	if err != nil {
		t.t.Fatal(err)
	}
	return r
}

// start adds an actor.
func (t *trace) start(a *actor) {
	a.t, a.asks, a.answers = t, make(chan *ask), make(chan answer)
	a.engine = idem.New(a, func(o *idem.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Now = func() time.Time { return t.now }
		o.Function, o.Resumable, o.MaxTries = "f", t.config.Resumable, int(t.config.MaxTries)
		o.CallsOut = (&Model{Config: t.config}).callsFirst()
		t.config.Change.options(o, a.program)
	})
	if a.role == ReadFirst {
		if a.enters(); t.full {
			return
		}
	}
	t.actors = append(t.actors, a)
	go a.live()
	a.pending = <-a.asks
}

// perform carries a call out, and returns whether it was applied.
func (t *trace) perform(k *ask) (r answer, applied bool) {
	ctx := context.Background()
	before := t.record(k.pk)
	switch {
	case k.claim != nil && t.fault != nil && t.fault.claim != nil:
		r.held, r.err = t.fault.claim(t, *k.claim)
	case k.claim != nil:
		r.held, r.err = t.store.Claim(ctx, *k.claim)
	case k.commit != nil && t.fault != nil && t.fault.commit != nil:
		r.held, r.err = t.fault.commit(t, *k.commit)
	case k.commit != nil:
		r.held, r.err = t.store.Commit(ctx, *k.commit)
	case k.take != nil:
		take := *k.take
		if from := take.From; t.fault != nil && t.fault.take != nil {
			take.From = func(r *store.Record) *store.Record {
				next := from(r)
				if next != nil {
					t.fault.take(next)
				}
				return next
			}
		}
		r.held, r.taken, r.err = t.store.Take(ctx, take)
	default:
		r.held = before
	}
	if t.fault != nil && t.fault.answer != nil && r.held != nil && r.held.Response != nil {
		r.held = r.held.Clone()
		t.fault.answer(r.held)
	}
	after := t.record(k.pk)
	t.holds(before, after)
	t.seen()
	applied = (before == nil) != (after == nil) || before != nil && (before.Ver != after.Ver || before.Owner != after.Owner || before.ID != after.ID)
	return r, applied
}

// takes carries out the next call of an actor with a random fate.
func (t *trace) takes(a *actor) {
	k := a.pending
	ac := t.accept
	t.closed()
	switch {
	case k.key != "":
		t.calls(a, k)
		return
	case k.look != nil:
		t.looksUp(a, k)
		return
	case k.claim == nil && k.commit == nil && k.take == nil:
		if a.role == Operator {
			ac.follows(func(s Step, _ *world) bool { return int(s.Who) == a.i+1 && s.What == Starts }, true)
		} else {
			if a.role == ReadFirst && a.nonce == "" {
				t.fired["read first"]++
			}
			ac.follows(func(s Step, _ *world) bool { return int(s.Who) == a.i+1 && s.What == Looks }, true)
		}
		t.note("attempt %d loads", a.i+1)
		r, _ := t.perform(k)
		if a.role == Operator && (r.held == nil || r.held.State != store.Stuck) {
			t.dies(a) // the model's operators decide about nothing else
			return
		}
		t.answers(a, r)
		return
	}
	t.writes(a, k)
}

// calls checks a call against the model: its time, its data, and its derived key, of
// which an operation has one.
func (t *trace) calls(a *actor, k *ask) {
	ac := t.accept
	fate := Plain
	switch {
	case k.err:
		fate = Failed
	case t.config.LookUp && t.onWay() < 2 && t.rnd.IntN(3) == 0:
		fate = Slow
	}
	ac.follows(func(s Step, w *world) bool {
		return int(s.Who) == a.i+1 && s.What == Calls && s.Fate == fate && int(w.Ops[w.Attempts[a.i].Seen.ID].Sent) == k.data
	}, false)
	id := ac.ids[k.op]
	if known, there := ac.keys[id]; there && known != k.key {
		clear(ac.worlds)
	}
	ac.keys[id] = k.key
	t.note("attempt %d calls%s", a.i+1, fateNames[fate])
	a.called = true
	t.sent = append(t.sent, sent{op: k.op, turn: t.turns[a.i], arrived: fate != Slow})
	if fate == Slow {
		t.fired["slow call"]++
		t.answers(a, answer{err: errHandler})
		return
	}
	t.answers(a, answer{})
}

func (t *trace) writes(a *actor, k *ask) {
	ac := t.accept
	fate := "answered"
	if n := t.rnd.IntN(20); n < 8 && a.role != Operator {
		fate = [...]string{"answer lost", "answer lost", "delayed", "doubled", "conflict", "dies before", "dies after", "lost"}[n]
	}
	releases := k.commit != nil && k.commit.Next.State == store.Open && k.commit.Next.Lease.IsZero()
	// The model's finish runs again after a conflict, the engine sends the same bytes.
	finishes := k.commit != nil && k.commit.Next.State == store.Done
	switch {
	case (fate == "delayed" || fate == "lost" || fate == "answer lost") && (len(t.late) == 2 || releases || k.take != nil), fate == "doubled" && (k.claim == nil || len(t.late) == 2), fate == "conflict" && (a.conflict || finishes):
		fate = "answered"
	}
	var r answer
	var applied bool
	match := func(s Step, w *world) bool { // a refusal shows an attempt the same as a look
		return by(k, Refused)(s, w) || int(s.Who) == a.i+1 && s.What == Looks
	}
	switch fate {
	case "delayed":
		r.err = store.ErrUnknown
		was := ac.worlds
		if ac.follows(by(k, Delayed), false); len(ac.worlds) > 0 {
			t.late = append(t.late, k)
		} else {
			ac.worlds = was // the record has moved on, so the model would look first: the packet is lost
		}
	case "lost":
		r.err = store.ErrUnknown
		ac.follows(lost(k, len(t.late)), true)
	case "conflict", "dies before":
		r.err = idem.ErrConflict
		a.conflict = true
		ac.follows(by(k, Conflict), true)
	default:
		r, applied = t.perform(k)
		a.conflict = false
		switch {
		case fate == "doubled" && applied:
			t.late = append(t.late, k)
			match = by(k, Doubled)
		case (fate == "answer lost" || fate == "dies after") && applied:
			match = by(k, AnswerLost)
		case applied:
			match = by(k, Applied)
		}
		switch {
		case applied || fate == "answered" || fate == "doubled":
			// A refusal may be due to the sender's clock, which it read before.
			ac.follows(match, !applied && (k.take != nil || k.claim != nil && !k.claim.Now.Equal(t.now)))
		case fate == "answer lost": // of a refusal: the same as a write that is lost
			ac.follows(lost(k, len(t.late)), true)
		}
		if fate == "answer lost" {
			r = answer{err: store.ErrUnknown}
		}
	}
	t.fired[fate]++
	t.counts(a, k, applied)
	t.closed()
	t.note("attempt %d: %v, %s, applied %t", a.i+1, k, fate, applied)
	if strings.HasPrefix(fate, "dies") {
		t.dies(a)
		return
	}
	t.answers(a, r)
}

func (t *trace) answers(a *actor, r answer) {
	a.answers <- r
	a.pending = <-a.asks
}

func (t *trace) dies(a *actor) {
	a.dead = true
	a.answers <- answer{}
	a.pending = <-a.asks
}

// lands lets a late packet arrive.
func (t *trace) lands(n int) {
	k := t.late[n]
	t.late = slices.Delete(t.late, n, n+1)
	t.closed()
	_, applied := t.perform(k)
	fate := LandsRefused
	if applied {
		fate = Lands
	}
	if !applied && k.claim != nil && !k.claim.Now.Equal(t.now) { // by its sender's clock
		t.accept.loses(func(late int) bool { return late == n })
	} else {
		t.accept.follows(by(k, fate), false)
	}
	t.fired["lands"]++
	t.closed()
	t.note("a late %v of attempt %d, applied %t", k, k.i+1, applied)
}

// background starts a completer or an operator if the record asks for one.
func (t *trace) background() {
	r := t.records()[0]
	if other := t.records()[1]; r == nil || other != nil && t.rnd.IntN(2) == 0 {
		r = other
	}
	switch {
	case r == nil:
	case r.State == store.Open && r.Keep == store.KeepOpen && r.Input != nil:
		if i, ok := t.accept.joins(Completer, 0, t.newest); ok {
			t.closed()
			t.accept.follows(func(s Step, _ *world) bool { return int(s.Who) == i+1 && s.What == Starts }, false)
			t.note("attempt %d, a completer, gets a ticket", i+1)
			t.fired["completer"]++
			t.start(&actor{role: Completer, program: t.newest, i: i, ticket: state.TicketFor(r)})
		}
	case r.State == store.Stuck:
		if i, ok := t.accept.joins(Operator, 0, t.newest); ok {
			s := idem.Settlement{}
			if n := len(r.Phases); t.config.LookUp && r.Input != nil && len(r.Doubts) > 0 && t.rnd.IntN(4) > 0 {
				s.Ask = true
				t.fired["settled by asking"]++
			} else if n > 0 && r.Phases[n-1].Intent || t.rnd.IntN(2) == 0 {
				s.Answer = &idem.Response{Status: http.StatusOK, Body: []byte(strconv.Itoa(2*i + 1))}
			}
			t.fired["operator"]++
			t.start(&actor{role: Operator, program: t.newest, i: i, settles: s, settled: r.PK})
		}
	}
}

// client is a client that reads first if chance will have it.
func (t *trace) client() Role {
	if t.rnd.IntN(3) == 0 {
		return ReadFirst
	}
	return Client
}

// began is when a history begins.
var began = time.Unix(2_000_000_000, 0)

// run plays a history, until the model refuses a step of it.
func (t *trace) run() {
	t.now = began
	t.fired, t.turns = make(map[string]int), make(map[int]uint8)
	if t.store = new(idem.MemoryStore); t.table != nil {
		t.store = t.table.store(t.t, t.table.api)
	}
	t.accept = newAcceptor(t.config)
	if t.config.Change != NoChange {
		for range t.rnd.IntN(int(Latest)) {
			t.deploys()
		}
	}
	first := 2
	if t.config.LookUp { // others ask later
		first = 1
	}
	for n := range first {
		a := &actor{role: t.client(), program: t.program(), request: "A"}
		if t.rnd.IntN(3) == 0 {
			a.fails = 1 + t.rnd.IntN(3)
		}
		if n == 1 && t.rnd.IntN(5) == 0 {
			a.request = "B"
		}
		t.start(a)
	}
	for range t.length() {
		if t.config.Change != NoChange {
			t.moves()
		}
		var ready []*actor
		for _, a := range t.actors {
			if a.pending != nil {
				ready = append(ready, a)
			}
		}
		over := t.table == nil && (t.config.Change == NoChange && !t.config.LookUp || len(t.actors) == t.clients())
		if t.refused != "" || t.full || len(ready)+len(t.late) == 0 && over && t.rnd.IntN(3) == 0 {
			break
		}
		if t.table != nil && t.rnd.IntN(3) == 0 {
			t.drainOrSweep()
			continue
		}
		n := t.rnd.IntN(10)
		if t.config.LookUp && len(ready) == 0 {
			n %= 4 // what goes on without them
		}
		switch {
		case n == 0 && len(t.late) > 0:
			t.lands(t.rnd.IntN(len(t.late)))
		case n == 0 && t.onWay() > 0:
			t.callArrives()
		case n == 1 && !t.ages() && t.now.Sub(began) >= 18*time.Hour: // the key's lifetime would end, and a provider's memory
		case n == 1:
			t.asked()
			t.now = t.now.Add(3 * time.Hour)
			t.fired["leases end"]++
			t.note("three hours pass")
			t.overdue()
		case n == 2:
			t.background()
		case (n == 3 || n > 3 && t.config.Change != NoChange && len(ready) == 0) && len(t.actors) < t.clients() && !t.full:
			t.start(&actor{role: t.client(), program: t.program(), request: "A"})
		case len(ready) > 0:
			t.takes(ready[t.rnd.IntN(len(ready))])
		}
	}
	for _, a := range t.actors {
		if a.pending != nil {
			t.dies(a)
		}
	}
	if t.running != nil {
		t.running.stops()
	}
}

// traceConfigs are the handlers of the traces.
func traceConfigs() []Config {
	base := Config{MaxTries: 1, Resumable: true, Expire: true, Jobs: AllJobs}
	var all []Config
	for _, phases := range [][2]Phase{{Atomic, Foreign}, {Foreign}, {Atomic, NotIdempotent}} {
		for _, resumable := range []bool{true, false} {
			c := base
			c.Phases, c.Resumable = phases, resumable
			if phases[0] != Atomic {
				c.Jobs = Late
			}
			all = append(all, c)
		}
	}
	return all
}

func play(t *testing.T, seed uint64, f *fault) *trace {
	t.Helper()
	return playWith(t, seed, 1, f, nil, traceConfigs())
}

// playWith draws from a stream of the seed.
func playWith(t *testing.T, seed, stream uint64, f *fault, tab *table, all []Config) *trace {
	t.Helper()
	tr := &trace{
		t: t, rnd: mathrand.New(mathrand.NewPCG(seed, stream)),
		config: all[seed%uint64(len(all))], fault: f, table: tab,
	}
	synctest.Test(t, func(*testing.T) { tr.run() })
	return tr
}

// faults are planted in the store, in records, or in the handler's keys: one for each
// rule that the model should miss.
var faults = []fault{
	{name: "a commit without owner and version", commit: func(t *trace, c store.Commit) (*store.Record, error) {
		if old := t.record(c.Prev.PK); old != nil {
			prev := *c.Prev
			prev.Owner, prev.Ver = old.Owner, old.Ver
			c.Prev = &prev
		}
		return t.store.Commit(context.Background(), c)
	}},
	{name: "a commit without its version", commit: func(t *trace, c store.Commit) (*store.Record, error) {
		if old := t.record(c.Prev.PK); old != nil {
			prev := *c.Prev
			prev.Ver = old.Ver
			c.Prev = &prev
		}
		return t.store.Commit(context.Background(), c)
	}},
	{name: "a claim over a live lease", claim: func(t *trace, c store.Claim) (*store.Record, error) {
		t.store = new(idem.MemoryStore)
		return t.store.Claim(context.Background(), c)
	}},
	{name: "a refused commit that says it is done", commit: func(t *trace, c store.Commit) (*store.Record, error) {
		_, err := t.store.Commit(context.Background(), c)
		return nil, err
	}},
	{name: "a finish that doesn't keep its jobs", commit: changed(func(_, next *store.Record) {
		if next.State == store.Done && next.Keep == store.KeepJobs {
			next.Keep, next.Expires = store.KeepNothing, next.Until
		}
	})},
	{name: "a phase that loses its job", commit: changed(func(_, next *store.Record) {
		if next.State == store.Open {
			next.Jobs = nil
		}
	})},
	{name: "a release that frees the key after a call", commit: changed(func(_, next *store.Record) {
		if next.State == store.Open && next.Lease.IsZero() && len(next.Doubts) > 0 {
			next.Keep, next.Expires = store.KeepNothing, next.Run.Add(-time.Minute)
		}
	})},
	{name: "a release that forgets its call", commit: changed(func(prev, next *store.Record) {
		if next.State == store.Open && next.Lease.IsZero() {
			next.Doubts, next.DoubtSince = prev.Doubts, prev.DoubtSince
		}
	})},
	{name: "a take-over without doubt", commit: changed(func(prev, next *store.Record) {
		if next.Owner != prev.Owner {
			next.Doubts, next.DoubtSince = prev.Doubts, prev.DoubtSince
		}
	})},
	{name: "a try that isn't counted", take: func(next *store.Record) { next.Tries-- }},
	{name: "another answer", answer: func(r *store.Record) { r.Response = &store.Response{Status: http.StatusOK, Body: []byte("99")} }},
	{name: "derived keys of the attempt", key: func(a *actor, key string) string { return key + strconv.Itoa(a.i) }},
}

// changed is a store whose commits write other records.
func changed(change func(prev, next *store.Record)) func(*trace, store.Commit) (*store.Record, error) {
	return func(t *trace, c store.Commit) (*store.Record, error) {
		change(c.Prev, c.Next)
		return t.store.Commit(context.Background(), c)
	}
}

// Traces that can't be refused prove nothing: each planted fault is found, and the
// step at which it shows is told.
func TestTracesOfFaultsAreRefused(t *testing.T) {
	t.Parallel()
	refuse(t, faults, 3000, play)
}

// refuse fails t for each fault that the first most histories don't show.
func refuse(t *testing.T, faults []fault, most uint64, play func(*testing.T, uint64, *fault) *trace) {
	t.Helper()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= most; seed++ {
				if tr := play(t, seed, &f); tr.refused != "" {
					t.Logf("refused in trace %d, step %d: %s\n%s", seed, tr.accept.steps, tr.refused, &tr.story)
					return
				}
			}
			t.Errorf("%d traces are accepted", most)
		})
	}
}

// TestTraces follows histories of the engine in the model: SPEC_TRACES of them, or a
// thousand. SPEC_SEED=n plays one again, and prints it. A seed gives the same history
// as long as engine and test make the same choices.
func TestTraces(t *testing.T) {
	t.Parallel()
	follow(t, 1000, 100, "traces", []string{
		"answered", "answer lost", "delayed", "doubled", "conflict", "lost", "dies before", "dies after", "lands", "completer", "leases end",
		"read first",
	}, play)
}

// follow plays n histories, or as many as SPEC_TRACES says, and fails t for a history
// that is not the model's. enough of them must have all that kinds lists.
func follow(t *testing.T, n, enough uint64, what string, kinds []string, play func(*testing.T, uint64, *fault) *trace) {
	t.Helper()
	first := uint64(1)
	if raceDetector || testing.Short() {
		n /= 10
	}
	if s := os.Getenv("SPEC_TRACES"); s != "" {
		n, _ = strconv.ParseUint(s, 10, 64)
	}
	if s := os.Getenv("SPEC_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
		n = 1
	}
	steps := 0
	fired := make(map[string]int)
	for seed := first; seed < first+n; seed++ {
		tr := play(t, seed, nil)
		if tr.refused != "" {
			t.Fatalf("SPEC_SEED=%d: no step of the model is %q. Phases %v, request stored %t:\n%s", seed, tr.refused, tr.config.Phases, tr.config.Resumable, &tr.story)
		}
		if n == 1 {
			t.Logf("\n%s", &tr.story)
		}
		steps += tr.accept.steps
		for name, k := range tr.fired {
			fired[name] += k
		}
	}
	t.Logf("%v", fired)
	t.Logf("FIGURES %d %s accepted, %d steps", n, what, steps)
	for _, name := range kinds {
		if n >= enough && fired[name] == 0 {
			t.Errorf("no trace has: %s", name)
		}
	}
}
