package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// episode is all that an episode follows from. Its text is a seed to repeat it by.
type episode struct {
	seed     uint64
	requests int
	off      map[fault]bool // faults that don't happen

	// Planted faults, for the test of the checks.
	flaw       func(*fakedynamo.DB) dynamo.API
	alter      func(*idem.Options)
	noRenewals bool // their end, and that of a handler, may meet: see TestRepeats
	sinkFlaw   func(jobs.Sink) jobs.Sink
	deriveFlaw bool
	tellFlaw   bool
	releases   []release // of a roll-out; nil: drawn, in order
	hasty      bool      // its steps follow each other at once

	// What the seed decides at once.
	rate   float64 // of the faults
	apart  bool    // no worker: a function for each task
	renews bool    // leases, as where a late process is not killed
	broken bool    // the deploy breaks the call, instead of another phase
	byTTL  bool
	inline int // of the store; 0: the default

	clocksRight bool // those of the API: look-ups count soon
	stored      bool // the requests of transfers

	most map[string]int // calls of an invocation
}

// String is SEED.REQUESTS, and the faults that are off by number.
func (e episode) String() string {
	s := fmt.Sprintf("%d.%d", e.seed, e.requests)
	for i, f := range faults {
		if e.off[f] {
			s += "-" + strconv.Itoa(i)
		}
	}
	return s
}

func parseEpisode(s string) (e episode, err error) {
	parts := strings.Split(s, "-")
	seed, requests, ok := strings.Cut(parts[0], ".")
	if e.seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
		return e, err
	}
	e.requests, e.off = perEpisode, make(map[fault]bool)
	if ok {
		if e.requests, err = strconv.Atoi(requests); err != nil {
			return e, err
		}
	}
	for _, p := range parts[1:] {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n >= len(faults) {
			return e, fmt.Errorf("%q is no number of a fault", p)
		}
		e.off[faults[n]] = true
	}
	return e, nil
}

// result is an episode's.
type result struct {
	wrong   []string
	history []string
	counts  map[fault]int
	most    map[string]int
	effects map[string]int
}

// perEpisode is how many requests an episode has.
const perEpisode = 25

const (
	traffic = 3 * time.Minute // while requests come
	settle  = 24 * time.Hour  // within which all is settled, once the faults are over: ten tries, each up to an hour late, and by a clock that is an hour behind
)

// play plays an episode in a bubble of its own.
func play(t *testing.T, e episode, record bool) (r result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := newWorld(e, record)
		w.plan()
		w.run()
		if len(w.wrong) == 0 {
			w.check()
		}
		w.close()
		slices.Sort(w.wrong)
		r = result{w.wrong, w.history, w.counts, w.most, w.effects()}
	})
	return r
}

func newWorld(e episode, record bool) *world {
	w := &world{
		episode: e, begin: time.Now(), rng: rand.New(rand.NewPCG(e.seed, 1)), record: record,
		counts: make(map[fault]int), wake: make(chan struct{}, 1), queues: make(map[string]*queue),
		ledger: ledger{ops: make(map[string]*operation), jobs: make(map[string]*job), pks: make(map[string]string), beside: make(map[string]map[string]bool)},
	}
	w.most = make(map[string]int)
	w.ctx, w.stop = context.WithCancelCause(context.Background())
	w.db = &fakedynamo.DB{Changed: w.changed}
	w.feed = &feed{w: w, of: make(map[string]*shard)}
	w.provider = &provider{w: w, keys: make(map[string]*charge), byOrder: make(map[string]map[string]bool), taken: make(map[string]int)}
	w.bank = newBank(w)
	w.fleet = &fleet{w: w, version: 1, free: make(map[string][]*sandbox)}
	w.queues[ticketsURL] = &queue{w: w, url: ticketsURL, function: workerFunction, sent: make(map[string]int)}
	w.states, w.schedule = newMachines(), make(map[string]bool)
	w.queues[jobsURL] = &queue{w: w, url: jobsURL, function: consumerFunction, sent: make(map[string]int)}
	return w
}

