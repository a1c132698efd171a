package idemtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// patience is how long a request may take, in real time.
const patience = time.Minute

// maxCalls is a limit that no request should reach.
const maxCalls = 1000

// CrashOptions are the options of [CrashEverywhere] and [CrashProgram].
type CrashOptions struct {
	// Store opens the store of a World. All stores may be on one table, since each World
	// has its own namespace. Default: a new idem.MemoryStore.
	Store func() store.Store
	// Engine sets options of the engine that [CrashEverywhere] makes, after
	// [World.Options].
	Engine func(*idem.Options)
	// Begin prepares a World before its first process starts. For instance, Begin can
	// set how long the Provider remembers keys (Provider.Memory), or choose a [Fate]
	// for a call. If Begin is set, the client and the completer try up to three times
	// instead of once, because Begin may make calls fail.
	Begin func(*World)
	// MayStick allows an operation to end as stuck. Set MayStick if the handler has a
	// phase that is [idem.NotIdempotent] and has no look-up, because a crash in this
	// phase's call leaves the operation stuck. After a run that ends as stuck, the
	// function check isn't called. Such a run fails only if the operation had more
	// effects than in the run without a crash.
	MayStick bool
}

// CrashEverywhere runs a request many times. In each run, the process crashes at
// another point. The points are before and after each call to the store, and before and
// after each call that the handler makes with w.Client, w.Through, w.Call or w.LookUp.
// When the lease of the crashed process is over, the client sends the request again. As
// long as look-ups ([idem.LookUp]) leave the outcome open, the client sends the request
// again after each look-up's pause.
//
// If the crash leaves an open record with the stored request, there is a second run
// with the same crash. In this run, a completer continues the operation before the
// client sends the request again. In one more run, without a crash, every [idem.Atomic]
// runs twice.
//
//	idemtest.CrashEverywhere(t, func(ctx context.Context, w *idemtest.World, r *idem.Request) (idem.Response, error) {
//		return buy(ctx, r, w.Client())
//	}, request, func(t testing.TB, w *idemtest.World, answer idem.Response) {
//		…
//	})
//
// The test fails if the client's request ends in an error. After the answer, the client
// sends the same request once more. The test fails unless this request replays the
// answer, without an effect and without a call to the provider. The test also fails if
// a run with a crash has more or fewer effects than the run without a crash. Effects
// are the provider's effects, the user's writes, and jobs. After each run that ends
// with an answer, CrashEverywhere calls the function check with the run's World and
// answer, unless check is nil. If check calls Fatal, only that run ends. Each failure
// names the call at which the process crashed. If the first run, which has no crash,
// fails, there are no further runs.
//
// When a process crashes, its context ends. Later calls of the process through w have
// no effect and get no answer, so the handler can no longer change the World.
// CrashEverywhere sees only effects that are made through w. The request needs a Key.
// On a MemoryStore, CrashEverywhere needs some tenths of a second for a handler with
// five calls, mostly for waits after conflicts. To use DynamoDB Local, set
// CrashOptions.Store.
func CrashEverywhere(t testing.TB, handler func(context.Context, *World, *idem.Request) (idem.Response, error), request idem.Request, check func(testing.TB, *World, idem.Response), optFns ...func(*CrashOptions)) {
	t.Helper()
	opt := crashOptions(optFns)
	CrashProgram(t, func(w *World) Program[idem.Response] {
		engine := w.Engine()
		if opt.Engine != nil {
			engine = w.Engine(opt.Engine)
		}
		return Program[idem.Response]{
			Send: func(ctx context.Context) (idem.Response, bool, error) {
				r := request
				res, err := engine.Do(ctx, r, func(ctx context.Context) (idem.Response, error) { return handler(ctx, w, &r) })
				return res.Response, res.Replayed, err
			},
			Resume: func(ctx context.Context, ticket jobs.Ticket) error {
				_, err := engine.Resume(ctx, ticket, func(ctx context.Context, r *idem.Request) (idem.Response, error) { return handler(ctx, w, r) })
				return err
			},
			Diff: diffAnswers,
		}
	}, check, optFns...)
}

