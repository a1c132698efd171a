package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func TestPhasesCommitOnceAndReplay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt   func(*idem.Options)
		opts  []idem.PhaseOption
		calls int
	}{
		"a call":          {calls: 5},
		"a declared call": {opt: func(o *idem.Options) { o.CallsOut = true }, calls: 4},
		"not idempotent":  {opts: []idem.PhaseOption{idem.NotIdempotent()}, calls: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			store := idemtest.Faulty(&mem, nil)
			if tc.opt == nil {
				tc.opt = func(*idem.Options) {}
			}
			e := idem.New(store, callertest.Anybody, tc.opt)
			var w outside
			res, err := do(t, e, w.rides(nil, tc.opts...))
			if err != nil || res.Status != 201 || string(res.Body) != "r1 ch_1" || res.Replayed {
				t.Fatalf("first: %+v, %v", res, err)
			}
			if got := store.Calls(); got != tc.calls {
				t.Errorf("%d calls, want %d", got, tc.calls)
			}
			res, err = do(t, e, w.rides(nil, tc.opts...))
			if err != nil || !res.Replayed || string(res.Body) != "r1 ch_1" {
				t.Fatalf("retry: %+v, %v", res, err)
			}
			if diff := cmp.Diff([]string{"ride", "audit", "charged r1"}, written(&mem)); diff != "" {
				t.Error(diff)
			}
			if len(w.calls) != 1 {
				t.Errorf("%d charges", len(w.calls))
			}
		})
	}
}

// A12, A19, A34: committed work stays, and a retry continues from there.
func TestRetryResumesAtTheRecoveryPoint(t *testing.T) {
	t.Parallel()
	for _, opt := range []func(*idem.Options){func(*idem.Options) {}} {
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody, opt)
		var w outside
		down := errors.New("provider is down")
		_, err := do(t, e, w.rides(func(string) error { return down }))
		if !errors.Is(err, down) {
			t.Fatal(err)
		}
		res, err := do(t, e, w.rides(nil))
		if err != nil || res.Status != 201 || string(res.Body) != "r1 ch_1" {
			t.Fatalf("%+v, %v", res, err)
		}
		if diff := cmp.Diff([]string{"ride", "audit", "charged r1"}, written(&mem)); diff != "" {
			t.Error(diff)
		}
		if c := w.charged(); len(c) != 1 || len(w.calls) != 2 {
			t.Errorf("derived keys %v", c)
		}
	}
}

// An operation keeps its id whichever attempt continues it, even if the record is
// known only with the first commit.
func TestRetryKeepsTheOperationsID(t *testing.T) {
	t.Parallel()
	for _, opt := range []func(*idem.Options){func(*idem.Options) {}} {
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, opt)
		var ids []string
		run := func(fail error) {
			_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
				op, _ := idem.FromContext(ctx)
				_, err := idem.Atomic(ctx, "note", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
				ids = append(ids, op.ID())
				if err == nil {
					err = fail
				}
				return idem.Response{Status: 201}, err
			})
			if !errors.Is(err, fail) {
				t.Fatal(err)
			}
		}
		run(errors.New("later"))
		run(nil)
		if ids[0] == "" || len(slices.Compact(ids)) != 1 { // a handler may begin again with the first attempt's record
			t.Errorf("the ids of one operation: %q", ids)
		}
	}
}

// A11: a definitive answer ends the operation and is replayed.
func TestRespondInAPhaseIsStored(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody)
	var w outside
	decline := func(string) error { return idem.Respond(idem.Response{Status: 402, Body: []byte("declined")}) }
	for i := range 3 {
		res, err := do(t, e, w.rides(decline))
		if err != nil || res.Status != 402 || string(res.Body) != "declined" || res.Replayed != (i > 0) {
			t.Fatalf("%d: %+v, %v", i, res, err)
		}
	}
	if len(w.calls) != 1 {
		t.Errorf("%d charges", len(w.calls))
	}
	for _, r := range mem.Records() {
		if len(r.Phases) != 1 {
			t.Errorf("phases %v, want the first: the answer is the second one's commit", r.Phases)
		}
	}
}

