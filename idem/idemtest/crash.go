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

// maxCalls is more than any request makes.
const maxCalls = 1000

// CrashOptions vary [CrashEverywhere].
type CrashOptions struct {
	// Store opens the store of a world. It may return stores on one table: keys are
	// kept apart. Default: a new idem.MemoryStore.
	Store func() store.Store
	// Engine sets options of the engine that [CrashEverywhere] makes, after [World.Options].
	Engine func(*idem.Options)
	// Begin prepares a world before its first process: the provider's memory, a fate.
	// As calls may then fail, client and completer try three times instead of once.
	Begin func(*World)
	// MayStick lets an operation end as stuck, as it must where a process dies in a
	// call that is [idem.NotIdempotent]. Such an end is not compared, and not checked.
	MayStick bool
}

// CrashEverywhere runs a request to a crash before and after each call that its
// handler and the engine make: to the store, through w.Client, by w.Call. After each
// crash, once the lease is over, the client sends the request again, and so often as a
// look-up ([idem.LookUp]) has decided nothing, each time after its pause. In another run a
// completer goes on, where the request is stored, and then the client asks. One more run has every
// [idem.Atomic] run twice.
//
//	idemtest.CrashEverywhere(t, func(ctx context.Context, w *idemtest.World, r *idem.Request) (idem.Response, error) {
//		return buy(ctx, r, w.Client())
//	}, request, func(t testing.TB, w *idemtest.World, answer idem.Response) {
//		…
//	})
//
// It fails the test where, after a crash, the request ends in an error, its answer isn't stored, a
// repetition of it has an effect, or the effects at the provider, the user's writes or
// the jobs differ in number from the run without a crash. Then check, if not nil, looks at
// the world and the answer of each run. Each failure names the call at which
// the process crashed; a Fatal of check ends that run only.
//
// A crash is a process that gets no answer and whose calls reach nothing any
// more: its context ends, and what its handler still does changes nothing in
// the world. So effects other than through w are not seen. The request needs a Key.
// With a MemoryStore a handler with five calls takes some tenths of a second, most of it
// for waits after conflicts; CrashOptions.Store is for DynamoDB Local.
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

// maxLooks is more than any call in doubt is looked up.
const maxLooks = 100

// Program is a program under [CrashProgram], as one process runs it.
type Program[Re any] struct {
	// Send sends the request, the same each time, and reports whether its answer
	// came from a record.
	Send func(context.Context) (answer Re, replayed bool, err error)
	// Resume goes on with an abandoned operation, as a completer does; nil where
	// there is no completer.
	Resume func(context.Context, jobs.Ticket) error
	// Diff says how two answers differ; "" if they are the same.
	Diff func(a, b Re) string
}

// CrashProgram is [CrashEverywhere] for programs that are more than a handler, such
// as those of package lambda (lambdatest.CrashEverywhere) or behind
// [idem.Engine.Middleware]: start is called for each process.
func CrashProgram[Re any](t testing.TB, start func(*World) Program[Re], check func(testing.TB, *World, Re), optFns ...func(*CrashOptions)) {
	t.Helper()
	c := &crashes[Re]{t: t, opt: crashOptions(optFns), start: start, check: check, said: make(map[string]int)}
	defer c.sum()
	w, calls, _ := c.begin(point{}, nil)
	if !c.end(w, "without a crash", false) {
		return // the rest would say the same again and again
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

// crashes are the runs of one program.
type crashes[Re any] struct {
	t     testing.TB
	opt   CrashOptions
	start func(*World) Program[Re]
	check func(testing.TB, *World, Re)
	want  map[string]int // the tally without a crash; nil before it is known

	program Program[Re]    // as a process made it
	said    map[string]int // failures, and how often
}

// begin sends the request in a world of its own, from a process that goes down at a
// point. Nobody hears its answer.
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

// guarded makes a panic an error, as the end of a process is to its client.
func guarded(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return fn()
}

// completable reports whether a completer finds an operation that it can go on with.
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

// end brings a request to its end, and looks at that. It reports whether all was well.
func (c *crashes[Re]) end(w *World, label string, completer bool) bool {
	c.t.Helper()
	run := &scene{TB: c.t, label: label, said: c.said}
	done := make(chan struct{})
	go func() { // a Fatal ends this run only
		defer close(done)
		c.survive(run, w, completer)
	}()
	<-done
	for _, text := range run.notes {
		c.t.Errorf("%s", text) // here, where Helper finds the user's test
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

// send sends the request from a new process that stays up.
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

// patiently does something in a new process, and again where calls may fail.
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
		if looks < maxLooks && w.untilNextLook(t.Context()) { // too early to tell
			looks++
			tries++
		}
	}
	return err
}

// complete is the completer.
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

// stuck reports whether an operation waits for people, and may.
func (c *crashes[Re]) stuck(t *scene, w *World) bool {
	all, err := w.records(t.Context())
	if err != nil {
		t.give("%v", err)
	}
	return c.opt.MayStick && slices.ContainsFunc(all, func(r *store.Record) bool { return r.State == store.Stuck })
}

// idle is w as a process sees it that never crashes.
func (c *crashes[Re]) idle(t *scene, w *World) *World {
	mine, _ := w.start(t.Context(), point{}, nil)
	t.Cleanup(mine.process.stop)
	return mine
}

// tally counts what has happened in a world.
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

// sum tells how often failures have shown, that were told once.
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

// scene is a run's test: its failures name the crash. A failure that another run has
// told is only counted.
type scene struct {
	testing.TB
	label  string
	failed bool
	said   map[string]int
	notes  []string // failures that the kit has found, for when the run has ended
}

// news is a failure with the crash's name, and whether it is to be told.
func (s *scene) news(text string) (string, bool) {
	s.failed = true
	text = strings.TrimSuffix(text, "\n")
	s.said[text]++
	return s.label + ": " + text, s.said[text] == 1
}

// note notes a failure, and give gives the run up as well.
func (s *scene) note(format string, args ...any) {
	if text, first := s.news(fmt.Sprintf(format, args...)); first {
		s.notes = append(s.notes, text)
	}
}

func (s *scene) give(format string, args ...any) {
	s.note(format, args...)
	runtime.Goexit()
}

// say tells a failure of the user's check.
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
