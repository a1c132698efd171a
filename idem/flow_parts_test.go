package idem

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/state"
)

// The parts of an attempt and of a flow, each without a store.

func TestGate(t *testing.T) {
	t.Parallel()
	fresh := func(step) ([]byte, bool, error) { return nil, false, nil }
	one, two := step{name: "one"}, step{name: "two"}
	for name, c := range map[string]struct {
		before func(*gate)
		enters error // of a phase "two" that comes then
		stages error // of jobs that are staged then
	}{
		"nothing":         {func(*gate) {}, nil, nil},
		"a phase":         {func(g *gate) { _, _, _ = g.enter(one, fresh); g.leave(nil) }, nil, nil},
		"a running phase": {func(g *gate) { _, _, _ = g.enter(one, fresh) }, ErrPhaseOrder, ErrPhaseOrder},
		"the same phase":  {func(g *gate) { _, _, _ = g.enter(two, fresh); g.leave(nil) }, ErrPhaseOrder, nil},
		"the same, earlier": {func(g *gate) {
			for _, s := range []step{two, one} {
				_, _, _ = g.enter(s, fresh)
				g.leave(nil)
			}
		}, ErrPhaseOrder, nil},
		"another's place": {func(g *gate) {
			_, _, _ = g.enter(one, func(step) ([]byte, bool, error) { return nil, false, ErrPhaseOrder })
		}, ErrPhaseFailed, nil},
		"a failed phase":    {func(g *gate) { _, _, _ = g.enter(one, fresh); g.leave(ErrWrite) }, ErrPhaseFailed, nil},
		"an answer":         {func(g *gate) { g.stop(Result{}, nil) }, ErrAnswered, ErrAnswered},
		"the handler's end": {func(g *gate) { g.close() }, ErrPhaseOrder, ErrPhaseOrder},
	} {
		g := &gate{about: &subject{}}
		c.before(g)
		if err := g.between(func() error { return nil }); !errors.Is(err, c.stages) {
			t.Errorf("after %s jobs are staged with %v, want %v", name, err, c.stages)
		}
		g = &gate{about: &subject{}}
		c.before(g)
		if _, _, err := g.enter(two, fresh); !errors.Is(err, c.enters) {
			t.Errorf("after %s a phase begins with %v, want %v", name, err, c.enters)
		}
	}
	g := &gate{about: &subject{}}
	if err := g.between(func() error { return ErrWrite }); !errors.Is(err, ErrWrite) {
		t.Errorf("a job that is refused: %v", err)
	}
	g.leave(ErrResult)
	if _, first := g.failure(); !errors.Is(first, ErrWrite) || !errors.Is(g.fail(ErrResult), ErrResult) || !errors.Is(g.err, ErrWrite) {
		t.Errorf("the first failure counts, and not %v", g.err)
	}
	g = &gate{about: &subject{}}
	_, _, _ = g.enter(one, fresh)
	g.close()
	if left, failed := g.failure(); !left || !errors.Is(failed, ErrPhaseOrder) || g.ended() != nil {
		t.Errorf("a phase that outlives its handler: left %t, failure %v", left, failed)
	}
}

func TestProgressRecalls(t *testing.T) {
	t.Parallel()
	rec := &store.Record{Phases: []store.Phase{{Name: "one", Result: []byte("1")}, {Name: "two", Intent: true}}}
	for name, c := range map[string]struct {
		rec      *store.Record
		passed   int
		asks     step
		recorded bool
		err      error
	}{
		"its own result":       {rec, 0, step{name: "one"}, true, nil},
		"another's":            {rec, 0, step{name: "two"}, false, ErrPhaseOrder},
		"a finish too early":   {rec, 0, step{kind: last}, false, ErrPhaseOrder},
		"an unknown outcome":   {rec, 1, step{name: "two", kind: foreign}, false, nil},
		"an Atomic in a call":  {rec, 1, step{name: "two"}, false, ErrPhaseOrder},
		"a phase after theirs": {rec, 2, step{name: "three"}, false, nil},
	} {
		p := &progress{rec: c.rec, passed: c.passed, loose: []Job{{Kind: "staged before"}}}
		raw, recorded, err := p.recall(c.asks)
		if recorded != c.recorded || !errors.Is(err, c.err) || recorded && (string(raw) != "1" || p.passed != 1 || p.hasLoose()) {
			t.Errorf("%s: %q, recorded %t, %v", name, raw, recorded, err)
		}
	}
}