// maxLooks is a limit that no call in doubt should reach.
const maxLooks = 100

// Program is one process of the program that [CrashProgram] tests.
type Program[Re any] struct {
	// Send sends the request, and reports whether the answer came from a record. Each call
	// of Send sends the same request.
	Send func(context.Context) (answer Re, replayed bool, err error)
	// Resume continues an abandoned operation, as a completer does. Resume is nil if the
	// program has no completer.
	Resume func(context.Context, jobs.Ticket) error
	// Diff returns how two answers differ, or "" if they are the same.
	Diff func(a, b Re) string
}

// CrashProgram is [CrashEverywhere] for programs that are more than a handler. An
// example is an http.Handler behind [idem.Engine.Middleware]. For programs of package
// lambda there is lambdatest.CrashEverywhere, which calls CrashProgram. CrashProgram
// calls the function start for each process.
func CrashProgram[Re any](t testing.TB, start func(*World) Program[Re], check func(testing.TB, *World, Re), optFns ...func(*CrashOptions)) {
	t.Helper()
	c := &crashes[Re]{t: t, opt: crashOptions(optFns), start: start, check: check, said: make(map[string]int)}
	defer c.sum()
	w, calls, _ := c.begin(point{}, nil)
	if !c.end(w, "without a crash", false) {
		return // the other runs would only repeat the failure
	}
	if len(calls) == 0 {
		t.Error("the request makes no call: is its engine made by w.Engine?")
		return
	}
	c.want = tally(w)

	w, _, _ = c.begin(point{}, everyAtomicTwice())
	c.end(w, "with every Atomic run twice", false)

	for n := 1; n <= maxCalls; n++ {
		crashed := false
		for _, after := range []bool{false, true} {
			for _, completer := range []bool{false, true} {
				w, calls, down := c.begin(point{n, after}, nil)
				if !down {
					continue
				}
				crashed = true
				where := "before"
				if after {
					where = "after"
				}
				label := fmt.Sprintf("crash %s call %d (%s)", where, n, calls[n-1])
				if !completer {
					c.end(w, label+", then the client's retry", false)
				} else if c.completable(w) {
					c.end(w, label+", then a completer", true)
				}
			}
		}
		if !crashed {
			return
		}
	}
	t.Errorf("the request makes more than %d calls", maxCalls)
}

func crashOptions(optFns []func(*CrashOptions)) (opt CrashOptions) {
	for _, fn := range optFns {
		fn(&opt)
	}
	if opt.Store == nil {
		opt.Store = func() store.Store { return new(idem.MemoryStore) }
	}
	return opt
}

type crashes[Re any] struct {
	t     testing.TB
	opt   CrashOptions
	start func(*World) Program[Re]
	check func(testing.TB, *World, Re)
	want  map[string]int // the tally of the run without a crash; nil until that run is over

	program Program[Re]    // the program of the process that the method begin started last
	said    map[string]int // how often each failure occurred
}

// crashes.begin makes a new world, sends the request from a first process, and drops
// the answer. The process crashes at the point at, or not at all if at is zero.
func (c *crashes[Re]) begin(at point, plan Plan) (w *World, calls []string, down bool) {
	w = newWorld(c.opt.Store)
	if c.opt.Begin != nil {
		c.opt.Begin(w)
	}
	mine, ctx := w.start(c.t.Context(), at, plan)
	defer mine.process.stop()
	c.program = c.start(mine)
	_ = guarded(func() error {
		_, _, err := c.program.Send(ctx)
		return err
	})
	return w, mine.process.called(), mine.process.store.Crashed()
}

// guarded runs fn, and returns a panic of fn as an error, because a panic of the
// process must not end the test.
func guarded(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return fn()
}

// crashes.completable reports whether a completer finds an operation that it can
// continue.
func (c *crashes[Re]) completable(w *World) bool {
	if c.program.Resume == nil {
		return false
	}
	all, err := w.records(c.t.Context())
	return err != nil || slices.ContainsFunc(all, toComplete)
}