// A18, A20: a false condition leaves neither write nor job nor recovery point.
func TestFalseConditionCommitsNothing(t *testing.T) {
	t.Parallel()
	mem := idem.MemoryStore{Apply: func([]idem.Write) error { return idem.ErrCondition }}
	e := idem.New(&mem, callertest.Anybody)
	runs := 0
	res, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "book", func(_ context.Context, tx *idem.Tx) (int, error) {
			runs++
			tx.Write(note("seat"))
			tx.Stage(idem.NewJob("mail", 1))
			return 1, nil
		})
		if !errors.Is(err, idem.ErrCondition) {
			t.Errorf("got %v", err)
		}
		if _, err := idem.Atomic(ctx, "more", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); !errors.Is(err, idem.ErrPhaseFailed) {
			t.Errorf("a phase after a failed one: %v", err)
		}
		return idem.Response{}, idem.Respond(idem.Response{Status: 409, Body: []byte("taken")})
	})
	if err != nil || res.Status != 409 || runs != 1 {
		t.Fatalf("%+v, %v, %d runs", res, err, runs)
	}
	res, _ = do(t, e, func(context.Context) (idem.Response, error) { t.Error("ran again"); return idem.Response{}, nil })
	if !res.Replayed || res.Status != 409 || len(mem.Writes()) != 0 {
		t.Errorf("%+v", res)
	}
}

func TestAtomicRunsAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	conflicts := 3
	mem := idem.MemoryStore{Apply: func([]idem.Write) error {
		if conflicts--; conflicts >= 0 {
			return idem.ErrConflict
		}
		return nil
	}}
	for _, opt := range []func(*idem.Options){func(*idem.Options) {}} {
		conflicts = 3
		runs := 0
		e := idem.New(&mem, callertest.Anybody, opt, func(o *idem.Options) { o.Namespace = fmt.Sprint("n", len(mem.Writes())) })
		res, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
			n, err := idem.Atomic(ctx, "count", func(_ context.Context, tx *idem.Tx) (int, error) {
				runs++
				tx.Write(note("n"))
				return runs, nil
			})
			return idem.Response{Body: fmt.Append(nil, n)}, err
		})
		if err != nil || string(res.Body) != "4" || runs != 4 {
			t.Errorf("%+v, %v, %d runs", res, err, runs)
		}
	}
}

// A swallowed error must not become a stored answer with missing parts, nor reach
// the client as success. An error that the handler itself makes is returned.
func TestSwallowedPhaseErrorIsNotStored(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody)
	fail, status := true, 201
	oops := errors.New("oops")
	fn := func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Atomic(ctx, "a", func(_ context.Context, tx *idem.Tx) (int, error) {
			if fail {
				return 0, oops
			}
			tx.Write(note("a"))
			return 1, nil
		})
		return idem.Response{Status: status, Body: []byte("fine")}, nil
	}
	if res, err := do(t, e, fn); !errors.Is(err, oops) || res.Status != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, status = range []int{400, 402} {
		if res, err := do(t, e, fn); err != nil || res.Replayed || res.Status != status {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	fail, status = false, 201
	if res, err := do(t, e, fn); err != nil || res.Replayed || len(mem.Writes()) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err := do(t, e, fn); err != nil || !res.Replayed {
		t.Fatalf("%+v, %v", res, err)
	}
}

func TestPhasesOutOfOrderAreRefused(t *testing.T) {
	t.Parallel()
	a := func(ctx context.Context, name string) error {
		_, err := idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Write(note(name))
			return name, nil
		})
		return err
	}
	fail := func(context.Context) error { return errors.New("later") }
	first := func(ctx context.Context) error { return errors.Join(a(ctx, "one"), a(ctx, "two"), fail(ctx)) }
	for name, again := range map[string]func(context.Context) error{
		"renamed":          func(ctx context.Context) error { return errors.Join(a(ctx, "uno"), a(ctx, "two")) },
		"reordered":        func(ctx context.Context) error { return errors.Join(a(ctx, "two"), a(ctx, "one")) },
		"inserted":         func(ctx context.Context) error { return errors.Join(a(ctx, "one"), a(ctx, "half"), a(ctx, "two")) },
		"fewer":            func(ctx context.Context) error { return a(ctx, "one") },
		"none":             func(context.Context) error { return nil },
		"repeated":         func(ctx context.Context) error { return errors.Join(a(ctx, "one"), a(ctx, "one")) },
		"finished earlier": func(ctx context.Context) error { return errors.Join(a(ctx, "one"), finish(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			e := idem.New(&mem, callertest.Anybody)
			if _, err := do(t, e, answering(first)); err == nil {
				t.Fatal("no error")
			}
			_, err := do(t, e, answering(again))
			if !errors.Is(err, idem.ErrPhaseOrder) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff([]string{"one", "two"}, written(&mem)); diff != "" {
				t.Error(diff)
			}
			res, err := do(t, e, answering(func(ctx context.Context) error { return errors.Join(a(ctx, "one"), a(ctx, "two")) }))
			if err != nil || res.Replayed {
				t.Errorf("the right handler afterwards: %+v, %v", res, err)
			}
		})
	}
}