func TestProgressNamesJobs(t *testing.T) {
	t.Parallel()
	uncounted := func(context.Context, *store.Record) int { panic("there are few jobs") }
	p := &progress{rec: &store.Record{}}
	p.stage([]Job{{Kind: "a"}})
	waiting, err := p.staged(t.Context(), []Job{{Kind: "b"}}, untimed, uncounted)
	if err != nil || waiting["0.0"].Kind != "a" || waiting["0.1"].Kind != "b" {
		t.Fatalf("%v, %v", waiting, err)
	}
	p.pass()
	if p.hasLoose() || p.passed != 1 {
		t.Errorf("after the commit: loose jobs %v, passed %d", p.loose, p.passed)
	}
	full := &store.Record{Jobs: make(map[string]Job)}
	for i := range maxJobs {
		if i == maxJobs-1 {
			if _, err := (&progress{rec: full}).staged(t.Context(), []Job{{Kind: "last"}}, untimed, uncounted); err != nil {
				t.Errorf("the last job that a record holds: %v", err)
			}
		}
		full.Jobs[string(rune('a'+i))] = Job{}
	}
	for name, c := range map[string]struct {
		load func() (*store.Record, error)
		err  error
	}{
		"delivered": {func() (*store.Record, error) { return &store.Record{}, nil }, nil},
		"waiting":   {func() (*store.Record, error) { return full, nil }, ErrWrite},
		"gone":      {func() (*store.Record, error) { return nil, nil }, ErrWrite}, //nolint:nilnil // as a store's Load
		"unread":    {func() (*store.Record, error) { return nil, store.ErrUnknown }, ErrWrite},
	} {
		a := (&core{store: loading(c.load), opt: Options{Retention: time.Hour, Lease: time.Minute, Now: time.Now}, log: slog.New(slog.DiscardHandler)}).attempt()
		a.arrives(t.Context())
		p := &progress{rec: full}
		if _, err := p.staged(t.Context(), []Job{{Kind: "c"}}, untimed, a.jobsNow); !errors.Is(err, c.err) {
			t.Errorf("one more job, the others are %s: %v, want %v", name, err, c.err)
		}
	}
}

// loading is a store that only loads.
type loading func() (*store.Record, error)

func (l loading) Load(context.Context, string) (*store.Record, error) { return l() }

func (loading) Claim(context.Context, store.Claim) (*store.Record, error) { panic("a claim") }

func (loading) Commit(context.Context, store.Commit) (*store.Record, error) { panic("a commit") }

func TestCallsInDoubt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		made func(*calls)
		left bool
		out  []string
		sent int
	}{
		"none":                {func(*calls) {}, false, nil, 0},
		"a Foreign":           {func(c *calls) { c.enter("pay") }, false, []string{state.AnyCall}, 0},
		"its call":            {func(c *calls) { c.enter("pay"); c.ask("pay#1") }, false, []string{"pay#1"}, 0},
		"with data":           {func(c *calls) { c.send(map[string]string{"pay#1": "hash", "b#1": "hash"}); c.ask("pay#1") }, false, []string{"pay#1"}, 1},
		"recorded":            {func(c *calls) { c.enter("pay"); c.ask("pay#1"); c.recorded([]string{"pay#1"}) }, false, nil, 0},
		"a phase left behind": {func(c *calls) { c.ask("pay#1") }, true, []string{"pay#1", state.AnyCall}, 0},
	} {
		log := &calls{}
		c.made(log)
		if out := log.out(c.left); !slices.Equal(out, c.out) || len(log.sentOut()) != c.sent {
			t.Errorf("%s: %v in doubt, which sent %v", name, out, log.sentOut())
		}
	}
	log := &calls{}
	log.ask("pay#1")
	if err := log.unrepeated([]string{"pay#1", state.AnyCall}, "the handler ended"); err != nil {
		t.Error(err)
	}
	if err := log.unrepeated([]string{"mail#1"}, "the handler ended"); !errors.Is(err, ErrPhaseOrder) {
		t.Errorf("a call that was not repeated: %v", err)
	}
}

