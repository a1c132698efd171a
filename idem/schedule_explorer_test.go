package idem_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// The explorer runs the real engine for a few clients that use one key, on a
// store whose every call it holds in its hand: a client goes on only when it
// has decided whose call is next and what becomes of it. One goroutine runs at
// a time, so a run is fixed by its choices, its schedule, and all schedules
// within a scenario's bounds are walked depth-first: run one, go back to the
// last choice with another option, run again from the start.
//
// Schedules that meet in one world, with the same past in the eyes of every
// client, have the same futures. They are walked once and counted for each
// schedule that leads there: see world.key.

// Clocks move in steps that no lease, or no retention, outlives. The first is
// but a little shorter than a retention, so that a take-over comes close to
// the end of what it takes over. To the process it is as if it had been frozen:
// of the time it has left, in the bubble, only the engine's pauses pass.
const (
	timeLeft  = time.Hour
	leaseStep = idem.DefaultRetention - timeLeft/2
	lifeStep  = 2 * idem.DefaultRetention
)

var bigBang = time.Unix(2_000_000_000, 0)

// scenario is who uses the key, and how much may happen in one schedule.
type scenario struct {
	name    string
	clients [][]try
	skew    time.Duration // how far the second client's clock is ahead

	faults    int // calls that go wrong, deaths included
	late      int // of these: packets that land later
	conflicts int // besides these: calls refused because of another write
	moves     int // of the clock, and removals by TTL
}

// try is one request of a client, which sends the next unless it was answered.
type try struct {
	request string // "A" or "B": another body under the same key
	handler outcome
}

type outcome int

const (
	succeeds outcome = iota
	fails            // returns an error
	busy             // answers with a status that isn't stored
	panics
)

var errHandler = errors.New("handler failed")

// step is one choice: what happens, and to which client or late packet.
type step struct {
	what event
	who  int
}

type event int

const (
	// What becomes of the call that a client waits for.
	answered event = iota
	answerLost
	lost
	delayed
	doubled
	conflict
	diesBefore
	diesAfter
	diesMeanwhile

	lands // a late packet
	leasesEnd
	lifeEnds // of whatever is stored
	reaped   // TTL removes the record
	ends     // no late packet lands before the next retry
)

// fates say it in full: whether the call is done now, and later (again), and
// whether its client is told. One who isn't can't know what became of it.
var fates = [...]struct{ done, late, told, dies bool }{
	answered:      {done: true, told: true},
	answerLost:    {done: true},
	lost:          {},
	delayed:       {late: true},
	doubled:       {done: true, late: true, told: true},
	conflict:      {told: true},
	diesBefore:    {dies: true},
	diesAfter:     {done: true, dies: true},
	diesMeanwhile: {late: true, dies: true},
}

var eventNames = [...]string{
	answered: "", answerLost: ", answer lost", lost: ", request lost", delayed: ", no answer, the packet is late",
	doubled: ", sent twice, a copy is late", conflict: ", conflict", diesBefore: ": its process dies",
	diesAfter: ": its process dies when it is done", diesMeanwhile: ": its process dies, the packet is late",
	lands: ", a late packet", leasesEnd: "the clock passes every lease", lifeEnds: "the clock passes every lifetime",
	reaped: "TTL removes the record", ends: "nothing else happens",
}

// faults are what can go wrong with each call, late packets aside. A process
// that dies before its claim might as well never have sent it, and one that
// dies at a Load might as well have died at the write the Load asks about.
var faults = [...][]event{
	handle: {diesBefore},
	claim:  {answerLost, lost, diesAfter},
	commit: {answerLost, lost, diesBefore, diesAfter},
	load:   {lost},
}

// call is a client's call that waits for its fate, or a late packet.
type call struct {
	verb   verb
	by     *attempt
	sent   time.Time // by its client's clock
	claim  store.Claim
	commit store.Commit
}

type verb int

const (
	handle verb = iota // not a call: a handler runs
	claim
	commit
	load
)

func (v verb) String() string { return [...]string{"handler", "Claim", "Commit", "Load"}[v] }

