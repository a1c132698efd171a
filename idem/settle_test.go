package idem_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// stuckOperation was abandoned and given up.
func stuckOperation(t *testing.T) *abandoned {
	t.Helper()
	a := abandon(t)
	a.leaseOver()
	if err := a.engine.MarkStuck(t.Context(), jobs.TicketFor(a.record(t)), "nobody came"); err != nil {
		t.Fatal(err)
	}
	if r := a.record(t); r.State != store.Stuck || r.LastErr != "nobody came" {
		t.Fatalf("state %q: %s", r.State, r.LastErr)
	}
	return a
}

// Two settlements that clients can distinguish.
var settlements = map[string]idem.Settlement{
	"tried again": {},
	"answered":    {Answer: &idem.Response{Status: 410}},
}

func TestOnlyWhatIsStuckIsSettled(t *testing.T) {
	t.Parallel()
	for how, s := range settlements {
		for name, state := range map[string]func(*testing.T, *abandoned){
			"open": func(_ *testing.T, a *abandoned) { a.leaseOver() },
			"held": func(*testing.T, *abandoned) {},
			"finished": func(t *testing.T, a *abandoned) {
				t.Helper()
				a.leaseOver()
				if err := a.resume(t, a.engine, jobs.TicketFor(a.record(t)), completes); err != nil {
					t.Fatal(err)
				}
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				a := abandon(t)
				state(t, a)
				before := a.record(t)
				if name == "open" && s.Answer != nil { // an abandoned operation may be answered
					err := a.engine.Settle(t.Context(), before.PK, s)
					if r := a.record(t); err != nil || r.State != store.Done || r.Response.Status != 410 {
						t.Errorf("%v: %s", err, r.State)
					}
					return
				}
				if err := a.engine.Settle(t.Context(), before.PK, s); !errors.Is(err, jobs.ErrMoved) {
					t.Errorf("got %v", err)
				}
				if diff := cmp.Diff(before, a.record(t)); diff != "" {
					t.Errorf("the record was written (-want +got):\n%s", diff)
				}
			})
		}
		t.Run("stuck is "+how, func(t *testing.T) {
			t.Parallel()
			a := stuckOperation(t)
			if err := a.engine.Settle(t.Context(), a.record(t).PK, s); err != nil {
				t.Fatal(err)
			}
			res, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return completes(ctx, nil) })
			want := 201
			if s.Answer != nil {
				want = s.Answer.Status
			}
			if err != nil || res.Status != want || len(a.mem.Writes()) != 1 {
				t.Errorf("%+v, %v, writes %v; want %d", res, err, written(&a.mem), want)
			}
		})
	}
}

// An operator writes under a new nonce: no late write of the stuck attempt fits,
// whatever version it expects.
func TestLateWriteDoesNotFitAfterASettlement(t *testing.T) {
	t.Parallel()
	for how, s := range settlements {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			a := stuckOperation(t)
			stuck := a.record(t)
			if err := a.engine.Settle(t.Context(), stuck.PK, s); err != nil {
				t.Fatal(err)
			}
			settled := a.record(t)
			for ver := range settled.Ver + 2 {
				prev := stuck.Clone()
				prev.Ver = ver
				next := prev.Clone()
				next.Ver++
				if held, err := a.mem.Commit(t.Context(), store.Commit{Prev: prev, Next: next}); held == nil || err != nil {
					t.Errorf("version %d fits: %v", ver, err)
				}
			}
		})
	}
}

// A worker that wakes up after its operation was given up changes nothing, not
// even the text for people.
func TestLateWriteDoesNotFitAfterGivingUp(t *testing.T) {
	t.Parallel()
	a := abandon(t)
	a.leaseOver()
	var given *store.Record
	_, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
		a.leaseOver() // the worker falls asleep
		if err := a.engine.MarkStuck(t.Context(), jobs.TicketFor(a.record(t)), "nobody came"); err != nil {
			t.Error(err)
		}
		given = a.record(t)
		if _, err := completes(ctx, nil); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Atomic(ctx, "two", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("two")); return 2, nil })
		return idem.Response{}, err
	})
	if !errors.Is(err, idem.ErrLeaseLost) {
		t.Errorf("the late worker gets %v", err)
	}
	if diff := cmp.Diff(given, a.record(t)); diff != "" {
		t.Errorf("the record was written (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one"}, written(&a.mem)); diff != "" {
		t.Error(diff)
	}
}

// A dead attempt may have made calls since its last write. The settlement must
// decide about those calls.
func TestGivingUpKeepsTheDoubt(t *testing.T) {
	t.Parallel()
	a := abandon(t, func(o *idem.Options) { o.CallsOut = true })
	a.leaseOver()
	before := a.record(t)
	if err := a.engine.MarkStuck(t.Context(), jobs.TicketFor(before), "nobody came"); err != nil {
		t.Fatal(err)
	}
	after := a.record(t)
	if diff := cmp.Diff([]string{state.AnyCall}, after.Doubts); diff != "" || !after.DoubtSince.Equal(before.Run) {
		t.Errorf("in doubt since %v, want %v (-want +got):\n%s", after.DoubtSince, before.Run, diff)
	}
}

// A freed key is left to its client, not to the completer.
func TestFreedKeyIsNotGivenUp(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody)
	if _, err := do(t, e, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("fails") }); err == nil {
		t.Fatal("no error")
	}
	for pk, r := range mem.Records() {
		if err := e.MarkStuck(t.Context(), jobs.TicketFor(r), "test"); !errors.Is(err, jobs.ErrMoved) {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(r, mem.Records()[pk]); diff != "" {
			t.Errorf("the record was written (-want +got):\n%s", diff)
		}
	}
}

// meddled allows another write just before a commit.
type meddled struct {
	*idem.MemoryStore
	first func()
}

func (m *meddled) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	if first := m.first; first != nil {
		m.first = nil
		first()
	}
	return m.MemoryStore.Commit(ctx, c)
}

func TestTwoOperatorsDecideOnce(t *testing.T) {
	t.Parallel()
	a := stuckOperation(t)
	pk := a.record(t).PK
	slow := idem.New(&meddled{MemoryStore: &a.mem, first: func() {
		if err := a.engine.Settle(t.Context(), pk, settlements["answered"]); err != nil {
			t.Error(err)
		}
	}}, callertest.Anybody, func(o *idem.Options) { o.Now = a.clock.Now })
	if err := slow.Settle(t.Context(), pk, idem.Settlement{}); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("the slower operator gets %v", err)
	}
	if r := a.record(t); r.State != store.Done || r.Response.Status != 410 {
		t.Errorf("state %q: the first decision doesn't stand", r.State)
	}
}
