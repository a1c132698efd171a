package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func reserve(ctx context.Context) error {
	_, err := reserves(200)(ctx)
	return err
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
		st := idemtest.Faulty(&mem, idemtest.At("Commit", 1, idemtest.Fault{Err: errors.New("access denied"), Applied: true}))
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

// Rocket Rides: a write, a call and a finish are committed once, at a known number of calls to
// the store, and replayed.
func TestPhasesCommitOnceAndReplay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt     func(*idem.Options)
		opts    []idem.PhaseOption
		calls   int
		leading int // calls if the call is the first phase
	}{
		"a call":          {asIs, nil, 5, 4}, // the record is kept before the call
		"a declared call": {callsOut, nil, 4, 3},
		"not idempotent":  {asIs, []idem.PhaseOption{idem.NotIdempotent()}, 5, 4},
	} {
		a := begun(tc.opt)
		st := idemtest.Faulty(&a.mem, nil)
		var w outside
		for i, calls := range []int{tc.calls, 1} {
			st.Reset(nil)
			res, err := do(t, idem.New(st, a.opts...), w.rides(nil, tc.opts...))
			if err != nil || res.Status != 201 || string(res.Body) != "r1 ch_1" || res.Replayed != (i > 0) || st.Calls() != calls {
				t.Errorf("%s, request %d: got %+v, %v after %d calls; want r1 ch_1 after %d", name, i, res, err, st.Calls(), calls)
			}
		}
		if diff := cmp.Diff([]string{"ride", "audit", "charged r1"}, written(&a.mem)); diff != "" || len(w.calls) != 1 {
			t.Errorf("%s: %d charges, writes (-want +got):\n%s", name, len(w.calls), diff)
		}
		st = idemtest.Faulty(new(idem.MemoryStore), nil)
		if _, err := do(t, idem.New(st, a.opts...), charging("charge", func(string) {}, tc.opts...)); err != nil || st.Calls() != tc.leading {
			t.Errorf("%s, first: %v after %d calls, want %d", name, err, st.Calls(), tc.leading)
		}
	}
}

// Committed work stays, and a retry continues from there.
func TestRetryResumesAtTheRecoveryPoint(t *testing.T) {
	t.Parallel()
	a, down := begun(), errors.New("provider is down")
	var w outside
	if _, err := a.do(t, w.rides(func(string) error { return down })); !errors.Is(err, down) {
		t.Fatal(err)
	}
	if res, err := a.do(t, w.rides(nil)); err != nil || string(res.Body) != "r1 ch_1" {
		t.Fatalf("got %+v, %v, want r1 ch_1", res, err)
	}
	diff := cmp.Diff([]string{"ride", "audit", "charged r1"}, written(&a.mem))
	if c := w.charged(); diff != "" || len(c) != 1 || len(w.calls) != 2 {
		t.Errorf("charges by derived key %v, want two with one key; writes (-want +got):\n%s", c, diff)
	}
}

// A definitive answer from a phase ends the operation and is replayed.
func TestRespondInAPhaseIsStored(t *testing.T) {
	t.Parallel()
	a := begun()
	var w outside
	for i := range 3 {
		res, err := a.do(t, w.rides(func(string) error { return idem.Respond(idem.Response{Status: 402, Body: []byte("declined")}) }))
		if err != nil || res.Status != 402 || string(res.Body) != "declined" || res.Replayed != (i > 0) {
			t.Fatalf("request %d: got %+v, %v, want 402", i, res, err)
		}
	}
	if r := a.record(t); len(w.calls) != 1 || len(r.Phases) != 1 {
		t.Errorf("%d charges, phases %v; want one, and the first: the answer is the second one's commit", len(w.calls), r.Phases)
	}
}

// A false condition leaves neither write nor job nor recovery point.
func TestFalseConditionCommitsNothing(t *testing.T) {
	t.Parallel()
	mem := idem.MemoryStore{Apply: func([]idem.Write) error { return idem.ErrCondition }}
	e, runs := idem.New(&mem), 0
	res, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "book", func(_ context.Context, tx *idem.Tx) (int, error) {
			runs++
			tx.Write(note("seat"))
			tx.Stage(receipt)
			return 1, nil
		}); !errors.Is(err, idem.ErrCondition) {
			t.Errorf("the phase: %v, want ErrCondition", err)
		}
		if err := recordPhase(ctx, "more"); !errors.Is(err, idem.ErrPhaseFailed) {
			t.Errorf("a phase after a failed one: %v, want ErrPhaseFailed", err)
		}
		return idem.Response{}, idem.Respond(idem.Response{Status: 409, Body: []byte("taken")})
	})
	if err != nil || res.Status != 409 || runs != 1 {
		t.Fatalf("got %+v, %v after %d runs, want 409 after one", res, err, runs)
	}
	if res, err = do(t, e, never(t)); err != nil || !res.Replayed || res.Status != 409 || len(mem.Writes())+jobsOf(&mem) != 0 {
		t.Errorf("a retry: %+v, %v, %d writes and %d jobs", res, err, len(mem.Writes()), jobsOf(&mem))
	}
}

