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
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// The explorer runs the real engine for a few clients that use one key. Every
// call to the store stops until the explorer has decided whose call is next and
// with which outcome. Only one goroutine runs at a time, so the choices, the
// schedule, determine a run. The explorer walks all schedules within a scenario's
// bounds depth-first: it runs a schedule, goes back to the last choice with
// another option, and runs again from the start.
//
// Schedules that lead to the same world, with the same past for every client,
// have the same futures. They are walked once and counted for each schedule that
// leads there: see world.key.

// Clocks move in steps that no lease, or no retention, outlives. The first step
// is only a little shorter than a retention, so that a take-over comes close to
// the end of the record. The process seems to have been frozen: of its own time
// in the bubble, only the engine's pauses pass.
const (
	timeLeft  = time.Hour
	leaseStep = defaults.Retention - timeLeft/2
	lifeStep  = 2 * defaults.Retention
)

var bigBang = time.Unix(2_000_000_000, 0)

// scenario lists the users of the key, and how much may happen in one schedule.
type scenario struct {
	name    string
	clients [][]try
	skew    time.Duration // how far the second client's clock is ahead

	faults    int // calls that fail, including deaths
	late      int // late packets among the faults
	conflicts int // calls refused because of another write, besides the faults
	moves     int // moves of the clock, and removals by TTL
}

// try is a request of a client. The client sends the next try unless this try was
// answered.
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

// step is one choice: an event, and the client or late packet that it affects.
type step struct {
	what event
	who  int
}

type event int

const (
	// The outcome of the call for which a client waits.
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
	lifeEnds // of the stored record
	reaped   // TTL removes the record
	ends     // no late packet lands before the next retry
)

// fates gives the details: whether the call is applied now, and later (again),
// and whether its client gets the outcome.
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

// faults are the possible faults of each call, besides late packets. A process
// that dies before its claim might as well not have sent the claim. A process
// that dies at a Load might as well have died at the write before the Load.
var faults = [...][]event{
	handle: {diesBefore},
	claim:  {answerLost, lost, diesAfter},
	commit: {answerLost, lost, diesBefore, diesAfter},
	load:   {lost},
}

// call is a client's call that waits for its outcome, or a late packet.
type call struct {
	verb   verb
	by     *attempt
	sent   time.Time // by its client's clock
	claim  store.Claim
	commit store.Commit
}

type verb int

const (
	handle verb = iota // not a call to the store: a handler runs
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

// client is a process: an engine, a clock, and requests sent one by one. The
// client is its engine's store.
type client struct {
	w      *world
	name   string
	tries  []try
	skew   time.Duration
	engine *idem.Engine

	at      *attempt
	pending *call  // nil once the client is over
	past    uint64 // hash of all answers and their times
	dead    bool
	alone   bool // its calls are answered at once, for requests after a schedule

	calls   chan *call // to the explorer; closed when the client is over
	results chan result
}

// attempt is one call of Engine.Do.
type attempt struct {
	try
	client             *client
	name               string
	nonce, fingerprint string // from its claim
	troubled           bool   // one of its calls failed
	slept              bool   // the clock moved during the attempt

	ran, inside bool // its handler has started, and has not returned
	id          string
	lease       time.Time // time of the start
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

// ask waits for the outcome of a call. Code of a dead process no longer runs:
// calls of its deferred functions end here as well.
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

// live runs a client to its end or death.
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
	req := idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: http.MethodPost, Path: "/", Body: []byte(a.request)}
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

// wait waits until the client makes a call or is over.
func (c *client) wait() { c.pending = <-c.calls }

func (c *client) die() {
	c.dead = true
	c.results <- result{}
	c.wait()
}

// remember adds an answer to the client's past.
func (c *client) remember(r result) {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 128), c.past)
	b = c.w.instant(c.w.canonical(b, r.held), c.w.now)
	if r.err != nil {
		b = append(b, r.err.Error()...)
	}
	c.past = sum(b)
}

// world is the whole state of a schedule. Only the running goroutine uses it.
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
	stored    []answer          // all answers ever stored
	successes int               // successes of handlers
	violation string            // the first violation
	story     *strings.Builder  // nil if no story is needed
}

// answer is the stored answer of an operation.
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
	c.engine = idem.New(c, callertest.Anybody, func(o *idem.Options) { o.Now = c.now })
	return c
}

// over ends all running clients.
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

// options returns the possible next steps, in a fixed order.
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
		if r := w.record(); r != nil && state.Over(r.Expires, w.now) && !slices.ContainsFunc(w.packets, isClaim) {
			opts = append(opts, step{what: reaped})
		}
	}
	return opts
}

// isClaim delays TTL: TTL takes so long that no claim in flight still finds its
// record removed. The design relies on this delay (shared/model, "P").
func isClaim(k *call) bool { return k.verb == claim }

// take carries out s.
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

// pass carries out an event of time.
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

// decide gives a client's call its outcome, and lets the client continue to its
// next call.
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

// perform carries out a call.
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

// key identifies a world. An engine acts only on its answers and its clock, so a
// client's past determines its state and its future; a client that is over has no
// future. Names replace the nonces, which are new in every run.
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

// canonical appends the parts of a record that can make a difference.
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
	if !live(r, w.now) {
		s += ", free"
	}
	return s
}

// report is the outcome of an exploration.
type report struct {
	schedules uint64 // within the bounds
	runs      int    // runs needed to see all schedules
	deepest   int    // number of steps
	violation string
	story     string // story of the shortest schedule with the violation
}

// search is one exploration.
type search struct {
	sc     *scenario
	broken *brokenStore
	path   []choice          // choices at the beginning of the current schedule
	seen   map[uint64]uint64 // number of schedules that continue from a world
	worst  []step            // the shortest failing schedule
	report report
}

// choice is a point with other options in a schedule.
type choice struct {
	world     uint64
	options   []step
	taken     int
	schedules uint64 // schedules through earlier options
}

// explore walks all schedules of a scenario on a broken store, or on the memory
// store. After a failure explore walks only shorter schedules, so that the
// shortest failure is reported.
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

// run runs the schedule that begins with path and then takes first options, and
// returns the number of schedules that it stands for.
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
// option left takes that option.
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

// retell runs the shortest failing schedule again and describes its steps.
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