func TestMisusedPhasesAreRefused(t *testing.T) {
	t.Parallel()
	atomic := func(fn func(context.Context, *idem.Tx) (int, error)) func(context.Context) error {
		return func(ctx context.Context) error { _, err := idem.Atomic(ctx, "p", fn); return err }
	}
	call := func(fn func(context.Context, *idem.Tx) (int, error), opts ...idem.PhaseOption) func(context.Context) error {
		return func(ctx context.Context) error { _, err := idem.Foreign(ctx, "p", fn, opts...); return err }
	}
	for name, tc := range map[string]struct {
		fn   func(context.Context) error
		want error
	}{
		"repeated on the first run": {func(ctx context.Context) error {
			nothing := atomic(func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return errors.Join(nothing(ctx), nothing(ctx))
		}, idem.ErrPhaseOrder},
		"nested": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "outer", func(ctx context.Context, _ *idem.Tx) (int, error) {
				_, err := idem.Atomic(ctx, "inner", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
				return 0, err
			})
			return err
		}, idem.ErrPhaseOrder},
		"without a name": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return err
		}, idem.ErrPhaseOrder},
		"result without JSON": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "p", func(context.Context, *idem.Tx) (chan int, error) { return make(chan int), nil })
			return err
		}, idem.ErrResult},
		"result that JSON changes": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "p", func(context.Context, *idem.Tx) (error, error) { return errors.New("x"), nil })
			return err
		}, idem.ErrResult},
		"a write that can't be built": {atomic(func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(brokenWrite{}); return 1, nil }), idem.ErrWrite},
		"a nil write":                 {atomic(func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(nil); return 1, nil }), idem.ErrWrite},
		"a job without JSON": {atomic(func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob("j", func() {}))
			return 1, nil
		}), idem.ErrWrite},
		"a job with a long kind": {atomic(func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob(strings.Repeat("k", 129), 1))
			return 1, nil
		}), idem.ErrWrite},
		"a job without a kind": {atomic(func(_ context.Context, tx *idem.Tx) (int, error) { tx.Stage(idem.NewJob("", 1)); return 1, nil }), idem.ErrWrite},
		"51 jobs": {atomic(func(_ context.Context, tx *idem.Tx) (int, error) {
			for range 51 {
				tx.Stage(idem.NewJob("j", 1))
			}
			return 1, nil
		}), idem.ErrWrite},
		"one key twice":             {call(func(_ context.Context, tx *idem.Tx) (int, error) { tx.Key("p"); tx.Key("p"); return 1, nil }), idem.ErrKeyReused},
		"an answer of another type": {atomic(func(context.Context, *idem.Tx) (int, error) { return 1, idem.Respond("text") }), idem.ErrResult},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			e := idem.New(&mem, callertest.Anybody)
			var heard error
			_, err := do(t, e, answering(func(ctx context.Context) error { heard = tc.fn(ctx); return heard }))
			if !errors.Is(err, tc.want) || !errors.Is(heard, tc.want) {
				t.Errorf("got %v, and the handler %v, want %v", err, heard, tc.want)
			}
			if e, ok := errors.AsType[*idem.Error](heard); !ok || e.Record == "" {
				t.Errorf("the handler hears %v, without a record", heard)
			}
			if len(mem.Writes()) != 0 {
				t.Errorf("wrote %v", written(&mem))
			}
		})
	}
	if _, err := idem.Atomic(t.Context(), "p", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); !errors.Is(err, idem.ErrNoOperation) {
		t.Errorf("outside of an operation: %v", err)
	}
}

