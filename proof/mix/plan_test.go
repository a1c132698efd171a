package mix

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
)

// plan is what a seed draws before its episode begins.
type plan struct {
	*drawn

	engine    func(*idem.Options)
	inline    int
	sealed    bool
	retention time.Duration
	lease     time.Duration
	maxBody   int
	maxTries  int
	resumable bool
	renews    bool
	limit     time.Duration // of an invocation; 0: none
	kills     bool          // the platform kills at the limit
	rate      float64       // of the faults
	former    bool          // the scope of keys changes, by the deploy
	readFirst bool          // requests are read before their claim

	scripts   []*script // by version
	customers []*customer
	deployAt  time.Duration // 0: never
}

// script is a version of the handler.
type script struct {
	version int
	steps   []step
	end     string // plain, finish or respond
	status  int
	size    int // of the answer
	writes  bool
	jobs    int
	at      int // answers before this step, without or with refusing each time
	early   int // with this status; 0: never
	always  bool
	respond bool // by Respond
	fails   bool // always, at the end
}

// step is a phase.
type step struct {
	name    string
	foreign bool
	intent  bool
	writes  bool
	jobs    int
	size    int
	memory  time.Duration
	sends   bool
	steps   bool // the derived key names the phase
	joins   bool // a call's failure is answered by Respond
	never   bool // by Remembers(0)
	look    bool
	within  time.Duration // of the look-up: longer than onWay and lag together
	onWay   time.Duration // the longest time of a call on its way
	lag     time.Duration // the longest time by which the look-up is behind
}

func (s *script) String() string {
	var b strings.Builder
	for i, st := range s.steps {
		if s.early != 0 && s.at == i {
			fmt.Fprintf(&b, "answer %d (each time: %t, Respond: %t); ", s.early, s.always, s.respond)
		}
		kind := "Atomic"
		if st.foreign {
			kind = "Foreign"
		}
		fmt.Fprintf(&b, "%s %q", kind, st.name)
		for _, o := range []struct {
			on   bool
			text string
		}{
			{st.intent, "NotIdempotent"},
			{st.memory > 0, fmt.Sprintf("Remembers(%s)", st.memory)},
			{st.never, "Remembers(0)"},
			{st.look, fmt.Sprintf("LookUp(%s; %s on its way, %s behind)", st.within, st.onWay, st.lag)},
			{st.sends, "Sends"},
			{st.writes, "a write"},
			{st.jobs > 0, fmt.Sprintf("%d jobs", st.jobs)},
			{st.size > 0, fmt.Sprintf("result of %d bytes", st.size)},
		} {
			if o.on {
				b.WriteString(", " + o.text)
			}
		}
		b.WriteString("; ")
	}
	if s.early != 0 && s.at == len(s.steps) {
		fmt.Fprintf(&b, "answer %d (each time: %t, Respond: %t); ", s.early, s.always, s.respond)
	}
	if s.fails {
		b.WriteString("always an error; ")
	}
	fmt.Fprintf(&b, "%s %d, %d bytes", s.end, s.status, s.size)
	return b.String()
}

// item is the largest item that DynamoDB takes.
const item = 400 << 10

func newPlan(d *drawn) *plan {
	p := &plan{drawn: d}
	p.resumable = d.odds(0.45, resumable)
	p.former = d.odds(0.15, former)
	p.retention = pick(d, retention, []time.Duration{24 * time.Hour, time.Hour, 6 * time.Hour})
	p.lease = pick(d, lease, []time.Duration{30 * time.Second, 5 * time.Second, 15 * time.Second})
	p.maxBody = pick(d, maxBody, []int{256 << 10, 2 << 10, 20 << 10, 1 << 20})
	p.inline = pick(d, inline, []int{4 << 10, 64, 1 << 10, 64 << 10})
	p.maxTries = pick(d, maxTries, []int{defaults.MaxTries, 1, 3})
	p.limit = pick(d, deadline, []time.Duration{20 * time.Second, 0, 3 * time.Second, 8 * time.Second})
	p.kills = p.limit > 0 && d.hash("kills")%4 > 0
	p.renews = d.odds(0.15, renews) && !p.steady
	p.sealed = d.odds(0.2, sealed)
	p.rate = []float64{0, 1, 1, 3, 8}[d.hash("rate")%5]
	flight := pick(d, inFlight, []idem.InFlightMode{idem.InFlightRefuse, idem.InFlightWait, idem.InFlightAccept})
	policy := pick(d, stored, []func(idem.Response) bool{
		nil,
		func(r idem.Response) bool { return r.Status < http.StatusInternalServerError },
		func(idem.Response) bool { return true },
		func(r idem.Response) bool { return r.Status < http.StatusMultipleChoices },
	})
	p.engine = func(o *idem.Options) {
		o.Function, o.Resumable = "mix", p.resumable
		o.MaxRequest = 10 << 20
		o.CallsOut = d.odds(0.2, callsOut)
		if p.former {
			o.CallerFromOp = true
			o.Scope = func(context.Context, *idem.Request) (string, error) { return "alice's account", nil }
			o.Former = &idem.Former{Scope: func(context.Context, *idem.Request) (string, error) { return "alice", nil }}
		}
		if d.odds(0.2, readFirst) {
			p.readFirst = true
		}
		o.Retention, o.Lease, o.MaxBody, o.MaxTries, o.Stored = p.retention, p.lease, p.maxBody, p.maxTries, policy
		o.InFlight = flight
		if flight == idem.InFlightAccept {
			o.StatusURL = "/status/"
		}
	}
	p.write()
	p.invite()
	return p
}

