package idem_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/prove"
)

// The scope of a key changes: programs of several releases run side by side on one store,
// each for one client that retries. Every call to the store stops until the explorer has
// decided whose call is next, and what becomes of it. The explorer walks all schedules
// within a scenario's bounds.
//
// After every write at most one of the key's two records is live, by the slowest clock;
// and within a lifetime everybody hears the same answer.

// A release of the program. Requests come without an identity only to the former one.
type release int

const (
	former release = iota
	claimsFormer
	claimsNew
	present
	public          // all callers whom nobody verifies are one
	claimsForPublic // the first release after it
)

func (r release) options(o *idem.Options) {
	switch r {
	case former:
		o.Scope = func(context.Context, *idem.Request) (string, error) { return "everybody", nil }
	case claimsFormer, claimsNew:
		o.Former = &idem.Former{Claims: r == claimsFormer, Scope: func(context.Context, *idem.Request) (string, error) { return "everybody", nil }}
	case present:
	case public:
		idem.OneScope(o)
	case claimsForPublic:
		o.Former = &idem.Former{Claims: true, OneScope: true}
	}
}

type rollOut struct {
	name     string
	before   []release // each of which has ended an operation of the key before, without an answer that is kept
	releases []release // of the clients
	skew     time.Duration
	faults   int
	moves    int
	breaks   bool // the order is wrong: a violation is found
}

// What becomes of a call.
const (
	isAnswered = iota
	answerIsLost
	isLost
	diesAfterIt // after the call
	outcomes
)

// process is a client's process, which is the store of its engine.
type process struct {
	w       *deployment
	n       int
	skew    time.Duration
	pending func(outcome int)
	what    string
	dead    bool
	done    bool
}

type deployment struct {
	sync.Mutex // what the explorer and the clients' goroutines share
	mem        idem.MemoryStore
	now        time.Time
	processes  []*process
	answers    []heard
	slow       time.Duration // of the slowest clock
	violation  string
	story      []string
}

func (w *deployment) fail(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}

// check finds two live records.
func (w *deployment) check() {
	var live []string
	for pk, r := range w.mem.Records() {
		if !state.Free(r, w.now.Add(w.slow)) {
			live = append(live, pk)
		}
	}
	if len(live) > 1 {
		w.fail("two records of one key are live")
	}
}

// heard is what a client was told.
type heard struct {
	body    string
	expires time.Time
}

// tell finds two answers that hold at one time. Hosts whose clocks differ don't agree on
// the end of an answer.
func (w *deployment) tell(body string, expires time.Time) {
	now := w.now
	for _, a := range append(w.answers, heard{body, expires}) {
		if w.slow == 0 && a.body != body && !state.Over(a.expires, now) && !state.Over(expires, now) {
			w.fail("the answer is %s, and was %s", body, a.body)
		}
	}
	w.answers = append(w.answers, heard{body, expires})
}

// stopsAt stops until the explorer has decided.
func stopsAt[T any](p *process, what string, call func() (T, error)) (got T, err error) {
	p.w.Lock()
	if p.dead {
		p.w.Unlock()
		return got, store.ErrUnknown
	}
	reply := make(chan struct{})
	p.what = what
	p.pending = func(outcome int) {
		if outcome != isLost {
			got, err = call()
			p.w.check()
		}
		if outcome != isAnswered {
			var nothing T
			got, err = nothing, store.ErrUnknown
		}
		p.dead = p.dead || outcome == diesAfterIt
		close(reply)
	}
	p.w.Unlock()
	<-reply
	return got, err
}

func (p *process) Claim(_ context.Context, c store.Claim) (*store.Record, error) {
	next := c.Next.Clone()
	return stopsAt(p, "Claim", func() (*store.Record, error) { c.Next = next; return p.w.mem.Claim(context.Background(), c) })
}

func (p *process) Commit(_ context.Context, c store.Commit) (*store.Record, error) {
	return stopsAt(p, "Commit", func() (*store.Record, error) { return p.w.mem.Commit(context.Background(), c) })
}

func (p *process) Load(_ context.Context, pk string) (*store.Record, error) {
	return stopsAt(p, "Load", func() (*store.Record, error) { return p.w.mem.Load(context.Background(), pk) })
}

func (w *deployment) time() time.Time {
	w.Lock()
	defer w.Unlock()
	return w.now
}

func (w *deployment) engine(s store.Store, r release, skew time.Duration) *idem.Engine {
	return idem.New(s, r.options, func(o *idem.Options) {
		o.Now, o.Logger = func() time.Time { return w.time().Add(skew) }, slog.New(slog.DiscardHandler)
	})
}

// live sends the request until it is answered, at most twice.
func (p *process) live(e *idem.Engine) {
	defer func() {
		p.w.Lock()
		defer p.w.Unlock()
		p.done = true
	}()
	for try := range 2 {
		ctx, cancel := context.WithTimeout(asleep.With(context.Background()), 10*time.Second) // of the bubble's time, which passes only in pauses
		res, err := e.Do(ctx, whoseKey(), func(context.Context) (idem.Response, error) {
			return idem.Response{Status: 201, Body: fmt.Appendf(nil, "%d.%d", p.n, try)}, nil
		})
		cancel()
		if err == nil && !res.Unstored && p.hears(res) {
			return
		}
	}
}

func (p *process) hears(res idem.Result) bool {
	p.w.Lock()
	defer p.w.Unlock()
	if !p.dead {
		p.w.tell(string(res.Body), res.Expires)
	}
	return !p.dead
}

func whoseKey() idem.Request {
	return idem.Request{Key: "a-random-key-of-an-order", Method: "POST", Path: "/", Identity: idem.Identity{Kind: "jwt", Subject: "ann"}}
}