func (k *call) writes() bool { return k.verb == claim || k.verb == commit }

type result struct {
	held *store.Record
	err  error
}

// client is a process: an engine, a clock, and requests sent one by one. To
// its engine it is the store.
type client struct {
	w      *world
	name   string
	tries  []try
	skew   time.Duration
	engine *idem.Engine

	at      *attempt
	pending *call  // nil once it is over
	past    uint64 // hash of all that it was told, and when
	dead    bool
	alone   bool // its calls wait for nobody: for what comes after a schedule

	calls   chan *call // to the explorer; closed when it is over
	results chan result
}

// attempt is one call of Engine.Do.
type attempt struct {
	try
	client             *client
	name               string
	nonce, fingerprint string // as its claim has them
	troubled           bool   // a call of it failed
	slept              bool   // the clock moved

	ran, inside bool // its handler: was started, and is not back
	id          string
	lease       time.Time // when it started
}

var _ store.Store = (*client)(nil)

func (c *client) now() time.Time { return c.w.now.Add(c.skew) }

// Claim implements [store.Store].
func (c *client) Claim(_ context.Context, cl store.Claim) (*store.Record, error) {
	c.at.nonce, c.at.fingerprint = cl.Next.Owner, cl.Next.Fingerprint
	c.w.names[cl.Next.Owner], c.w.names[cl.Next.ID], c.w.names[cl.Next.Fingerprint] = c.at.name, c.at.name, c.at.request
	c.w.pk = cl.Next.PK
	return c.ask(call{verb: claim, claim: cl})
}

// Commit implements [store.Store].
func (c *client) Commit(_ context.Context, cm store.Commit) (*store.Record, error) {
	return c.ask(call{verb: commit, commit: cm})
}

// Load implements [store.Store].
func (c *client) Load(context.Context, string) (*store.Record, error) {
	return c.ask(call{verb: load})
}

// ask waits for the fate of a call. Nothing of a dead process runs any more:
// what its deferred functions ask for ends here as well.
func (c *client) ask(k call) (*store.Record, error) {
	if c.dead {
		runtime.Goexit()
	}
	k.by, k.sent = c.at, c.now()
	if c.alone {
		c.w.tell("%s %s", k.by.name, k.verb)
		r := c.w.perform(&k)
		return r.held, r.err
	}
	c.calls <- &k
	r := <-c.results
	if c.dead {
		runtime.Goexit()
	}
	return r.held, r.err
}

// live is a client's life, unless it dies.
func (c *client) live() {
	defer close(c.calls)
	for i, t := range c.tries {
		c.at = &attempt{try: t, client: c, name: fmt.Sprint(c.name, i+1)}
		if res, err := c.do(); err == nil && res.Status < http.StatusInternalServerError {
			return
		}
	}
}

func (c *client) do() (res idem.Result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeLeft)
	defer cancel()
	a := c.at
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
		if !c.dead {
			c.w.checkAnswer(a, res, err)
		}
	}()
	req := idem.Request{Key: "k", Scope: "s", Method: http.MethodPost, Path: "/", Body: []byte(a.request)}
	return c.engine.Do(ctx, req, func(ctx context.Context) (idem.Response, error) {
		op, _ := idem.FromContext(ctx)
		c.w.checkStart(a, op)
		a.ran, a.inside, a.id = true, true, op.ID()
		_, _ = c.ask(call{verb: handle})
		a.inside = false
		switch a.handler {
		case fails:
			return idem.Response{}, errHandler
		case panics:
			panic(errHandler)
		case busy:
			return idem.Response{Status: http.StatusServiceUnavailable}, nil
		default:
			c.w.successes++
			return idem.Response{Status: http.StatusCreated, Body: []byte(a.request + " by " + a.name)}, nil
		}
	})
}

// wait waits until the client asks for something, or is over.
func (c *client) wait() { c.pending = <-c.calls }

func (c *client) die() {
	c.dead = true
	c.results <- result{}
	c.wait()
}

// remember adds what a client is told to its past.
func (c *client) remember(r result) {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 128), c.past)
	b = c.w.instant(c.w.canonical(b, r.held), c.w.now)
	if r.err != nil {
		b = append(b, r.err.Error()...)
	}
	c.past = sum(b)
}