// An Atomic runs again after a conflict, for a while; then the client gets 409, is told to
// retry with its key, and its retry succeeds.
func TestAtomicRunsAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ conflicts, status, most int }{"three": {3, 201, 4}, "without end": {1 << 20, 409, 1 << 20}} {
		synctest.Test(t, func(t *testing.T) {
			conflicts, runs := tt.conflicts, 0
			mem := idem.MemoryStore{Apply: func([]idem.Write) error {
				if conflicts--; conflicts >= 0 {
					return idem.ErrConflict
				}
				return nil
			}}
			e := idem.New(&mem)
			count := func(ctx context.Context) (idem.Response, error) {
				n, err := idem.Atomic(ctx, "count", func(_ context.Context, tx *idem.Tx) (int, error) {
					runs++
					tx.Write(note("n"))
					return runs, nil
				})
				return idem.Response{Status: 201, Body: fmt.Append(nil, n)}, err
			}
			res := serve(t, e, count)
			if res.Status != tt.status || runs < 2 || runs > tt.most || res.Status == 201 && string(res.Body) != "4" {
				t.Errorf("%s: got %d %s after %d runs, want %d", name, res.Status, res.Body, runs, tt.status)
			}
			if res.Status == 409 && (!strings.Contains(string(res.Body), `"conflict"`) || res.Header.Get("Retry-After") == "" || len(mem.Writes()) != 0) {
				t.Errorf("%s: got %v %s, %d writes", name, res.Header, res.Body, len(mem.Writes()))
			}
			conflicts = 0
			if res := serve(t, e, count); res.Status != 201 || res.Replayed != (tt.status == 201) || len(mem.Writes()) != 1 {
				t.Errorf("%s, the retry: got %+v, %d writes", name, res, len(mem.Writes()))
			}
		})
	}
}

// A swallowed error must not become a stored answer with missing parts, nor reach the client as
// success. An error that the handler itself makes is returned.
func TestSwallowedPhaseErrorIsNotStored(t *testing.T) {
	t.Parallel()
	a, oops := begun(), errors.New("oops")
	for i, tt := range []struct {
		fails    error
		status   int
		err      error
		replayed bool
	}{{oops, 201, oops, false}, {oops, 400, nil, false}, {oops, 402, nil, false}, {nil, 201, nil, false}, {nil, 201, nil, true}} {
		res, err := a.do(t, func(ctx context.Context) (idem.Response, error) {
			_, _ = idem.Atomic(ctx, "a", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("a")); return 1, tt.fails })
			return idem.Response{Status: tt.status}, nil
		})
		if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || err == nil && res.Status != tt.status || res.Replayed != tt.replayed {
			t.Fatalf("request %d: got %+v, %v; want %d, %v", i, res, err, tt.status, tt.err)
		}
	}
	if len(a.mem.Writes()) != 1 {
		t.Errorf("wrote %v, want one", written(&a.mem))
	}
}

func TestPhasesOutOfOrderAreRefused(t *testing.T) {
	t.Parallel()
	inOrder := func(names ...string) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			for _, name := range names {
				err = errors.Join(err, recordPhase(ctx, name))
			}
			return err
		}
	}
	for name, again := range map[string]func(context.Context) error{
		"renamed":          inOrder("uno", "two"),
		"reordered":        inOrder("two", "one"),
		"inserted":         inOrder("one", "half", "two"),
		"fewer":            inOrder("one"),
		"none":             inOrder(),
		"repeated":         inOrder("one", "one"),
		"finished earlier": func(ctx context.Context) error { return errors.Join(recordPhase(ctx, "one"), finish(ctx)) },
	} {
		a := begun()
		_, _ = a.do(t, answering(func(ctx context.Context) error { return errors.Join(inOrder("one", "two")(ctx), errors.New("later")) }))
		if _, err := a.do(t, answering(again)); !errors.Is(err, idem.ErrPhaseOrder) {
			t.Errorf("%s: got %v, want ErrPhaseOrder", name, err)
		}
		res, err := a.do(t, answering(inOrder("one", "two")))
		if diff := cmp.Diff([]string{"one", "two"}, written(&a.mem)); diff != "" || err != nil || res.Replayed {
			t.Errorf("%s, the right handler afterwards: %+v, %v, writes (-want +got):\n%s", name, res, err, diff)
		}
	}
}