// play runs one schedule: choices are indexes into the options of each step, 0 beyond
// them. It returns the number of options of each step.
func (d rollOut) play(choices []int) (options []int, w *deployment) {
	w = &deployment{now: time.Unix(2_000_000_000, 0), slow: min(0, d.skew)}
	for _, r := range d.before {
		_, _ = w.engine(&w.mem, r, 0).Do(context.Background(), whoseKey(), func(context.Context) (idem.Response, error) {
			return idem.Response{Status: 400}, nil
		})
	}
	for n, r := range d.releases {
		p := &process{w: w, n: n}
		if n == 1 {
			p.skew = d.skew
		}
		w.processes = append(w.processes, p)
		go p.live(w.engine(p, r, p.skew))
	}
	faults, moves := d.faults, d.moves
	for {
		for synctest.Wait(); w.pauses(); synctest.Wait() {
			time.Sleep(time.Second) //nolint:forbidigo // virtual
		}
		w.Lock()
		type option struct {
			p       *process
			outcome int
		}
		var all []option
		for _, p := range w.processes {
			for outcome := range outcomes {
				if write := p.what != "Load"; !p.done && (outcome == isAnswered || faults > 0 && (write || outcome == isLost)) {
					all = append(all, option{p, outcome})
				}
			}
		}
		if len(all) == 0 || w.violation != "" {
			w.Unlock()
			break
		}
		count := len(all)
		if moves > 0 {
			count += 2
		}
		choice := 0
		if len(options) < len(choices) {
			choice = choices[len(options)]
		}
		options = append(options, count)
		switch choice - len(all) {
		case 0: // every lease is over, and no record
			w.now, moves = w.now.Add(defaults.Retention-10*time.Minute), moves-1
			w.story = append(w.story, "the leases end")
		case 1: // every record ends; with a slow clock, only the one that it made, and not yet by that clock
			w.now, moves = w.now.Add(defaults.Retention+time.Second+d.skew/2), moves-1
			w.story = append(w.story, "the lifetime ends")
		default:
			o := all[choice]
			if o.outcome != isAnswered {
				faults--
			}
			w.story = append(w.story, fmt.Sprintf("%d: %s, outcome %d", o.p.n, o.p.what, o.outcome))
			decide := o.p.pending
			o.p.pending = nil
			decide(o.outcome)
		}
		w.Unlock()
	}
	for w.end() { // a schedule that ends early
		time.Sleep(time.Second) //nolint:forbidigo // virtual
		synctest.Wait()
	}
	return options, w
}

// pauses reports a client that waits for time, not for the explorer.
func (w *deployment) pauses() bool {
	w.Lock()
	defer w.Unlock()
	return slices.ContainsFunc(w.processes, func(p *process) bool { return !p.done && p.pending == nil })
}

// end kills the clients, and reports that some still run.
func (w *deployment) end() (running bool) {
	w.Lock()
	defer w.Unlock()
	for _, p := range w.processes {
		if p.done {
			continue
		}
		running, p.dead = true, true
		if decide := p.pending; decide != nil {
			p.pending = nil
			decide(isLost)
		}
	}
	return running
}

// explore walks all schedules, and returns their number and the first violation.
func (d rollOut) explore(t *testing.T) (schedules int, violation string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { schedules, violation = d.walk() })
	return schedules, violation
}

func (d rollOut) walk() (schedules int, violation string) {
	for choices := []int{}; ; schedules++ {
		options, w := d.play(choices)
		if w.violation != "" {
			return schedules, w.violation + ":\n" + strings.Join(w.story, "\n")
		}
		for len(choices) < len(options) {
			choices = append(choices, 0)
		}
		choices = choices[:len(options)]
		last := len(choices) - 1
		for last >= 0 && choices[last]+1 >= options[last] {
			last--
		}
		if last < 0 {
			return schedules + 1, ""
		}
		choices = append(choices[:last:last], choices[last]+1)
	}
}

func TestScopesChangeInTwoReleases(t *testing.T) {
	t.Parallel()
	for _, d := range []rollOut{
		{name: "the first release beside the former one", releases: []release{former, claimsFormer}, faults: 1, moves: 1},
		{name: "the second beside the first", releases: []release{claimsFormer, claimsNew}, faults: 1, moves: 1},
		{name: "the second beside the first, after a former operation", before: []release{former}, releases: []release{claimsFormer, claimsNew}, faults: 1, moves: 1},
		{name: "the second beside the first, after a new operation", before: []release{claimsNew}, releases: []release{claimsFormer, claimsNew}, faults: 1, moves: 1},
		{name: "the same, with a slow clock", before: []release{claimsNew}, releases: []release{claimsNew, claimsFormer}, skew: -30 * time.Second, moves: 1},
		{name: "two of the first and one of the second", releases: []release{claimsFormer, claimsFormer, claimsNew}},
		{name: "without Former beside the second", releases: []release{claimsNew, present}, faults: 1, moves: 1},
		{name: "the second beside the former one: the first is needed", releases: []release{former, claimsNew}, breaks: true},
		{name: "without Former beside the first: the second is needed", releases: []release{claimsFormer, present}, breaks: true},
		{name: "verified callers of a public route beside the first: the authorizer comes after the first", releases: []release{public, claimsForPublic}, breaks: true},
		{name: "no release between", releases: []release{former, present}, breaks: true},
	} {
		if d.before != nil && !prove.All() {
			d.faults = 0 // 46,000 schedules each
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			n, violation := d.explore(t)
			t.Logf("%d schedules", n)
			if (violation != "") != d.breaks {
				t.Errorf("after %d schedules: %s", n, violation)
			}
		})
	}
}