// world is everything there is in a schedule. Whoever runs has it alone.
type world struct {
	*scenario
	broken    *brokenStore
	store     *idem.MemoryStore
	pk        string
	now       time.Time
	clients   []*client
	packets   []*call // that are late
	ended     bool
	spent     struct{ faults, late, conflicts, moves, deaths int }
	names     map[string]string // of nonces, ids and fingerprints
	stored    []answer          // ever
	successes int               // of handlers
	violation string            // the first
	story     *strings.Builder  // nil if nobody wants to read it
}

// answer is what was stored for an operation.
type answer struct{ id, body string }

func newWorld(sc *scenario, broken *brokenStore, story *strings.Builder) *world {
	w := &world{
		scenario: sc, broken: broken, store: new(idem.MemoryStore), now: bigBang, names: make(map[string]string), story: story,
	}
	for i, tries := range sc.clients {
		c := w.client(string(rune('a' + i)))
		c.tries, c.calls, c.results = tries, make(chan *call), make(chan result)
		if i == 1 {
			c.skew = sc.skew
		}
		w.clients = append(w.clients, c)
		go c.live()
		c.wait()
	}
	return w
}

func (w *world) client(name string) *client {
	c := &client{w: w, name: name}
	c.engine = idem.New(c, func(o *idem.Options) { o.Now = c.now })
	return c
}

// over ends what still runs.
func (w *world) over() {
	for _, c := range w.clients {
		if c.pending != nil {
			c.die()
		}
	}
}

func (w *world) record() *store.Record {
	r, err := w.store.Load(context.Background(), w.pk)
	if err != nil {
		w.fail("the memory store fails: %v", err)
	}
	return r
}

// options are what can happen next, in a fixed order.
func (w *world) options() []step {
	var opts []step
	alive := false
	for i, c := range w.clients {
		k := c.pending
		if k == nil {
			continue
		}
		alive = true
		opts = append(opts, step{answered, i})
		if w.spent.faults < w.faults {
			for _, fault := range faults[k.verb] {
				opts = append(opts, step{fault, i})
			}
			if k.writes() && w.spent.late < w.late {
				opts = append(opts, step{delayed, i}, step{doubled, i}, step{diesMeanwhile, i})
			}
		}
		if k.writes() && w.spent.conflicts < w.conflicts {
			opts = append(opts, step{conflict, i})
		}
	}
	if !w.ended {
		for i := range w.packets {
			opts = append(opts, step{lands, i})
		}
	}
	switch {
	case !alive && len(opts) > 0:
		opts = append(opts, step{what: ends})
	case alive && w.spent.moves < w.moves:
		opts = append(opts, step{what: leasesEnd}, step{what: lifeEnds})
		if r := w.record(); r != nil && expired(r, w.now) && !slices.ContainsFunc(w.packets, isClaim) {
			opts = append(opts, step{what: reaped})
		}
	}
	return opts
}

// isClaim keeps TTL waiting: it takes so long that no claim that is under way
// still finds its record gone. The design rests on that (shared/model, "P").
func isClaim(k *call) bool { return k.verb == claim }

// take makes s happen.
func (w *world) take(s step) {
	switch s.what {
	case lands:
		k := w.packets[s.who]
		w.tell("%s %s%s", k.by.name, k.verb, eventNames[s.what])
		w.packets = slices.Delete(w.packets, s.who, s.who+1)
		w.perform(k)
	case leasesEnd, lifeEnds, reaped, ends:
		w.tell("%s", eventNames[s.what])
		w.pass(s.what)
	default:
		c := w.clients[s.who]
		w.tell("%s %s%s", c.pending.by.name, c.pending.verb, eventNames[s.what])
		w.decide(c, s.what)
	}
}

// pass is what time does.
func (w *world) pass(what event) {
	switch what {
	case leasesEnd:
		w.now = w.now.Add(leaseStep)
	case lifeEnds:
		w.now = w.now.Add(lifeStep)
	case reaped:
		w.store = new(idem.MemoryStore)
	default:
		w.ended = true
		return
	}
	w.spent.moves++
	for _, c := range w.clients {
		c.at.slept = true
	}
}

