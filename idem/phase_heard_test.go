package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

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

// An Atomic calls nobody: after a failure no call of it is in doubt, though it has asked for
// a key.
func TestKeyOfAnAtomicIsNoCall(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	_, _ = do(t, idem.New(&mem, callertest.Anybody), answering(func(ctx context.Context) error {
		if err := reserve(ctx); err != nil {
			return err
		}
		_, err := idem.Atomic(ctx, "two", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Key("id"); return 0, errors.New("down") })
		return err
	}))
	if r := one(&mem); len(r.Phases) != 1 || len(r.Doubts) != 0 {
		t.Errorf("%d phases, in doubt: %q", len(r.Phases), r.Doubts)
	}
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

// A call that is not repeated takes neither writes nor jobs: they would be lost when people
// settle it. Whatever else it says, its outcome is unknown then.
func TestNotIdempotentTakesNoWrites(t *testing.T) {
	t.Parallel()
	for what, add := range map[string]func(*idem.Tx){
		"a write": func(tx *idem.Tx) { tx.Write(note("lost")) },
		"a job":   func(tx *idem.Tx) { tx.Stage(receipt) },
	} {
		for says, end := range map[string]error{
			"a result": nil, "an answer": idem.Respond(idem.Response{Status: 402}), "that it is safe": idem.SafeToRetry(errors.New("refused")),
		} {
			var mem idem.MemoryStore
			res, err := do(t, idem.New(&mem, callertest.Anybody), answering(func(ctx context.Context) error {
				_, err := idem.Foreign(ctx, "fax", func(_ context.Context, tx *idem.Tx) (int, error) { add(tx); return 1, end }, idem.NotIdempotent())
				return err
			}))
			if r := one(&mem); !errors.Is(err, idem.ErrStuck) || r.State != store.Stuck || len(r.Jobs)+len(mem.Writes()) != 0 {
				t.Errorf("%s beside %s: %+v, %v; the record is %s", what, says, res, err, r.State)
			}
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