func TestMisusedPhasesAreRefused(t *testing.T) {
	t.Parallel()
	named := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { return recordPhase(ctx, name) }
	}
	in := func(fn func(tx *idem.Tx)) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "p", func(_ context.Context, tx *idem.Tx) (int, error) { fn(tx); return 1, nil })
			return err
		}
	}
	for name, tc := range map[string]struct {
		fn   func(context.Context) error
		want error
	}{
		"repeated on the first run": {func(ctx context.Context) error { return errors.Join(recordPhase(ctx, "p"), recordPhase(ctx, "p")) }, idem.ErrPhaseOrder},
		"nested": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "outer", func(ctx context.Context, _ *idem.Tx) (int, error) { return 0, recordPhase(ctx, "inner") })
			return err
		}, idem.ErrPhaseOrder},
		"without a name":       {named(""), idem.ErrPhaseOrder},
		"a name of 101 bytes":  {named(strings.Repeat("n", 101)), idem.ErrPhaseOrder},
		"a name, not in UTF-8": {named("n\xff"), idem.ErrPhaseOrder},
		"a result without JSON": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "p", func(context.Context, *idem.Tx) (chan int, error) { return make(chan int), nil })
			return err
		}, idem.ErrResult},
		"a result that storing would change": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "p", func(_ context.Context, tx *idem.Tx) (any, error) {
				tx.Write(note("one"))
				return int64(1<<53 + 1), nil // read back into any, the value is a float64
			})
			return err
		}, idem.ErrResult},
		"a write that can't be built": {in(func(tx *idem.Tx) { tx.Write(brokenWrite{}) }), idem.ErrWrite},
		"a nil write":                 {in(func(tx *idem.Tx) { tx.Write(nil) }), idem.ErrWrite},
		"an answer of another type": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "p", func(context.Context, *idem.Tx) (int, error) { return 1, idem.Respond("text") })
			return err
		}, idem.ErrResult},
		"a status that can't be sent": {func(ctx context.Context) error {
			_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				tx.Write(note("charge"))
				return idem.Response{Status: 20}, nil
			})
			return err
		}, idem.ErrResult},
	} {
		a := begun()
		var heard error
		_, err := a.do(t, answering(func(ctx context.Context) error { heard = tc.fn(ctx); return heard }))
		if e, ok := errors.AsType[*idem.Error](heard); !errors.Is(err, tc.want) || !errors.Is(heard, tc.want) || !ok || e.Record == "" {
			t.Errorf("%s: got %v, and the handler hears %v, want %v with a record", name, err, heard, tc.want)
		}
		if w := written(&a.mem); len(w) > 1 || len(w) == 1 && name != "repeated on the first run" {
			t.Errorf("%s: wrote %v", name, w)
		}
	}
	if _, err := begun().do(t, answering(named(strings.Repeat("n", 100)))); err != nil {
		t.Errorf("a name of 100 bytes: %v", err)
	}
	if err := recordPhase(t.Context(), "p"); !errors.Is(err, idem.ErrNoOperation) {
		t.Errorf("outside of an operation: %v, want ErrNoOperation", err)
	}
}

// A refusal that could not be stored is not told as definitive: a completer may succeed.
func TestRefusalThatIsNotStored(t *testing.T) {
	t.Parallel()
	a := accepting()
	denied := idemtest.At("Commit", 0, idemtest.Fault{Err: errors.New("throttled")})
	st := idemtest.Faulty(&a.mem, nil)
	res, err := do(t, idem.New(st, a.opts...), func(ctx context.Context) (idem.Response, error) {
		if err := recordPhase(ctx, "ride"); err != nil {
			return idem.Response{}, err
		}
		st.Reset(denied)
		return idem.Response{}, idem.Respond(idem.Response{Status: 402, Body: []byte("too dear, nothing was charged")})
	})
	if err == nil {
		t.Errorf("the client is told %d %s", res.Status, res.Body)
	}
	a.leaseOver()
	if err := a.completes(t, answering(func(ctx context.Context) error { return errors.Join(recordPhase(ctx, "ride"), finish(ctx)) })); err != nil {
		t.Error(err)
	}
}

