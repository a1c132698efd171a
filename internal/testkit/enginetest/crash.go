package enginetest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// crashPath is a request and the store calls that it makes.
type crashPath struct {
	name    string
	before  func(t *testing.T, e *env, a *app) // runs before the request; may be nil
	repeats bool                               // the request has ReadFirst
	fails   bool                               // the handler fails
	calls   []string                           // the names of the store calls
	points  []crashPoint                       // crashes before and after each call
}

// crashPoint is the place of a crash, and the expected outcome.
type crashPoint struct {
	call  int // the number of the store call, counted from 1
	after bool
	retry string // the outcome of an immediate retry
	runs  int    // how often the handler has run when the scenario ends
}

// crashPaths is the matrix of crashes. If the client retries, the key gets a stored
// answer, at once or after the lease. The handler runs twice only if its first run
// failed, or if the process died before the answer was stored.
var crashPaths = []crashPath{
	{name: "a new request", calls: []string{"Claim", "Commit"}, points: []crashPoint{
		{1, false, answers, 1},
		{1, true, waits, 1},
		{2, false, waits, 2},  // the handler ran, but the record doesn't show it
		{2, true, replays, 1}, // the answer is stored, but was not sent
	}},
	{name: "a take-over", before: abandoned, calls: []string{"Claim", "Commit", "Commit"}, points: []crashPoint{
		{1, false, answers, 1},
		{1, true, answers, 1},
		{2, false, answers, 1},
		{2, true, waits, 1},
		{3, false, waits, 2},
		{3, true, replays, 1},
	}},
	{name: "a handler's failure", fails: true, calls: []string{"Claim", "Commit"}, points: []crashPoint{
		{1, false, answers, 1},
		{1, true, waits, 1},
		{2, false, waits, 2},
		{2, true, answers, 2},
	}},
	{name: "a failure after a take-over", before: abandoned, fails: true, calls: []string{"Claim", "Commit", "Commit"}, points: []crashPoint{
		{1, false, answers, 1},
		{1, true, answers, 1},
		{2, false, answers, 1},
		{2, true, waits, 1},
		{3, false, waits, 2},
		{3, true, answers, 2},
	}},
	{name: "a request that reads first", repeats: true, calls: []string{"Load", "Claim", "Commit"}, points: []crashPoint{
		{1, false, answers, 1},
		{1, true, answers, 1},
		{2, false, answers, 1},
		{2, true, waits, 1},
		{3, false, waits, 2},
		{3, true, replays, 1},
	}},
	{name: "a replay", before: finishedBefore, calls: []string{"Claim"}, points: []crashPoint{
		{1, false, replays, 1},
		{1, true, replays, 1},
	}},
}

func abandoned(t *testing.T, e *env, _ *app) {
	t.Helper()
	e.abandon(t, order("k", "1"))
	e.clock.Advance(storetest.LeaseOver)
}

func finishedBefore(t *testing.T, e *env, a *app) {
	t.Helper()
	do(t, e.engine(), order("k", "1"), a.run).first(t)
}

func crashMatrix(s suite) {
	for _, path := range crashPaths {
		s.run(path.name+" makes the calls it can crash at", func(t *testing.T, e *env) {
			process, calls := path.send(t, e, new(app), nil)
			if !slices.Equal(calls, path.calls) || process.Calls() != len(path.points)/2 {
				t.Errorf("calls are %q, want %q with 2 points for each", calls, path.calls)
			}
		})
		for _, p := range path.points {
			when := "before"
			if p.after {
				when = "after"
			}
			s.run(""+path.name+", crash "+when+" call "+strconv.Itoa(p.call), func(t *testing.T, e *env) {
				var a app
				if process, calls := path.send(t, e, &a, idemtest.CrashAt(p.call, p.after)); !process.Crashed() {
					t.Fatalf("after calls %q the process has not come to call %d", calls, p.call)
				}
				survives(t, e, &a, p)
			})
		}
	}

	s.run("a new request, crash in the handler", func(t *testing.T, e *env) {
		var a app
		e.abandon(t, order("k", "1"))
		survives(t, e, &a, crashPoint{retry: waits, runs: 1})
	})
}

// crashPath.send sends the path's request from a separate process, which crashes as
// planned. The answer is ignored. send returns the process's store, and the names of
// the store calls.
func (p crashPath) send(t *testing.T, e *env, a *app, crash idemtest.Plan) (*idemtest.FaultyStore, []string) {
	t.Helper()
	if p.before != nil {
		p.before(t, e, a)
	}
	var (
		mu    sync.Mutex
		calls []string
	)
	process := idemtest.Faulty(e.inner, func(ctx context.Context, c idemtest.Call) idemtest.Fault {
		mu.Lock()
		calls = append(calls, c.Verb)
		mu.Unlock()
		if crash == nil {
			return idemtest.Fault{}
		}
		return crash(ctx, c)
	})
	handle := a.run
	if p.fails {
		handle = a.fail(errHandler)
	}
	r := order("k", "1")
	r.ReadFirst = p.repeats
	do(t, e.engineOn(process), r, handle)
	return process, calls
}

// survives retries a request whose client got no answer. It retries at once, and again
// after the lease if the first retry is told to wait. It fails t unless each outcome is
// the one that p expects.
func survives(t *testing.T, e *env, a *app, p crashPoint) {
	t.Helper()
	last := do(t, e.engine(), order("k", "1"), a.run).cameTo(t, "a retry at once", p.retry)
	if p.retry == waits {
		e.clock.Advance(storetest.LeaseOver)
		last = do(t, e.engine(), order("k", "1"), a.run).cameTo(t, "a retry after the lease", answers)
	}
	do(t, e.engine(), order("k", "1"), a.run).replays(t, last)
	a.ran(t, p.runs)
}