// decide lets a client's call meet its fate, and the client go on to its next.
func (w *world) decide(c *client, what event) {
	k, fate := c.pending, fates[what]
	var r result
	if fate.done {
		r = w.perform(k)
	}
	if fate.late {
		w.spent.late++
		w.packets = append(w.packets, k)
	}
	switch what {
	case answered:
	case conflict:
		w.spent.conflicts++
		r.err = idem.ErrConflict
	default:
		w.spent.faults++
	}
	if fate.dies {
		w.spent.deaths++
		c.die()
		return
	}
	if !fate.told {
		r = result{err: store.ErrUnknown}
	}
	k.by.troubled = k.by.troubled || r.err != nil
	c.remember(r)
	c.results <- r
	c.wait()
}

// perform does a call.
func (w *world) perform(k *call) (r result) {
	if k.verb == handle {
		return result{}
	}
	before := w.record()
	after := before
	switch k.verb {
	case claim:
		r.held, r.err = w.claim(k.claim)
		after = w.record()
		w.checkClaim(k, before, after, r.held)
	case commit:
		r.held, r.err = w.commit(k.commit)
		after = w.record()
		w.checkCommit(k, before, after)
	default:
		r.held = before
	}
	switch {
	case w.story == nil:
	case k.writes() && r.held != nil:
		w.tell("    refused by: %s", w.describe(after))
	default:
		w.tell("    %s", w.describe(after))
	}
	return r
}

func (w *world) claim(c store.Claim) (*store.Record, error) {
	if w.broken != nil && w.broken.claim != nil {
		return w.broken.claim(w, c)
	}
	return w.store.Claim(context.Background(), c)
}

func (w *world) commit(c store.Commit) (*store.Record, error) {
	if w.broken != nil && w.broken.commit != nil {
		return w.broken.commit(w, c)
	}
	return w.store.Commit(context.Background(), c)
}

// key identifies a world. An engine acts on what it is told and on its clock
// alone, so a client's past stands for all that it is and will do; who is over
// has no future. Names stand for the nonces, which are new in every run.
func (w *world) key(b []byte) uint64 {
	for _, c := range w.clients {
		if c.pending != nil {
			b = binary.BigEndian.AppendUint64(b, c.past)
		}
		b = append(b, '|')
	}
	b = w.instant(w.canonical(b, w.record()), w.now)
	for _, k := range w.packets {
		b = w.instant(append(append(b, k.by.name...), byte(k.verb)), k.sent)
		b = w.canonical(w.canonical(w.instant(b, k.claim.Now), k.claim.Next), k.commit.Prev)
		b = w.canonical(b, k.commit.Next)
	}
	for _, n := range []int{w.spent.faults, w.spent.late, w.spent.conflicts, w.spent.moves, w.spent.deaths, w.successes} {
		b = append(b, byte(n))
	}
	b = fmt.Appendf(b, "%t", w.ended)
	for _, s := range w.stored {
		b = append(append(b, w.names[s.id]...), s.body...)
	}
	return sum(b)
}

func sum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

// canonical appends what of a record can make a difference.
func (w *world) canonical(b []byte, r *store.Record) []byte {
	if r == nil {
		return append(b, 'n')
	}
	b = append(append(append(b, r.State...), w.names[r.Owner]...), byte(r.Ver))
	b = append(append(append(b, w.names[r.ID]...), w.names[r.Fingerprint]...), '/')
	b = w.instant(w.instant(b, r.Lease), r.Expires)
	if r.Response != nil {
		b = append(b, r.Response.Body...)
	}
	return b
}

// instant appends a time in whole minutes: pauses shift leases by less.
func (w *world) instant(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, '-')
	}
	return binary.BigEndian.AppendUint32(b, uint32(t.Sub(bigBang).Round(time.Minute)/time.Minute))
}

// tell adds a line to the story.
func (w *world) tell(format string, args ...any) {
	if w.story != nil {
		fmt.Fprintf(w.story, "    "+format+"\n", args...)
	}
}