// Hooks see each phase, and may call the operation's methods.
func TestHooksOfPhases(t *testing.T) {
	t.Parallel()
	var seen []string
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) {
		o.Hooks.Committed = func(ctx context.Context, ev idem.Event) {
			op, ok := idem.FromContext(ctx)
			seen = append(seen, fmt.Sprint(ev.Phase, " ", ok && op.ID() == ev.ID))
		}
	})
	var w outside
	if _, err := do(t, e, w.rides(nil, idem.NotIdempotent())); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ride_created true", "charge_created true"}, seen); diff != "" {
		t.Error(diff)
	}
	// A job's name has the number of its phase: the call's intent is none.
	for _, r := range mem.Records() {
		if _, ok := r.Jobs["2.0"]; !ok || len(r.Jobs) != 1 {
			t.Errorf("jobs %v, want the finish's, 2.0", r.Jobs)
		}
	}
}

// A refusal that is not stored, then a success.
func TestRefusalThatIsNotStored(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	down := false
	store := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb == idemtest.Commit && down {
			return idemtest.Fault{Err: errors.New("throttled")}
		}
		return idemtest.Fault{}
	})
	e := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", clock.Now, true })
	rate := 3
	handler := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "ride", func(_ context.Context, tx *idem.Tx) (string, error) { tx.Write(note("ride")); return "r", nil })
		if err != nil {
			return idem.Response{}, err
		}
		if rate > 2 {
			down = true
			return idem.Response{}, idem.Respond(idem.Response{Status: 402, Body: []byte("too dear, nothing was charged")})
		}
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
	}
	first, err1 := do(t, e, handler)
	down, rate = false, 1
	clock.Advance(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	second, err2 := e.Resume(ctx, jobs.TicketFor(one(&mem)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return handler(ctx) })
	if err1 == nil && first.Status == 402 && second.Status == 201 {
		t.Errorf("the client was told %d %q as definitive; the completer then made it %d (%v)", first.Status, first.Body, second.Status, err2)
	}
}

// A definitive answer is not stored while a Foreign is still running.
func TestRespondWhileAPhaseRuns(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	started, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	res, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		go func() {
			_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (string, error) {
				close(started)
				<-release
				return "charged", nil
			})
			done <- err
		}()
		<-started
		return idem.Response{}, idem.Respond(idem.Response{Status: 402, Body: []byte("not charged")})
	})
	close(release)
	perr := <-done
	r := one(&mem)
	if r.State == store.Done && r.Keep == store.KeepOpen {
		t.Errorf("the phase (%v) was committed on the finished record: %d phases, ver %d, keep=%q, expires %v: it never expires", perr, len(r.Phases), r.Ver, r.Keep, r.Expires)
	}
	if err == nil && one(&mem).State == store.Done {
		t.Errorf("stored %d %s while the call was under way", res.Status, res.Body)
	}
}

// A status that no record can hold is refused before the commit.
func TestStatusOutOfRange(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	res, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(note("charge"))
			return idem.Response{Status: 20}, nil
		})
	})
	if !errors.Is(err, idem.ErrResult) || len(written(&mem)) != 0 {
		t.Errorf("got %d, %v; written: %v", res.Status, err, written(&mem))
	}
}

// No answer that ends an operation hides a phase that is recorded and that the handler
// passed by. One that says "later" ends nothing.
func TestAnswerPastARecordedPhase(t *testing.T) {
	t.Parallel()
	another := func(status int) func(context.Context) (idem.Response, error) { // than the recorded phase, whose failure is hidden
		return func(ctx context.Context) (idem.Response, error) {
			_, _ = idem.Atomic(ctx, "another", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return idem.Response{Status: status}, nil
		}
	}
	all := func(o *idem.Options) { o.Stored = func(idem.Response) bool { return true } }
	for name, tt := range map[string]struct {
		opt    func(*idem.Options)
		fn     func(context.Context) (idem.Response, error)
		status int
		want   error
	}{
		"an answer that is kept":         {asIs, answers(201), 0, idem.ErrPhaseOrder},
		"a failure that is kept":         {all, answers(500), 0, idem.ErrPhaseOrder},
		"a refusal that isn't kept":      {asIs, answers(409), 0, idem.ErrPhaseOrder},
		"a failure that isn't kept":      {asIs, answers(503), 503, nil},
		"a refusal after a failed phase": {asIs, another(404), 0, idem.ErrUnfinished},
		"a refusal for good": {asIs, func(ctx context.Context) (idem.Response, error) {
			_, _ = another(0)(ctx)
			return responds(402)(ctx)
		}, 0, idem.ErrPhaseOrder},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			_, _ = do(t, idem.New(&mem, callertest.Anybody), answering(func(ctx context.Context) error { return errors.Join(reserve(ctx), errors.New("later")) }))
			res, err := do(t, idem.New(&mem, callertest.Anybody, tt.opt), tt.fn)
			if res.Status != tt.status || !errors.Is(err, tt.want) || errors.Is(err, idem.ErrUnavailable) || one(&mem).State != store.Open {
				t.Errorf("%+v, %v; the record is %s", res, err, one(&mem).State)
			}
		})
	}
}

