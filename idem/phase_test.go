package idem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// note is a user's write; the tests' stores remember notes.
type note string

func (n note) Err() error     { return nil }
func (n note) String() string { return string(n) }

type brokenWrite struct{}

func (brokenWrite) Err() error     { return errors.New("no key") }
func (brokenWrite) String() string { return "broken" }

type ride struct {
	ID string `json:"id"`
}

// outside counts a handler's effects outside of its record.
type outside struct {
	mu    sync.Mutex
	runs  map[string]int // runs of the phases' functions
	calls []string       // derived keys that reached the provider
}

func (w *outside) ran(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = make(map[string]int)
	}
	w.runs[name]++
	return w.runs[name]
}

func (w *outside) charge(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, key)
}

func (w *outside) charged() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := make(map[string]int)
	for _, k := range w.calls {
		m[k]++
	}
	return m
}

// rides is the handler of Rocket Rides: three phases.
func (w *outside) rides(pay func(key string) error, opts ...idem.PhaseOption) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		r, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (ride, error) {
			n := w.ran("ride_created")
			tx.Write(note("ride"), note("audit"))
			return ride{ID: fmt.Sprint("r", n)}, nil
		})
		if err != nil {
			return idem.Response{}, err
		}
		charge, err := idem.Foreign(ctx, "charge_created", func(_ context.Context, tx *idem.Tx) (string, error) {
			key := tx.Key("payments")
			w.charge(key)
			if pay != nil {
				if err := pay(key); err != nil {
					return "", err
				}
			}
			return "ch_1", nil
		}, opts...)
		if err != nil {
			return idem.Response{}, err
		}
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			w.ran("finish")
			tx.Write(note("charged " + r.ID))
			tx.Stage(idem.NewJob("receipt", r))
			return idem.Response{Status: 201, Body: []byte(r.ID + " " + charge)}, nil
		})
	}
}

// ample is the time of a request that must not run out of time on a slow machine.
const ample = 2 * time.Minute

func do(t *testing.T, e *idem.Engine, fn func(context.Context) (idem.Response, error)) (idem.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	return e.Do(ctx, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Path: "/rides"}, fn)
}

func written(s *idem.MemoryStore) []string {
	var out []string
	for _, w := range s.Writes() {
		out = append(out, w.String())
	}
	return out
}

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

func finish(ctx context.Context) error {
	_, err := idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{}, nil })
	return err
}

func answering(fn func(context.Context) error) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		if err := fn(ctx); err != nil {
			return idem.Response{}, err
		}
		return idem.Response{Status: 200}, nil
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