func TestLeaseTurns(t *testing.T) {
	t.Parallel()
	l := &lease{}
	l.loses() // without renewals there is nothing to end
	l.unkeep()
	ctx, lost := context.WithCancelCause(t.Context())
	l = &lease{lost: lost, turn: make(chan struct{}, 1), timer: time.NewTimer(0)}
	l.turn <- struct{}{} // as the handler's commit does
	renewed, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		l.renews(func() (time.Duration, bool) { renewed++; return 0, renewed < 3 })
	}()
	<-l.turn
	<-ended
	if l.loses(); renewed != 3 || !errors.Is(context.Cause(ctx), ErrLeaseLost) {
		t.Errorf("renewed %d times, the handler's context ends by %v", renewed, context.Cause(ctx))
	}
	<-l.timer.C // the timer has fired, so unkeep waits for the renewals
	l.unkeep()
	if l.begin() {
		t.Error("renewals begin after the handler's end")
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left  time.Duration
		lease time.Duration // that is left of the attempt's own
		spent bool
		late  error
		store time.Duration // for the store, after the handler's effect
	}{
		"early":                  {time.Minute, 0, false, nil, time.Minute - 400*time.Millisecond},
		"just in time to begin":  {2*time.Second + 1, 0, false, nil, 1600*time.Millisecond + 1},
		"too late to begin":      {2 * time.Second, 0, false, ErrNoTime, 1600 * time.Millisecond},
		"past the deadline":      {-time.Minute, 0, false, ErrNoTime, time.Second},
		"past it, with a lease":  {-time.Minute, 10 * time.Second, false, ErrNoTime, 7 * time.Second},
		"and the lease is short": {-time.Minute, 2 * time.Second, false, ErrNoTime, time.Second},
		"the store used it up":   {-time.Minute, 10 * time.Second, true, ErrNoTime, -time.Minute - 400*time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl := &clock{core: &core{opt: Options{Reserve: 2 * time.Second, Retention: time.Hour, Now: time.Now}, spare: 3 * time.Second}}
			ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(c.left))
			defer cancel()
			cl.arrives(ctx)
			cl.spent.Store(c.spent)
			if err := cl.enough("pk"); !errors.Is(err, c.late) {
				t.Errorf("%s: %v, want %v", name, err, c.late)
			}
			var rec *store.Record
			if c.lease > 0 {
				rec = &store.Record{Lease: time.Now().Add(c.lease)}
			}
			if left := time.Until(cl.until(rec)); left != c.store {
				t.Errorf("%s: the store has %v, want %v", name, left, c.store)
			}
		})
	}
}

// A write that failed while there was time has not used the time up.
func TestClockGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, over := range []bool{false, true} {
		if over {
			cancel()
		}
		c := &clock{}
		if c.gaveUp(ctx); c.spent.Load() != over {
			t.Errorf("the time is over: %t, and used up: %t", over, c.spent.Load())
		}
	}
}

// A try has half of the time, a minute at most and a tenth of a second at least.
func TestHalfOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for left, want := range map[time.Duration]time.Duration{
			10 * time.Minute: time.Minute, 10 * time.Second: 5 * time.Second, 150 * time.Millisecond: 100 * time.Millisecond, -time.Hour: 100 * time.Millisecond,
		} {
			if got := half(time.Now().Add(left)); got != want {
				t.Errorf("%v of %v, want %v", got, left, want)
			}
		}
	})
}