// A phase that others' writes conflict with again and again runs again for a while;
// then the client gets 409, is told to retry with its key, and its retry succeeds.
func TestConflictsThatLastAreAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy, runs := true, 0
		mem := idem.MemoryStore{Apply: func([]idem.Write) error {
			if busy {
				return idem.ErrConflict
			}
			return nil
		}}
		e := idem.New(&mem, callertest.Anybody, idem.OneScope)
		serve := func() idem.Result {
			ctx, cancel := context.WithTimeout(t.Context(), ample)
			defer cancel()
			res, err := e.Serve(ctx, idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Path: "/rides", Header: http.Header{idem.KeyHeader: {"k"}}},
				func(ctx context.Context) (idem.Response, error) {
					_, err := idem.Atomic(ctx, "count", func(_ context.Context, tx *idem.Tx) (int, error) {
						runs++
						tx.Write(note("n"))
						return runs, nil
					})
					return idem.Response{Status: 201}, err
				})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		res := serve()
		if res.Status != 409 || !strings.Contains(string(res.Body), `"conflict"`) || res.Header.Get("Retry-After") == "" || runs < 2 || len(mem.Writes()) != 0 {
			t.Errorf("%d %v %s after %d runs, %d writes; want 409 conflict", res.Status, res.Header, res.Body, runs, len(mem.Writes()))
		}
		busy = false
		if res := serve(); res.Status != 201 || res.Replayed || len(mem.Writes()) != 1 {
			t.Errorf("the retry: %+v, %d writes", res, len(mem.Writes()))
		}
	})
}

