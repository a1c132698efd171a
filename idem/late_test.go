package idem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// lateStore reports a failure for the first commit of a phase, but applies the
// commit just before the next write.
type lateStore struct {
	*idem.MemoryStore
	tell  error
	after int // writes that pass before

	land func()
}

func (s *lateStore) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	return s.write(ctx, func(ctx context.Context) (*store.Record, error) { return s.MemoryStore.Claim(ctx, c) })
}

func (s *lateStore) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	return s.write(ctx, func(ctx context.Context) (*store.Record, error) { return s.MemoryStore.Commit(ctx, c) })
}

func (s *lateStore) write(ctx context.Context, send func(context.Context) (*store.Record, error)) (*store.Record, error) {
	s.after--
	switch {
	case s.after == -1:
		s.land = func() { _, _ = send(context.WithoutCancel(ctx)) }
		return nil, s.tell
	case s.land != nil:
		s.land()
		s.land = nil
	}
	return send(ctx)
}

// An Atomic runs again after a conflict, on fresh reads, and makes another
// result. If the first commit lands after all, the stored result counts: the
// handler continues with that result, and its answer is given.
func TestWhatWasStoredCounts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt   func(*idem.Options)
		after int
		want  string
	}{
		"a phase":  {func(*idem.Options) {}, 1, "phase 1, answer 1"},
		"a finish": {func(*idem.Options) {}, 2, "phase 1, answer 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			var phase, answer int
			handler := func(ctx context.Context) (idem.Response, error) {
				n, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) {
					phase++
					tx.Write(note(fmt.Sprint("phase ", phase)))
					return phase, nil
				})
				if err != nil {
					return idem.Response{}, err
				}
				return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					answer++
					tx.Write(note(fmt.Sprint("answer ", answer)))
					return idem.Response{Status: 201, Body: fmt.Appendf(nil, "phase %d, answer %d", n, answer)}, nil
				})
			}
			e := idem.New(&lateStore{MemoryStore: &mem, tell: idem.ErrConflict, after: tc.after}, callertest.Anybody, tc.opt)
			for i := range 2 {
				res, err := do(t, e, handler)
				if err != nil || string(res.Body) != tc.want || res.Replayed != (i > 0) {
					t.Errorf("%q, %v, replayed %t; want %q", res.Body, err, res.Replayed, tc.want)
				}
				if i == 0 && phase+answer != 3 {
					t.Errorf("%d runs of the phase and %d of the finish: nothing was late", phase, answer)
				}
			}
			if diff := cmp.Diff([]string{"phase 1", "answer 1"}, written(&mem)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// A release that meets the attempt's own later write is decided again: the
// committed work stays, and the next attempt needn't wait for the end of the
// lease.
func TestReleaseAfterALateCommitKeepsIt(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&lateStore{MemoryStore: &mem, tell: errors.New("access denied"), after: 1}, callertest.Anybody)
	handler := answering(func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil })
		return err
	})
	if _, err := do(t, e, handler); err == nil {
		t.Fatal("no error")
	}
	for _, r := range mem.Records() {
		if len(r.Phases) != 1 || r.Keep != store.KeepOpen || !r.Expires.IsZero() || !r.Lease.IsZero() {
			t.Errorf("%d phases, keep %q, expires %v, lease until %v; want one that is kept and free", len(r.Phases), r.Keep, r.Expires, r.Lease)
		}
	}
	if res, err := do(t, e, handler); err != nil || res.Status != 200 {
		t.Errorf("%+v, %v", res, err)
	}
	if diff := cmp.Diff([]string{"one"}, written(&mem)); diff != "" {
		t.Error(diff)
	}
}

// An answer that meets the attempt's own later write does not count as stored.
func TestAnswerAfterALateCommitIsNotTakenForStored(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	var finished []idem.Event
	e := idem.New(&lateStore{MemoryStore: &mem, tell: errors.New("access denied"), after: 1}, callertest.Anybody, func(o *idem.Options) {
		o.Hooks.Finished = func(_ context.Context, ev idem.Event) { finished = append(finished, ev) }
	})
	_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil })
		return idem.Response{}, idem.Respond(idem.Response{Status: 402})
	})
	for _, r := range mem.Records() {
		if done := r.State == store.Done; done != (len(finished) > 0) {
			t.Errorf("state %q, told finished %d times, %v", r.State, len(finished), err)
		}
	}
}

// An attempt that meets its own later write has not lost its lease: no hook
// reports a take-over, and the client may retry at once.
func TestLateCommitOfOnesOwnIsNoTakeOver(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	lost := 0
	e := idem.New(&lateStore{MemoryStore: &mem, tell: errors.New("access denied"), after: 1}, callertest.Anybody, func(o *idem.Options) {
		o.Hooks.LeaseLost = func(context.Context, idem.Event) { lost++ }
	})
	_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil })
		return idem.Response{}, idem.Respond(idem.Response{Status: 402})
	})
	if !errors.Is(err, store.ErrUnknown) || errors.Is(err, idem.ErrLeaseLost) || lost != 0 {
		t.Errorf("got %v, and %d were told of a lost lease", err, lost)
	}
	if r := one(&mem); len(r.Phases) != 1 || r.State != store.Open {
		t.Errorf("%d phases, state %q: nothing was late", len(r.Phases), r.State)
	}
}

// Once a call has begun, other systems may know keys derived from the operation's
// id: a failure must not free the id.
func TestFailedCallKeepsItsDerivedKey(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody)
	var keys []string
	handler := answering(func(ctx context.Context) error {
		_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) {
			if keys = append(keys, tx.Key("payments")); len(keys) == 1 {
				return 0, errors.New("time out")
			}
			return 1, nil
		})
		return err
	})
	if _, err := do(t, e, handler); err == nil {
		t.Fatal("no error")
	}
	if _, err := do(t, e, handler); err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || keys[0] != keys[1] {
		t.Errorf("the provider saw %q, want one key twice", keys)
	}
}

// A conflict repeats the commit of a call, never the call.
func TestConflictSendsACallsCommitAgain(t *testing.T) {
	t.Parallel()
	conflicts := 2
	mem := idem.MemoryStore{Apply: func([]idem.Write) error {
		if conflicts--; conflicts >= 0 {
			return idem.ErrConflict
		}
		return nil
	}}
	calls := 0
	res, err := do(t, idem.New(&mem, callertest.Anybody), answering(func(ctx context.Context) error {
		_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) {
			calls++
			tx.Write(note("charged"))
			return 1, nil
		})
		return err
	}))
	if err != nil || res.Status != 200 || calls != 1 || conflicts >= 0 {
		t.Errorf("%+v, %v after %d calls, %d conflicts left", res, err, calls, conflicts)
	}
}

// If every acknowledgement of a write is lost, however often the write is sent,
// one read shows whether the write was applied.
func TestOneReadTellsWhereEveryAnswerIsLost(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	st := idemtest.Faulty(&mem, idemtest.At(idemtest.Commit, 0, idemtest.Fault{Err: store.ErrUnknown, Applied: true}))
	res, err := do(t, idem.New(st, callertest.Anybody), func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil })
	if err != nil || res.Status != 201 || res.Expires.IsZero() || st.Calls(idemtest.Commit) != 1 {
		t.Errorf("%+v, %v after %d commits; want it known to be stored after one", res, err, st.Calls(idemtest.Commit))
	}
}