// An Atomic runs again while there is time: of its own, of the attempt and of its context.
func TestRerun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		giveUp, deadline time.Duration
		over             bool
		again            bool
	}{
		"in time":              {time.Second, 3*time.Second + 1, false, true},
		"its own time is over": {0, time.Minute, false, false},
		"the attempt's is":     {time.Second, 3 * time.Second, false, false},
		"its context is over":  {time.Second, time.Minute, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(chance.With(t.Context(), func(int64) int64 { return 0 }))
			defer cancel()
			if tt.over {
				cancel()
				ctx = chance.With(ctx, func(n int64) int64 { return n - 1 })
			}
			c := &clock{core: &core{opt: Options{Reserve: 3 * time.Second}}, deadline: time.Now().Add(tt.deadline)}
			if again := c.rerun(ctx, 0, time.Now().Add(tt.giveUp)); again != tt.again {
				t.Errorf("%s: it runs again: %t", name, again)
			}
		})
	}
}

func TestSubjectTurns(t *testing.T) {
	t.Parallel()
	s := &subject{core: &core{}, req: &Request{}, pk: "own", scope: "new", owner: "nonce", print: "same", beside: &side{pk: "there", scope: "old"}}
	s.turn()
	if s.pk != "there" || s.scope != "old" || s.beside.pk != "own" || !s.away {
		t.Errorf("after a turn: %+v beside %+v", s, s.beside)
	}
	s.turn()
	if s.pk != "own" || s.away {
		t.Errorf("after another: %q, away %t", s.pk, s.away)
	}
	for name, c := range map[string]struct {
		print   string
		resumed bool
		same    bool
	}{"the same request": {"same", false, true}, "another": {"other", false, false}, "no request of its own": {"other", true, true}} {
		s.resumed = c.resumed
		if same, err := s.compare(&store.Record{Fingerprint: c.print}); same != c.same || err != nil {
			t.Errorf("%s: %t, %v", name, same, err)
		}
	}
}

func TestWatchTells(t *testing.T) {
	t.Parallel()
	var told []string
	e := &core{opt: Options{Hooks: Hooks{
		Claimed: func(_ context.Context, ev Event) { told = append(told, ev.Name) },
		Ended:   func(_ context.Context, s Summary) { told = append(told, s.Route, s.ID) },
	}}}
	e.hooks = e.opt.Hooks.byName()
	w := &watch{about: &subject{core: e, req: &Request{Route: "POST /x"}}}
	_, _ = w.watched(t.Context(), func(ctx context.Context) (Result, error) {
		w.tell(ctx, evClaimed, &store.Record{State: store.Open, ID: "op"}, nil)
		w.tell(ctx, evStuck, nil, nil) // for the summary only
		return Result{Response: Response{Status: http.StatusOK}}, nil
	})
	if want := []string{"Claimed", "POST /x", "op"}; !slices.Equal(told, want) || len(w.trail.happened) != 2 {
		t.Errorf("told %q, kept %d events", told, len(w.trail.happened))
	}
	unheard := &watch{about: &subject{core: &core{}, req: &Request{}}}
	unheard.tell(t.Context(), evClaimed, nil, nil, func(*Event) { t.Error("an event is made that nobody hears") })
}

func untimed(j Job) (Job, error) { return j, nil }

// A phase has a name of 1 to 100 bytes of UTF-8; the last one needs none.
func TestNamesOfSteps(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"": ErrPhaseOrder, "a": nil, strings.Repeat("n", 100): nil, strings.Repeat("n", 101): ErrPhaseOrder, "n\xff": ErrPhaseOrder} {
		if err := (step{name: name}).check(); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", len(name), err)
		}
	}
	if err := (step{kind: last}).check(); err != nil {
		t.Error(err)
	}
	if err := SafeToRetry(nil); err != nil {
		t.Errorf("nil is marked: %v", err)
	}
}