// A phase without a result is an error for its handler, which would go on with a zero one.
func TestPhaseWithoutAResultIsAnError(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	fails := func(n int) idemtest.Plan { return idemtest.At(idemtest.Commit, n, idemtest.Fault{Err: down}) }
	calls := func(err error, opts ...idem.PhaseOption) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Key("payments"); return 1, err }, opts...)
			return err
		}
	}
	var leave context.CancelFunc
	declined := idem.Respond(idem.Response{Status: 402})
	for name, tt := range map[string]struct {
		first func(context.Context, *idemtest.FaultyStore) error // of an attempt before
		age   time.Duration                                      // since then
		phase func(context.Context) error
		plan  idemtest.Plan
		want  error
	}{
		"a call that an earlier attempt has begun": {
			first: func(ctx context.Context, st *idemtest.FaultyStore) error {
				_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { st.Crash(); return 1, nil }, idem.NotIdempotent())
				return err
			},
			age: time.Hour, phase: calls(nil, idem.NotIdempotent()), want: idem.ErrStuck,
		},
		"a call that the provider may have forgotten": {
			first: func(ctx context.Context, _ *idemtest.FaultyStore) error { return calls(down)(ctx) },
			age:   23 * time.Hour, phase: calls(nil), want: idem.ErrStuck,
		},
		"a call that is not repeated, and leaves one in doubt": {
			first: func(ctx context.Context, _ *idemtest.FaultyStore) error { return calls(down)(ctx) },
			phase: func(ctx context.Context) error {
				_, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (int, error) { return 1, nil }, idem.NotIdempotent())
				return err
			},
			want: idem.ErrPhaseOrder,
		},
		"a call that would send something else": {
			first: func(ctx context.Context, _ *idemtest.FaultyStore) error {
				return calls(down, idem.Sends("payments", 20))(ctx)
			},
			phase: calls(nil, idem.Sends("payments", 25)), want: idem.ErrStuck,
		},
		"a call that sends what JSON can't hold":     {phase: calls(nil, idem.Sends("payments", make(chan int))), want: idem.ErrResult},
		"the write before a call fails":              {phase: calls(nil), plan: fails(1), want: down},
		"the begin of a call fails":                  {phase: calls(nil, idem.NotIdempotent()), plan: fails(1), want: down},
		"a call without an outcome":                  {phase: calls(down, idem.NotIdempotent()), want: idem.ErrStuck},
		"a call that failed safely, and isn't freed": {phase: calls(idem.SafeToRetry(errors.New("refused")), idem.NotIdempotent()), plan: fails(2), want: down},
		"a call that has no time, and isn't freed": {
			phase: func(ctx context.Context) error {
				ctx, leave = context.WithCancel(ctx)
				return calls(nil, idem.NotIdempotent())(ctx)
			},
			plan: func(_ context.Context, c idemtest.Call) idemtest.Fault {
				if c.Verb == idemtest.Commit && c.N == 1 {
					leave()
				}
				return fails(2)(t.Context(), c)
			},
			want: down,
		},
		"a call that answers":                      {phase: calls(declined), want: declined},
		"a call that answers once":                 {phase: calls(declined, idem.NotIdempotent()), want: declined},
		"a call whose answer can't be stored":      {phase: calls(declined), plan: fails(2), want: down},
		"a call whose only answer can't be stored": {phase: calls(declined, idem.NotIdempotent()), plan: fails(2), want: down},
		"a call that answers with another type":    {phase: calls(idem.Respond("text")), want: idem.ErrResult},
		"a call under the id of a delivery":        {phase: calls(nil), want: idem.ErrDeliveryKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			clock := idemtest.NewClock()
			engine := func(s store.Store) *idem.Engine { return idem.New(s, func(o *idem.Options) { o.Now = clock.Now }) }
			r := request
			r.DeliveryKey = errors.Is(tt.want, idem.ErrDeliveryKey)
			if tt.first != nil {
				st := idemtest.Faulty(&mem, nil)
				_, _ = engine(st).Do(t.Context(), r, answering(func(ctx context.Context) error { return tt.first(ctx, st) }))
				clock.Advance(tt.age)
			}
			var heard error
			_, _ = engine(idemtest.Faulty(&mem, tt.plan)).Do(t.Context(), r, answering(func(ctx context.Context) error {
				heard = tt.phase(ctx)
				return heard
			}))
			if !errors.Is(heard, tt.want) || strings.Contains(heard.Error(), "can't be read as") {
				t.Errorf("the handler hears %v, want %v", heard, tt.want)
			}
		})
	}
}

// A function's own error is its phase's, as it is, also beside a write that can't be built.
func TestPhaseHasItsFunctionsError(t *testing.T) {
	t.Parallel()
	_, _ = do(t, idem.New(&idem.MemoryStore{}, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "call", func(context.Context, *idem.Tx) (int, error) { return 0, declined{} })
		if err != error(declined{}) { //nolint:errorlint // exactly this value
			t.Errorf("of a call: %v", err)
		}
		return idem.Response{}, err
	})
	_, _ = do(t, idem.New(&idem.MemoryStore{}, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "write", func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Write(brokenWrite{})
			return 0, declined{}
		})
		if err != error(declined{}) { //nolint:errorlint // exactly this value
			t.Errorf("of a write: %v", err)
		}
		return idem.Response{}, err
	})
}

func reserve(ctx context.Context) error {
	_, err := reserves(200)(ctx)
	return err
}

// What a phase writes and stages is committed with it, or with the answer that it gives.
func TestWhatAPhaseWritesAndStagesIsCommitted(t *testing.T) {
	t.Parallel()
	phase := func(writes, jobs int, err error) func(context.Context, *idem.Tx) (int, error) {
		return func(_ context.Context, tx *idem.Tx) (int, error) {
			for i := range writes {
				tx.Write(note(fmt.Sprint("write ", i)))
			}
			for range jobs {
				tx.Stage(receipt)
			}
			return 1, err
		}
	}
	answers := idem.Respond(idem.Response{Status: 200})
	for name, tt := range map[string]struct {
		phase        func(context.Context) error
		writes, jobs int
	}{
		"a call": {func(ctx context.Context) error {
			_, err := idem.Foreign(ctx, "call", phase(1, 2, nil))
			return err
		}, 1, 2},
		"a call answers": {func(ctx context.Context) error {
			_, err := idem.Foreign(ctx, "call", phase(2, 1, answers))
			return err
		}, 2, 1},
		"an Atomic answers": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "write", phase(1, 1, answers))
			return err
		}, 1, 1},
	} {
		var mem idem.MemoryStore
		res, err := do(t, idem.New(&mem, callertest.Anybody), answering(tt.phase))
		if err != nil || res.Status != 200 || len(mem.Writes()) != tt.writes || jobsOf(&mem) != tt.jobs {
			t.Errorf("%s: %+v, %v: %d writes, %d jobs", name, res, err, len(mem.Writes()), jobsOf(&mem))
		}
	}
}