// write draws the scripts.
func (p *plan) write() {
	d := p.drawn
	s := &script{version: 1, end: "plain", status: http.StatusCreated, size: 80}
	n := 0
	if d.on(phases) {
		n = int([]uint64{0, 1, 1, 2, 2, 3, 4, 5}[d.hash("phases")%8])
	}
	for i := range n {
		s.steps = append(s.steps, p.step(i))
	}
	if large := slices.IndexFunc(s.steps, func(st step) bool { return st.size > 10_000 }); large >= 0 {
		for i := range s.steps {
			if s.steps[i].jobs = 0; i != large {
				s.steps[i].size = 0
			}
		}
	}
	if d.on(ending) {
		s.end = []string{"plain", "finish", "respond"}[d.hash("end")%3]
	}
	s.writes, s.jobs = d.odds(0.5, writes, "end"), 0
	if d.odds(0.3, jobsStaged, "end") {
		s.jobs = 1 + int(d.hash("end jobs")%3)
	}
	s.status = pick(d, status, []int{201, 201, 201, 200, 402, 409, 422, 500})
	if d.odds(0.5, largeAnswer) {
		s.size = pick(d, largeAnswer, []int{
			100, p.inline - 10 + int(d.hash("inline")%40), p.maxBody - 10 + int(d.hash("maxBody")%20), 5 << 10, 30 << 10, 450 << 10,
		})
		s.size = max(s.size, 80)
	}
	s.at = int(d.hash("early") % uint64(n+1))
	if d.odds(0.3, refuses) {
		s.early = []int{409, 422, 402, 404, 500, 201}[d.hash("early status")%6]
		s.always, s.respond = d.odds(0.2, always), d.hash("early respond")%4 == 0
	}
	s.fails = d.odds(0.04, hopeless)
	p.scripts = []*script{s, s}
	if d.odds(0.12, deploy) {
		p.deployAt = d.between(time.Millisecond, 2*time.Minute, "deploy")
		next := *s
		next.version = 2
		if n > 0 {
			gone := int(d.hash("gone") % uint64(n))
			next.steps = slices.Delete(slices.Clone(s.steps), gone, n)
			if d.hash("one")%2 == 0 {
				next.steps = slices.Delete(slices.Clone(s.steps), gone, gone+1)
			}
		}
		if d.hash("plain")%2 == 0 {
			next.end, next.status, next.size = "plain", []int{201, 422, 409}[d.hash("next status")%3], 80
		}
		next.at = min(next.at, len(next.steps))
		p.scripts[1] = &next
	}
	if p.former && p.deployAt == 0 {
		p.deployAt = d.between(time.Millisecond, 2*time.Minute, "former")
	}
}

func (p *plan) step(i int) step {
	d := p.drawn
	st := step{name: fmt.Sprint("p", i), steps: p.hash("steps", i)%2 == 0 || d.odds(0.12, deploy)}
	st.foreign = d.odds(0.55, foreign, i)
	st.intent = st.foreign && d.odds(0.15, notIdempotent, i)
	if st.foreign && !st.intent && d.odds(0.3, remembers, i) {
		st.memory = []time.Duration{time.Hour, 8 * time.Minute, 4 * time.Hour}[d.hash("memory", i)%3]
	}
	st.sends = st.foreign && d.odds(0.2, sends, i)
	if st.look = st.foreign && d.odds(0.4, lookUp, i); st.look {
		p.asks(&st, i)
	}
	if st.foreign && !st.intent && d.odds(0.1, neverAgain, i) {
		st.never, st.memory = true, 0
	}
	if !st.foreign {
		st.writes = d.odds(0.4, writes, i)
		if d.odds(0.25, jobsStaged, i) {
			st.jobs = int([]uint64{1, 2, 5, 15}[d.hash("jobs", i)%4])
		}
	}
	st.joins = d.hash("joins", i)%2 == 0
	st.size = int(d.hash("size", i) % 50)
	if d.odds(0.02, largeResult, i) {
		st.size = item - 2000 + int(d.hash("large", i)%1600)
	}
	return st
}