// No answer that ends an operation hides a phase that is recorded and that the handler passed
// by. One that says "later" ends nothing.
func TestAnswerPastARecordedPhase(t *testing.T) {
	t.Parallel()
	another := func(status int) handler { // than the recorded phase, whose failure is hidden
		return func(ctx context.Context) (idem.Response, error) {
			_ = recordPhase(ctx, "another")
			return idem.Response{Status: status}, nil
		}
	}
	all := func(o *idem.Options) { o.Stored = func(idem.Response) bool { return true } }
	for name, tt := range map[string]struct {
		opt    func(*idem.Options)
		fn     handler
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
		a := begun(tt.opt)
		_, _ = a.do(t, answering(func(ctx context.Context) error { return errors.Join(reserve(ctx), errors.New("later")) }))
		res, err := a.do(t, tt.fn)
		if r := a.record(t); res.Status != tt.status || !errors.Is(err, tt.want) || errors.Is(err, idem.ErrUnavailable) || r.State != store.Open {
			t.Errorf("%s: got %+v, %v, the record is %s; want %d, %v and open", name, res, err, r.State, tt.status, tt.want)
		}
	}
}

// If the store doesn't commit a phase, the client is told whether the store is at fault.
func TestPhaseThatIsNotCommitted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		code string
	}{
		"no answer":                    {store.ErrUnknown, "store_unavailable"},
		"access to a table denied":     {fmt.Errorf("dynamo: commit: %w: AccessDeniedException", store.ErrRefused), "store_unavailable"},
		"no data key":                  {store.ErrSealed, "store_unavailable"},
		"a condition of the handler's": {idem.ErrCondition, "internal_error"},
		"too large":                    {store.ErrTooLarge, "internal_error"},
	} {
		var mem idem.MemoryStore
		st := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Commit" && c.Commit.Next.State == store.Open && len(c.Commit.Next.Phases) > 0 {
				return idemtest.Fault{Err: tt.err}
			}
			return idemtest.Fault{}
		})
		e := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.Lease = time.Second })
		res, err := e.Serve(t.Context(), keyed("k"), answering(reserve))
		if err != nil || !strings.Contains(string(res.Body), `"code":"`+tt.code+`"`) {
			t.Errorf("%s: got %d %s, %v, want %s", name, res.Status, res.Body, err, tt.code)
		}
	}
}

// A phase without a result is an error for its handler, which would go on with a zero one.
func TestPhaseWithoutAResultIsAnError(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	fails := func(n int) idemtest.Plan { return idemtest.At("Commit", n, idemtest.Fault{Err: down}) }
	calls := func(err error, opts ...idem.PhaseOption) func(context.Context) error {
		return func(ctx context.Context) error {
			return paying(ctx, "charge", func(*idem.Tx) error { return err }, opts...)
		}
	}
	var leave context.CancelFunc
	once, declined := idem.NotIdempotent(), idem.Respond(idem.Response{Status: 402})
	for name, tt := range map[string]struct {
		first func(context.Context) error // of an attempt before
		age   time.Duration               // since then
		phase func(context.Context) error
		plan  idemtest.Plan
		want  error
	}{
		"a call that the provider may have forgotten": {first: calls(down), age: 23 * time.Hour, phase: calls(nil), want: idem.ErrStuck},
		"a call that is not repeated, and leaves one in doubt": {first: calls(down), want: idem.ErrPhaseOrder, phase: func(ctx context.Context) error {
			return paying(ctx, "fax", func(*idem.Tx) error { return nil }, once)
		}},
		"a call that would send something else": {
			first: calls(down, idem.Sends("payments", 20, "charge")), phase: calls(nil, idem.Sends("payments", 25, "charge")), want: idem.ErrStuck,
		},
		"a call that sends what JSON can't hold":     {phase: calls(nil, idem.Sends("payments", make(chan int))), want: idem.ErrResult},
		"the write before a call fails":              {phase: calls(nil), plan: fails(1), want: down},
		"the begin of a call fails":                  {phase: calls(nil, once), plan: fails(1), want: down},
		"a call without an outcome":                  {phase: calls(down, once), want: idem.ErrStuck},
		"a call that failed safely, and isn't freed": {phase: calls(idem.SafeToRetry(errors.New("refused")), once), plan: fails(2), want: down},
		"a call that has no time, and isn't freed": {
			phase: func(ctx context.Context) error { ctx, leave = context.WithCancel(ctx); return calls(nil, once)(ctx) },
			plan:  each(at("Commit", 1, func() { leave() }), fails(2)), want: down,
		},
		"a call that answers":                      {phase: calls(declined), want: declined},
		"a call that answers once":                 {phase: calls(declined, once), want: declined},
		"a call whose answer can't be stored":      {phase: calls(declined), plan: fails(2), want: down},
		"a call whose only answer can't be stored": {phase: calls(declined, once), plan: fails(2), want: down},
		"a call that answers with another type":    {phase: calls(idem.Respond("text")), want: idem.ErrResult},
		"a call under the id of a delivery":        {phase: calls(nil), want: idem.ErrDeliveryKey},
	} {
		a := begun()
		r := request
		r.DeliveryKey = errors.Is(tt.want, idem.ErrDeliveryKey)
		if tt.first != nil {
			_, _ = a.engine.Do(t.Context(), r, answering(tt.first))
			a.clock.Advance(tt.age)
		}
		var heard error
		_, _ = idem.New(idemtest.Faulty(&a.mem, tt.plan), a.opts...).Do(t.Context(), r, answering(func(ctx context.Context) error {
			heard = tt.phase(ctx)
			return heard
		}))
		if !errors.Is(heard, tt.want) || strings.Contains(heard.Error(), "can't be read as") {
			t.Errorf("%s: the handler hears %v, want %v", name, heard, tt.want)
		}
	}
}