// An answer from a phase has no header that splits it, neither at first nor as a replay.
func TestAnswerOfAPhaseIsClean(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]idem.PhaseOption{"a call": nil, "a call that is not repeated": {idem.NotIdempotent()}} {
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.StoreHeaders = []string{"X-Good", "X-Bad"} })
		for range 2 {
			res, err := do(t, e, answering(func(ctx context.Context) error {
				_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) {
					return 1, idem.Respond(idem.Response{Status: 402, Header: http.Header{"X-Good": {"1"}, "X-Bad": {"a\r\nSet-Cookie: b"}}})
				}, opts...)
				return err
			}))
			if diff := cmp.Diff(http.Header{"X-Good": {"1"}}, res.Header); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
	}
}

// A commit without writes of the handler's is sent again after a conflict: the handler
// neither hears of it nor calls again.
func TestConflictOfTheEnginesOwnCommit(t *testing.T) {
	t.Parallel()
	foreign := func(end error, opts ...idem.PhaseOption) func(context.Context, *int) error {
		return func(ctx context.Context, calls *int) error {
			_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { *calls++; return 1, end }, opts...)
			return err
		}
	}
	for name, tt := range map[string]struct {
		phase func(context.Context, *int) error
		at    int
	}{
		"that keeps the record": {foreign(nil), 1},
		"of a call's begin":     {foreign(nil, idem.NotIdempotent()), 1},
		"of its outcome":        {foreign(nil, idem.NotIdempotent()), 2},
		"of its answer":         {foreign(idem.Respond(idem.Response{Status: 200}), idem.NotIdempotent()), 2},
		"of a call's result":    {foreign(nil), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			st := idemtest.Faulty(new(idem.MemoryStore), idemtest.At(idemtest.Commit, tt.at, idemtest.Fault{Err: idem.ErrConflict}))
			res, err := do(t, idem.New(st, callertest.Anybody), answering(func(ctx context.Context) error { return tt.phase(ctx, &calls) }))
			if err != nil || res.Status != 200 || calls != 1 {
				t.Errorf("%+v, %v after %d calls", res, err, calls)
			}
		})
	}
}

// A phase for which the handler didn't wait comes too late: its attempt has ended
// and was answered. It must not claim a key that no attempt holds.
func TestPhaseThatOutlivesItsHandlerWritesNothing(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	started, wake, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	_, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		go func() {
			_, err := idem.Atomic(ctx, "late", func(_ context.Context, tx *idem.Tx) (int, error) {
				close(started)
				<-wake
				tx.Write(note("late"))
				return 1, nil
			})
			over <- err
		}()
		<-started
		return idem.Response{}, declined{}
	})
	if err != error(declined{}) { //nolint:errorlint // the handler's own error, as it is
		t.Errorf("got %v", err)
	}
	close(wake)
	if err := <-over; !errors.Is(err, idem.ErrPhaseOrder) {
		t.Errorf("the phase gets %v", err)
	}
	if r := one(&mem); len(mem.Writes()) != 0 || len(r.Phases) != 0 {
		t.Errorf("wrote %v, phases %v", written(&mem), r.Phases)
	}
}