// clocks are the most by which the clocks of two hosts differ, and a little.
const clocks = 11 * time.Second

// asks gives a call a look-up. within is as short as it may be.
func (p *plan) asks(st *step, i int) {
	d := p.drawn
	st.sends = true
	if !st.intent {
		st.memory = pick(d, remembers, []time.Duration{8 * time.Minute, time.Hour, 4 * time.Hour}, "look", i)
	}
	st.within = pick(d, lookUp, []time.Duration{15 * time.Minute, 2 * time.Hour, 5 * time.Hour}, i)
	rest := st.within - clocks
	longest := rest / 2
	if !st.intent { // copies with a key come while it is known
		longest = min(longest, st.memory-st.trusted()-clocks)
	}
	st.onWay = d.between(time.Minute, longest, "on its way", i)
	st.lag = rest - st.onWay
}

// comesLate are the pauses of a client that calls again, if the call may be repeated, and asks
// soon after its first call was within ago.
func (p *plan) comesLate(st step, i int) []time.Duration {
	if st.intent || st.never {
		return []time.Duration{st.within + p.between(-p.lease, 2*p.lease, "late", i), time.Second, 10 * time.Minute}
	}
	again := p.between(p.lease, st.trusted(), "again", i)
	return []time.Duration{again, max(st.within-again, time.Second) + p.between(0, again, "late", i), 10 * time.Minute}
}

// trusted is for how long a call is repeated under its key.
func (st *step) trusted() time.Duration { return st.memory - min(time.Hour, st.memory/4) }

// slowest is the longest time until a look-up counts.
func (p *plan) slowest() (d time.Duration) {
	for _, s := range p.scripts {
		for _, st := range s.steps {
			d = max(d, st.within)
		}
	}
	return d
}

// invite draws the clients.
func (p *plan) invite() {
	d := p.drawn
	first := &customer{name: "client 1", key: "k", body: "b1"}
	p.customers = []*customer{first}
	if d.odds(0.4, secondClient) {
		second := &customer{name: "client 2", key: "k", body: "b1"}
		second.at = []time.Duration{0, d.between(0+time.Microsecond, 200*time.Millisecond, "second"), d.between(time.Second, time.Minute, "second")}[d.hash("second at")%3]
		if d.odds(0.2, otherBody) {
			second.body = "b2"
		}
		p.customers = append(p.customers, second)
	}
	for i, c := range p.customers {
		c.rounds = 1 + int(d.hash("rounds", i)%5)
		if d.odds(0.3, givesUp, i) {
			c.rounds = 1
		}
		switch {
		case d.odds(0.18, pastRetention, i):
			c.pauses = []time.Duration{p.retention + 2*time.Hour + 40*time.Minute}
			c.rounds = max(c.rounds, 2)
		case d.odds(0.4, longPause, i):
			c.pauses = []time.Duration{p.lease + 10*time.Second, time.Second, 10 * time.Minute}
		case d.odds(0.5, impatient, i):
			c.pauses = []time.Duration{50 * time.Millisecond}
		default:
			c.pauses = []time.Duration{time.Second, 3 * time.Second}
		}
		for _, st := range p.scripts[0].steps {
			if st.look && d.odds(0.7, comesLate, i) {
				c.pauses = p.comesLate(st, i)
				c.rounds = max(c.rounds, 4)
			}
		}
		if p.odds(0.15, largeRequest) {
			c.size = pick(d, largeRequest, []int{2 << 10, p.inline + 100, 20 << 10, 450 << 10})
		}
	}
}

// settings are the options as a history shows them.
func (p *plan) settings() string {
	var o idem.Options
	p.engine(&o)
	return fmt.Sprintf("Resumable %t, ReadFirst %t, Retention %s, Lease %s, MaxBody %d, "+
		"MaxTries %d, InFlight %d, CallsOut %t, former %t, renews %t, policy %t, Inline %d, sealed %t, time limit %s, kills %t, rate %g",
		o.Resumable, p.readFirst, o.Retention, o.Lease, o.MaxBody, o.MaxTries, o.InFlight, o.CallsOut, p.former,
		p.renews, o.Stored != nil, p.inline, p.sealed, p.limit, p.kills, p.rate)
}