// A function's own error is its phase's, as it is, also beside a write that can't be built.
func TestPhaseHasItsFunctionsError(t *testing.T) {
	t.Parallel()
	for what, phase := range map[string]func(ctx context.Context) error{
		"a call": func(ctx context.Context) error {
			return paying(ctx, "call", func(*idem.Tx) error { return declined{} })
		},
		"a write": func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "write", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Write(brokenWrite{})
				return 0, declined{}
			})
			return err
		},
	} {
		_, _ = begun().do(t, answering(func(ctx context.Context) error {
			err := phase(ctx)
			if err != error(declined{}) { //nolint:errorlint // exactly this value
				t.Errorf("%s: got %v, want the function's own error", what, err)
			}
			return err
		}))
	}
}

// What a phase writes and stages is committed with it, or with the answer that it gives. The
// answer has no header that splits it, neither at first nor as a replay.
func TestWhatAPhaseWritesAndStagesIsCommitted(t *testing.T) {
	t.Parallel()
	answer := idem.Respond(idem.Response{Status: 200, Header: http.Header{"X-Good": {"1"}, "X-Bad": {"a\r\nSet-Cookie: b"}}})
	call := func(opts ...idem.PhaseOption) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := idem.Foreign(ctx, "call", func(context.Context, *idem.Tx) (int, error) { return 1, answer }, opts...)
			return err
		}
	}
	for name, tt := range map[string]struct {
		fn    func(context.Context) error
		wrote int
	}{
		"a call answers":                      {call(), 0},
		"a call that is not repeated answers": {call(idem.NotIdempotent()), 0},
		"an Atomic answers": {func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "write", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Write(note("write"))
				tx.Stage(receipt)
				return 1, answer
			})
			return err
		}, 1},
	} {
		a := begun(func(o *idem.Options) { o.StoreHeaders = []string{"X-Good", "X-Bad"} })
		for range 2 {
			res, err := a.do(t, answering(tt.fn))
			if diff := cmp.Diff(http.Header{"X-Good": {"1"}}, res.Header); err != nil || res.Status != 200 || diff != "" {
				t.Errorf("%s: got %+v, %v, headers (-want +got):\n%s", name, res, err, diff)
			}
		}
		if len(a.mem.Writes()) != tt.wrote || jobsOf(&a.mem) != tt.wrote {
			t.Errorf("%s: %d writes and %d jobs, want %d of each", name, len(a.mem.Writes()), jobsOf(&a.mem), tt.wrote)
		}
	}
}