func toComplete(r *store.Record) bool {
	return r.State == store.Open && r.Keep == store.KeepOpen && r.Input != nil
}

// crashes.end sends the request again as a client, checks the result, and returns true
// if nothing failed. If completer is true, a completer first continues the operation.
func (c *crashes[Re]) end(w *World, label string, completer bool) bool {
	c.t.Helper()
	run := &scene{TB: c.t, label: label, said: c.said}
	done := make(chan struct{})
	go func() { // in a goroutine of its own, so that a Fatal ends this run only
		defer close(done)
		c.survive(run, w, completer)
	}()
	<-done
	for _, text := range run.notes {
		c.t.Errorf("%s", text) // not in the run's goroutine, because Helper finds the user's test only from here
	}
	return !run.failed
}

func (c *crashes[Re]) survive(t *scene, w *World, completer bool) {
	if err := w.leasesEnd(t.Context()); err != nil {
		t.give("%v", err)
	}
	if completer {
		c.complete(t, w)
	}
	answer, _ := c.send(t, w)
	effects := tally(w)
	if c.stuck(t, w) {
		for _, name := range slices.Sorted(maps.Keys(effects)) {
			if effects[name] > c.want[name] {
				t.note("%s: %d, and without a crash %d", name, effects[name], c.want[name])
			}
		}
		return
	}
	calls := w.Provider.Calls()
	again, replayed := c.send(t, w)
	switch diff := c.program.Diff(answer, again); {
	case !replayed:
		t.note("the answer is not stored, so the same request runs again: %+v", again)
	case diff != "":
		t.note("the same request again is answered otherwise (-first +again):\n%s", diff)
	}
	for _, name := range slices.Sorted(maps.Keys(both(effects, tally(w)))) {
		if was, is := effects[name], tally(w)[name]; was != is {
			t.note("%s: %d once the request was answered, and %d after the same request again", name, was, is)
		}
	}
	if is := w.Provider.Calls(); is != calls {
		t.note("the provider was called again after the request had its answer: %d calls, then %d", calls, is)
	}
	if c.want != nil {
		for _, name := range slices.Sorted(maps.Keys(both(c.want, effects))) {
			if effects[name] != c.want[name] {
				t.note("%s: %d, and without a crash %d", name, effects[name], c.want[name])
			}
		}
	}
	if c.check != nil {
		c.check(t, c.idle(t, w), answer)
	}
}

// crashes.send sends the request from a new process that doesn't crash.
func (c *crashes[Re]) send(t *scene, w *World) (answer Re, replayed bool) {
	err := c.patiently(t, w, func(ctx context.Context, w *World) (err error) {
		answer, replayed, err = c.start(w).Send(ctx)
		return err
	})
	if err != nil {
		t.give("the request ends in an error: %v", err)
	}
	return answer, replayed
}

// crashes.patiently calls the function do, each time in a new process, until do
// succeeds. It tries up to three times if CrashOptions.Begin is set, because Begin may
// make calls fail, and otherwise once. After each look-up that decides nothing, it
// tries once more when the look-up's pause is over.
func (c *crashes[Re]) patiently(t *scene, w *World, do func(context.Context, *World) error) (err error) {
	tries := 1
	if c.opt.Begin != nil {
		tries = 3
	}
	for looks := 0; tries > 0; tries-- {
		mine, ctx := w.start(t.Context(), point{}, nil)
		err = guarded(func() error { return do(ctx, mine) })
		mine.process.stop()
		if err == nil || c.opt.MayStick && errors.Is(err, idem.ErrStuck) {
			return nil
		}
		if looks < maxLooks && w.untilNextLook(t.Context()) {
			looks++
			tries++
		}
	}
	return err
}

// crashes.complete continues each operation that a completer can continue.
func (c *crashes[Re]) complete(t *scene, w *World) {
	err := c.patiently(t, w, func(ctx context.Context, mine *World) error {
		all, err := w.records(ctx)
		for _, r := range all {
			if toComplete(r) {
				err = errors.Join(err, c.start(mine).Resume(ctx, state.TicketFor(r)))
			}
		}
		return err
	})
	if err != nil {
		t.give("the completer's run ends in an error: %v", err)
	}
}