func (w *world) describe(r *store.Record) string {
	if r == nil {
		return "no record"
	}
	s := fmt.Sprintf("%s, request %s, operation %s, owner %s, ver %d", r.State, w.names[r.Fingerprint], w.names[r.ID], w.names[r.Owner], r.Ver)
	switch {
	case r.Response != nil:
		s += fmt.Sprintf(", %q", r.Response.Body)
	case r.Lease.IsZero():
		s += ", released"
	case !r.Lease.After(w.now):
		s += ", lease over"
	}
	if expired(r, w.now) {
		s += ", expired"
	}
	return s
}

// report is what an exploration came to.
type report struct {
	schedules uint64 // within the bounds
	runs      int    // it took to see them all
	deepest   int    // steps
	violation string
	story     string // of the shortest schedule that led to it
}

// search is one exploration.
type search struct {
	sc     *scenario
	broken *brokenStore
	path   []choice          // that begin the schedule at hand
	seen   map[uint64]uint64 // how many schedules go on from a world
	worst  []step            // the shortest schedule that fails
	report report
}

// choice is where a schedule could have gone on otherwise.
type choice struct {
	world     uint64
	options   []step
	taken     int
	schedules uint64 // through the options taken before
}

// explore walks all schedules of a scenario on a store that is broken, or on
// the memory store. Once one fails only shorter ones are walked, so that the
// shortest is told.
func explore(t *testing.T, sc scenario, broken *brokenStore) (r report) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		s := &search{sc: &sc, broken: broken, seen: make(map[uint64]uint64)}
		for more := true; more; {
			more = s.next(s.run())
		}
		r = s.report
		if s.worst != nil {
			r.violation, r.story = s.retell()
		}
	})
	return r
}

// run runs the schedule that begins with path and takes first options from
// there on, and returns for how many schedules it stands.
func (s *search) run() uint64 {
	s.report.runs++
	w := newWorld(s.sc, s.broken, nil)
	defer w.over()
	var steps []step
	for w.violation == "" {
		if len(steps) == len(s.path) {
			if s.worst != nil && len(steps) >= len(s.worst) {
				return 0
			}
			key := w.key(make([]byte, 0, 512))
			if n, seen := s.seen[key]; seen {
				return n
			}
			s.path = append(s.path, choice{world: key, options: w.options()})
		}
		c := s.path[len(steps)]
		if len(c.options) == 0 {
			s.report.deepest = max(s.report.deepest, len(steps))
			w.checkEnd()
			break
		}
		steps = append(steps, c.options[c.taken])
		w.take(c.options[c.taken])
	}
	if w.violation != "" && (s.worst == nil || len(steps) < len(s.worst)) {
		s.worst = steps
	}
	return 1
}

// next makes path the beginning of the next schedule: the last choice with an
// option left takes it.
func (s *search) next(schedules uint64) (more bool) {
	for i := len(s.path) - 1; i >= 0; i-- {
		c := &s.path[i]
		c.schedules += schedules
		if c.taken++; c.taken < len(c.options) {
			return true
		}
		schedules = c.schedules
		s.seen[c.world] = schedules
		s.path = s.path[:i]
	}
	s.report.schedules = schedules
	return false
}

// retell runs the shortest failing schedule once more, in words.
func (s *search) retell() (violation, story string) {
	var b strings.Builder
	w := newWorld(s.sc, s.broken, &b)
	defer w.over()
	for _, step := range s.worst {
		w.take(step)
	}
	if w.violation == "" {
		w.tell("at last:")
		w.checkEnd()
	}
	return w.violation, b.String()
}

// play runs one schedule, without the steps of clients that are over.
func play(t *testing.T, sc scenario, steps []step) (violation, story string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		var b strings.Builder
		w := newWorld(&sc, nil, &b)
		defer w.over()
		for _, s := range steps {
			if s.what >= lands || w.clients[s.who].pending != nil {
				w.take(s)
			}
		}
		violation, story = w.violation, b.String()
	})
	return violation, story
}