// A commit without writes of the handler's is sent again after a conflict: the handler neither
// hears of it nor calls again.
func TestConflictOfTheEnginesOwnCommit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  error
		opts []idem.PhaseOption
		at   int
	}{
		"that keeps the record": {nil, nil, 1},
		"of a call's result":    {nil, nil, 2},
		"of a call's begin":     {nil, []idem.PhaseOption{idem.NotIdempotent()}, 1},
		"of its outcome":        {nil, []idem.PhaseOption{idem.NotIdempotent()}, 2},
		"of its answer":         {idem.Respond(idem.Response{Status: 200}), []idem.PhaseOption{idem.NotIdempotent()}, 2},
	} {
		calls := 0
		st := idemtest.Faulty(new(idem.MemoryStore), idemtest.At("Commit", tt.at, idemtest.Fault{Err: idem.ErrConflict}))
		res, err := do(t, idem.New(st), answering(func(ctx context.Context) error {
			return paying(ctx, "charge", func(*idem.Tx) error { calls++; return tt.end }, tt.opts...)
		}))
		if err != nil || res.Status != 200 || calls != 1 {
			t.Errorf("%s: got %+v, %v after %d calls, want 200 after one", name, res, err, calls)
		}
	}
}

// No answer is given while a running phase may contradict it, and what the phase then writes
// claims no key that no attempt holds.
func TestNoAnswerLeavesWhileAPhaseRuns(t *testing.T) {
	t.Parallel()
	type phase func(context.Context, func(context.Context, *idem.Tx) (int, error)) error
	call := func(ctx context.Context, run func(context.Context, *idem.Tx) (int, error)) error {
		_, err := idem.Foreign(ctx, "charge", run)
		return err
	}
	writes := func(ctx context.Context, run func(context.Context, *idem.Tx) (int, error)) error {
		_, err := idem.Atomic(ctx, "order", func(ctx context.Context, tx *idem.Tx) (int, error) {
			n, err := run(ctx, tx)
			tx.Write(note("late"))
			return n, err
		})
		return err
	}
	for name, tt := range map[string]struct {
		phase  phase
		answer idem.Response
		err    error
		want   error
	}{
		"a kept refusal, and a call": {call, idem.Response{}, idem.Respond(idem.Response{Status: 402}), idem.ErrPhaseOrder},
		"a refusal, and a call":      {call, idem.Response{Status: 404}, nil, idem.ErrPhaseOrder},
		"a refusal, and writes":      {writes, idem.Response{Status: 404}, nil, idem.ErrPhaseOrder},
		"an error, and writes":       {writes, idem.Response{}, declined{}, declined{}},
	} {
		a := begun()
		started, wake, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		res, err := a.do(t, func(ctx context.Context) (idem.Response, error) {
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
		if late := <-over; !errors.Is(late, idem.ErrPhaseOrder) || !errors.Is(err, tt.want) {
			t.Errorf("%s: the phase gets %v, the client %+v, %v; want ErrPhaseOrder, and %v", name, late, res, err, tt.want)
		}
		if r := a.record(t); len(a.mem.Writes()) != 0 || len(r.Phases) != 0 || r.State != store.Open {
			t.Errorf("%s: wrote %v, phases %v, the record is %s; want nothing", name, written(&a.mem), r.Phases, r.State)
		}
	}
}

// A phase whose result has another type now gets all stored data or an error: never a value
// with holes, such as an amount of 0.
func TestResultOfAnotherTypeIsRefusedWhereItLosesData(t *testing.T) {
	t.Parallel()
	type order struct {
		ID     string `json:"id"`
		Amount int    `json:"amount"`
	}
	for name, tc := range map[string]struct {
		read func(context.Context) error
		lost string // "" = the type is accepted
	}{
		"the same":     {reads[order], ""},
		"another kind": {reads[string], "be read as string"},
		"a map":        {reads[map[string]any], "amount"}, // float64
		"more fields": {reads[struct {
			ID, New string
			Amount  int64
		}], ""},
		"a renamed field": {reads[struct {
			ID    string
			Price int
		}], "amount"},
	} {
		a := begun()
		_, _ = a.do(t, answering(func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (order, error) { return order{"o1", 1<<53 + 1}, nil })
			return errors.Join(err, errors.New("down"))
		}))
		_, err := a.do(t, answering(tc.read))
		if (err == nil) != (tc.lost == "") || err != nil && (!errors.Is(err, idem.ErrResult) || !strings.Contains(err.Error(), tc.lost)) {
			t.Errorf("%s: got %v, want ErrResult about %q", name, err, tc.lost)
		}
	}
}

func reads[T any](ctx context.Context) error {
	_, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (none T, _ error) { return none, nil })
	return err
}