// plan draws what will happen whatever becomes of it: the requests, the deploy, the end
// of the faults.
func (w *world) plan() {
	w.rate = []float64{0.3, 1, 1, 1, 2, 4}[w.rng.IntN(6)]
	w.apart, w.broken = w.likely(0.8), w.likely(0.5)
	w.renews = w.likely(0.3) && !w.noRenewals
	if w.odds(0.2, "companions") && !w.off[companionsDown] {
		w.inline = 64 // nothing fits
	}
	w.clocksRight, w.stored = w.odds(0.4, "clocks"), w.odds(0.7, "stored")
	last := traffic
	w.rolls = w.plansRollOut()
	var withLast []*business
	for len(w.business) < w.requests {
		n := len(w.business)
		b := &business{
			tenant: "t" + strconv.Itoa(w.rng.IntN(3)), key: "key-" + strconv.Itoa(n), route: "/rides", order: order{"o" + strconv.Itoa(n), "memo " + strconv.Itoa(n)},
			at: w.between(0, traffic), clients: 1, rounds: 1 + w.rng.IntN(12),
		}
		switch {
		case w.likely(0.3):
			b.route = "/notes"
		case w.odds(0.15, "fee", n):
			b.route, b.outlives = "/fees", !w.off[timeEnds] && w.odds(0.4, "outlives", n)
		case w.odds(0.25, "transfer", n):
			b.route = "/transfers"
		}
		begins := false
		if w.rolls != nil {
			b.at, begins = w.rolls.moment()
		}
		if w.likely(0.15) && !w.off[sentTwice] {
			b.clients = 2
			w.counts[sentTwice]++
		}
		if n > 0 {
			other := w.business[w.rng.IntN(n)]
			switch {
			case w.likely(0.05) && !w.off[otherBody]:
				b.tenant, b.key, b.at = other.tenant, other.key, other.at+w.between(0, 10*time.Second)
				if w.rolls == nil || w.odds(0.5, "same route", n) { // on another one, the key may be another
					b.route = other.route
				}
				begins = slices.Contains(withLast, other)
				w.counts[otherBody]++
			case w.likely(0.05) && !w.off[otherTenant]:
				b.tenant, b.key, b.route = other.tenant+"'", other.key, other.route
				w.counts[otherTenant]++
			case w.likely(0.02) && !w.off[keyReused] && !slices.Contains(withLast, other):
				b.tenant, b.key, b.at = other.tenant, other.key, other.at+retention+2*widest+w.between(0, 4*time.Hour)
				begins = false
				w.counts[keyReused]++
			}
		}
		if b.outlives = b.outlives && b.route == "/fees"; b.outlives {
			b.rounds = 1
		}
		if b.route == "/rides" && w.hopeless(b.order.Order) {
			w.counts[hopeless]++
		}
		last = max(last, b.at)
		w.business = append(w.business, b)
		if begins {
			withLast = append(withLast, b)
		} else {
			w.start(b)
		}
	}
	if w.likely(0.3) && !w.off[deploy] {
		at := w.between(0, traffic/2)
		mends := at + w.between(time.Minute, 20*time.Minute)
		if w.likely(0.3) {
			mends = at + w.between(5*time.Hour, 6*time.Hour)
			last = max(last, mends)
		}
		w.at(w.begin.Add(at), func() { w.deployed(mends - at) })
	}
	w.schedules()
	calms := func(end time.Duration) {
		calm := max(last, end) + 10*time.Minute
		w.at(w.begin.Add(calm), func() {
			w.note("faults", "are over")
			w.calm = true
			w.look()
		})
		w.limit = w.begin.Add(calm + settle)
	}
	if w.rolls == nil {
		calms(0)
	} else {
		w.rolls.begin(withLast, calms)
	}
}

// deployed deploys version 2 as soon as operations are under way, or a little later, and
// version 3 after a time.
func (w *world) deployed(mends time.Duration) {
	open := func() bool {
		for _, op := range w.ledger.ops {
			if text(op.item, "st") == "open" && op.item["phases"] != nil {
				return true
			}
		}
		return false
	}
	if !open() && time.Since(w.begin) < traffic {
		w.after(50*time.Millisecond, func() { w.deployed(mends) })
		return
	}
	if open() {
		w.counts[deploy]++
		w.counts[rollback]++
	}
	w.fleet.deploy(2)
	w.after(mends, func() { w.fleet.deploy(3) })
}

// look looks every minute whether all is settled.
func (w *world) look() {
	switch open := w.unsettled(); {
	case len(open) == 0 && w.left == 0:
		w.settled = true
	case time.Now().After(w.limit):
		w.settled = true
		w.fail("not settled %s after the last fault: %s; %d clients", settle, strings.Join(open, "; "), w.left)
	default:
		w.pause = min(w.pause*2+time.Minute, 20*time.Minute)
		w.after(w.pause, w.look)
	}
}

func (w *world) ended() bool { return w.settled || len(w.wrong) > 0 }

// effects counts what was done.
func (w *world) effects() map[string]int {
	n := make(map[string]int)
	for _, b := range w.business {
		switch {
		case b.status != 0:
			n["clients with "+strconv.Itoa(b.status)]++
		default:
			n["clients told: "+b.said]++
		}
	}
	for _, op := range w.ledger.ops {
		if waits(op.item) {
			n["waiting: "+strings.Split(text(op.item, "waits"), "#")[0]]++
		}
	}
	n["jobs"] += len(w.ledger.jobs)
	n["schedules"] += w.scheduled
	n["executions"] += len(w.states.Inputs())
	for _, j := range w.ledger.jobs {
		if !j.at.IsZero() {
			n["later jobs"]++
		}
	}
	n["charges"] += len(w.provider.keys)
	n["calls of the provider"] += w.provider.calls
	return n
}

// smaller are simpler episodes than e that may fail like it.
func smaller(e episode) (all []episode) {
	for _, f := range faults {
		if !e.off[f] {
			next := e
			next.off = make(map[fault]bool)
			for g := range e.off {
				next.off[g] = true
			}
			next.off[f] = true
			all = append(all, next)
		}
	}
	return all
}

// shrink looks for the shortest history that fails: with fewer faults, then with fewer
// requests, of other seeds if need be.
func shrink(t *testing.T, e episode, budget int) (episode, result) {
	t.Helper()
	best := play(t, e, true)
	try := func(next episode) bool {
		if budget--; budget < 0 {
			return false
		}
		r := play(t, next, true)
		if len(r.wrong) == 0 || len(r.history) >= len(best.history) {
			return false
		}
		e, best = next, r
		return true
	}
	for _, n := range []int{1, 2, 3, 5, 8, 13} {
		found := false
		for i := range uint64(max(20, budget/10)) {
			next := e
			next.requests, next.seed = n, e.seed+i
			if n < e.requests && try(next) {
				found = true
			}
		}
		if found {
			break
		}
	}
	for again := true; again && budget > 0; {
		again = slices.ContainsFunc(smaller(e), try)
	}
	return e, best
}