// crashes.stuck reports whether an operation is stuck. Without MayStick, the result is
// always false.
func (c *crashes[Re]) stuck(t *scene, w *World) bool {
	all, err := w.records(t.Context())
	if err != nil {
		t.give("%v", err)
	}
	return c.opt.MayStick && slices.ContainsFunc(all, func(r *store.Record) bool { return r.State == store.Stuck })
}

// crashes.idle returns the world w for a new process that never crashes.
func (c *crashes[Re]) idle(t *scene, w *World) *World {
	mine, _ := w.start(t.Context(), point{}, nil)
	t.Cleanup(mine.process.stop)
	return mine
}

// tally counts the provider's effects, the user's writes, and jobs.
func tally(w *World) map[string]int {
	n := make(map[string]int)
	for _, e := range w.Provider.Effects() {
		n["effects of "+e.String()]++
	}
	for _, c := range w.Commits() {
		if len(c.Writes) > 0 {
			n["writes of the user's"] += len(c.Writes)
		}
		for _, j := range staged(c) {
			n[fmt.Sprintf("jobs of kind %q", j.Kind)]++
		}
	}
	return n
}

func both(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// A failure is described only in the first run that has it. The method sum logs how
// many further runs have the same failure.
func (c *crashes[Re]) sum() {
	c.t.Helper()
	for _, text := range slices.Sorted(maps.Keys(c.said)) {
		if more := c.said[text] - 1; more > 0 {
			runs := "runs"
			if more == 1 {
				runs = "run"
			}
			c.t.Logf("in %d further %s: %s", more, runs, text)
		}
	}
}

// scene is the testing.TB of one run. It adds the name of the crash to each failure. If
// an earlier run had the same failure, scene only counts it.
type scene struct {
	testing.TB
	label  string
	failed bool
	said   map[string]int
	notes  []string // failures for the method end, which reports them after the run
}

// scene.news counts a failure. It returns the failure's text after the name of the
// crash, and true if no earlier failure had this text.
func (s *scene) news(text string) (string, bool) {
	s.failed = true
	text = strings.TrimSuffix(text, "\n")
	s.said[text]++
	return s.label + ": " + text, s.said[text] == 1
}

// scene.note counts a failure and keeps it for the report after the run. scene.give does
// the same, and then ends the run.
func (s *scene) note(format string, args ...any) {
	if text, first := s.news(fmt.Sprintf(format, args...)); first {
		s.notes = append(s.notes, text)
	}
}

func (s *scene) give(format string, args ...any) {
	s.note(format, args...)
	runtime.Goexit()
}

// scene.say reports a failure that the function check has found.
func (s *scene) say(text string) {
	s.Helper()
	if text, first := s.news(text); first {
		s.TB.Errorf("%s", text)
	}
}

func (s *scene) Error(args ...any) { s.Helper(); s.say(fmt.Sprintln(args...)) }
func (s *scene) Errorf(format string, args ...any) {
	s.Helper()
	s.say(fmt.Sprintf(format, args...))
}
func (s *scene) Fatal(args ...any) { s.Helper(); s.say(fmt.Sprintln(args...)); runtime.Goexit() }
func (s *scene) Fatalf(format string, args ...any) {
	s.Helper()
	s.say(fmt.Sprintf(format, args...))
	runtime.Goexit()
}
func (s *scene) Fail()        { s.Helper(); s.say("failed") }
func (s *scene) FailNow()     { s.Helper(); s.say("failed"); runtime.Goexit() }
func (s *scene) Failed() bool { return s.failed }
func (s *scene) Log(args ...any) {
	s.Helper()
	s.Logf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (s *scene) Logf(format string, args ...any) {
	s.Helper()
	s.TB.Logf("%s: %s", s.label, fmt.Sprintf(format, args...))
}