// No answer is given while a running phase may contradict the answer.
func TestNoAnswerLeavesWhileAPhaseRuns(t *testing.T) {
	t.Parallel()
	call := func(ctx context.Context, run func(context.Context, *idem.Tx) (int, error)) error {
		_, err := idem.Foreign(ctx, "charge", run)
		return err
	}
	writes := func(ctx context.Context, run func(context.Context, *idem.Tx) (int, error)) error {
		_, err := idem.Atomic(ctx, "order", run)
		return err
	}
	for name, tt := range map[string]struct {
		phase  func(context.Context, func(context.Context, *idem.Tx) (int, error)) error
		answer idem.Response
		err    error
	}{
		"a kept refusal, and a call": {call, idem.Response{}, idem.Respond(idem.Response{Status: 402})},
		"a refusal, and a call":      {call, idem.Response{Status: 404}, nil},
		"a refusal, and writes":      {writes, idem.Response{Status: 404}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			started, wake, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			res, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
				go func() {
					over <- tt.phase(ctx, func(context.Context, *idem.Tx) (int, error) {
						close(started)
						<-wake
						return 1, nil
					})
				}()
				<-started
				return tt.answer, tt.err
			})
			close(wake)
			if err := <-over; !errors.Is(err, idem.ErrPhaseOrder) {
				t.Errorf("the phase gets %v", err)
			}
			if !errors.Is(err, idem.ErrPhaseOrder) {
				t.Errorf("the client gets %+v, %v", res, err)
			}
		})
	}
}

// A result that storing would change is refused before the commit: a resumed run would
// continue with another value.
func TestResultThatChangesInTheRecordIsRefused(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	_, err := do(t, idem.New(&mem, callertest.Anybody), answering(func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (any, error) {
			tx.Write(note("one"))
			return int64(1<<53 + 1), nil // read back into any, the value is a float64
		})
		return err
	}))
	if !errors.Is(err, idem.ErrResult) || len(mem.Writes()) != 0 {
		t.Errorf("got %v, wrote %v; want ErrResult, and nothing", err, written(&mem))
	}
}

// After its answer, and after its handler, an operation takes neither phases nor jobs.
func TestNothingFollowsTheEnd(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	var over context.Context
	ends := func(ctx context.Context) error { return errors.Join(reserve(ctx), idem.Stage(ctx, receipt)) }
	_, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		over = context.WithoutCancel(ctx)
		resp, err := finishes(ctx)
		if _, err := idem.Atomic(ctx, "late", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); !errors.Is(err, idem.ErrAnswered) {
			t.Errorf("a phase after the answer: %v, want ErrAnswered", err)
		}
		return resp, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ends(over); err == nil {
		t.Error("a phase and a job after the handler's end were taken")
	}
	if _, err := do(t, idem.New(&idem.MemoryStore{}, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		over = context.WithoutCancel(ctx)
		return idem.Response{}, declined{}
	}); err == nil {
		t.Fatal("no error")
	}
	for what, err := range map[string]error{"a phase": reserve(over), "a job": idem.Stage(over, receipt)} {
		if !errors.Is(err, idem.ErrPhaseOrder) {
			t.Errorf("%s after the handler's end: %v, want ErrPhaseOrder", what, err)
		}
	}
	if len(mem.Writes()) != 0 || jobsOf(&mem) != 0 {
		t.Errorf("wrote %v, %d jobs", written(&mem), jobsOf(&mem))
	}
}

// An answer whose write was reported as failed may be stored all the same: then it counts, and
// nothing follows it.
func TestAnswerThatWasStoredAfterAll(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(context.Context) (idem.Response, error){
		"another answer": func(context.Context) (idem.Response, error) {
			return idem.Response{}, idem.Respond(idem.Response{Status: 409})
		},
		"a phase":        func(ctx context.Context) (idem.Response, error) { return idem.Response{Status: 409}, reserve(ctx) },
		"a plain answer": answers(409),
		"a failure":      func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") },
	} {
		var mem idem.MemoryStore
		st := idemtest.Faulty(&mem, idemtest.At(idemtest.Commit, 1, idemtest.Fault{Err: errors.New("access denied"), Applied: true}))
		handler := func(ctx context.Context) (idem.Response, error) {
			_, _ = finishes(ctx)
			return second(ctx)
		}
		res, err := do(t, idem.New(st, callertest.Anybody), handler)
		if err == nil && res.Status != 201 || one(&mem).State != store.Done || one(&mem).Response.Status != 201 {
			t.Errorf("%s: got %+v, %v; the record has %+v; want the first answer", name, res, err, one(&mem).Response)
		}
		if res, err := do(t, idem.New(&mem, callertest.Anybody), never(t)); err != nil || res.Status != 201 {
			t.Errorf("%s: a retry got %+v, %v; want the first answer", name, res, err)
		}
	}
}