// R66: a call with an unknown outcome is never repeated, unless the error allows
// it.
func TestNotIdempotent(t *testing.T) {
	t.Parallel()
	call := func(calls *int, err error) func(context.Context) (idem.Response, error) {
		return func(ctx context.Context) (idem.Response, error) {
			id, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (string, error) {
				*calls++
				return "sent", err
			}, idem.NotIdempotent())
			return idem.Response{Status: 201, Body: []byte(id)}, err
		}
	}
	t.Run("unknown", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody)
		calls := 0
		for range 3 {
			if _, err := do(t, e, call(&calls, errors.New("timeout"))); !errors.Is(err, idem.ErrStuck) {
				t.Fatal(err)
			}
		}
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
		pk := stuckKey(t, &mem)
		if err := e.Settle(t.Context(), pk, idem.Settlement{}); !errors.Is(err, idem.ErrResult) {
			t.Errorf("settled without an outcome: %v", err)
		}
		if err := e.Settle(t.Context(), pk, idem.Settlement{Result: []byte(`"by hand"`)}); err != nil {
			t.Fatal(err)
		}
		res, err := do(t, e, call(&calls, nil))
		if err != nil || string(res.Body) != "by hand" || calls != 1 {
			t.Errorf("%+v, %v, %d calls", res, err, calls)
		}
	})
	t.Run("safe to retry", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody)
		calls := 0
		if _, err := do(t, e, call(&calls, idem.SafeToRetry(errors.New("connection refused")))); err == nil || errors.Is(err, idem.ErrStuck) {
			t.Fatal(err)
		}
		res, err := do(t, e, call(&calls, nil))
		if err != nil || res.Status != 201 || calls != 2 {
			t.Errorf("%+v, %v, %d calls", res, err, calls)
		}
	})
	t.Run("answered", func(t *testing.T) {
		t.Parallel()
		e := idem.New(new(idem.MemoryStore), callertest.Anybody)
		calls := 0
		for i := range 2 {
			res, err := do(t, e, call(&calls, idem.Respond(idem.Response{Status: 402})))
			if err != nil || res.Status != 402 || res.Replayed != (i > 0) || calls != 1 {
				t.Errorf("%+v, %v, %d calls", res, err, calls)
			}
		}
	})
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody)
		func() {
			defer func() { _ = recover() }()
			_, _ = do(t, e, func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (string, error) { panic("died") }, idem.NotIdempotent())
				return idem.Response{}, err
			})
		}()
		calls := 0
		// An answer from before the call must not hide the call's unknown outcome.
		early := func(context.Context) (idem.Response, error) {
			return idem.Response{}, idem.Respond(idem.Response{Status: 402})
		}
		if _, err := do(t, e, early); !errors.Is(err, idem.ErrPhaseOrder) {
			t.Errorf("answered over an intent: %v", err)
		}
		if _, err := do(t, e, call(&calls, nil)); !errors.Is(err, idem.ErrStuck) || calls != 0 {
			t.Errorf("%v, %d calls", err, calls)
		}
	})
}

func stuckKey(t *testing.T, mem *idem.MemoryStore) string {
	t.Helper()
	for pk, r := range mem.Records() {
		if r.State == store.Stuck {
			return pk
		}
	}
	t.Fatal("nothing is stuck")
	return ""
}

func TestStagedJobsAreCommittedOnceWithStableNames(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody)
	fail := true
	fn := func(ctx context.Context) (idem.Response, error) {
		if err := idem.Stage(ctx, idem.NewJob("before", 0)); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Atomic(ctx, "a", func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob("in", 1))
			return 1, nil
		})
		if err != nil {
			return idem.Response{}, err
		}
		if err := idem.Stage(ctx, idem.NewJob("after", 2)); err != nil {
			return idem.Response{}, err
		}
		if fail {
			return idem.Response{}, errors.New("later")
		}
		return idem.Response{Status: 201}, nil
	}
	names := func() map[string]string {
		m := make(map[string]string)
		for _, r := range mem.Records() {
			for id, j := range r.Jobs {
				m[id] = j.Kind
			}
		}
		return m
	}
	if _, err := do(t, e, fn); err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(map[string]string{"0.0": "before", "0.1": "in"}, names()); diff != "" {
		t.Error(diff)
	}
	fail = false
	if _, err := do(t, e, fn); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"0.0": "before", "0.1": "in", "1.0": "after"}, names()); diff != "" {
		t.Error(diff)
	}
	for _, r := range mem.Records() {
		if r.Keep != store.KeepJobs || !r.Expires.IsZero() || r.Until.IsZero() {
			t.Errorf("keep %q, expires %v, until %v", r.Keep, r.Expires, r.Until)
		}
	}
}

func TestOperationIDsAndDerivedKeys(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody)
	keys := make(map[string]string)
	_, err := do(t, e, answering(func(ctx context.Context) error {
		for _, name := range []string{"one", "two"} {
			_, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
				for _, k := range [][]string{{"payments"}, {"payments", "refund" + name}, {"payments/refund" + name}, {"payments#"}, {"payments", "refund", name}, {"mail"}} {
					key := tx.Key(k[0], k[1:]...)
					if old, ok := keys[key]; ok {
						t.Errorf("%s %v has the key of %s", name, k, old)
					}
					keys[key] = name + strings.Join(k, "/")
				}
				return 1, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil || len(keys) != 12 {
		t.Fatal(err, keys)
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
