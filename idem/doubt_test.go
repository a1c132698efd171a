package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
)

// A call that may have been made is never forgotten with its key: a day later the same
// key would call again under another derived key (R149).
func TestCallInDoubtDoesNotExpire(t *testing.T) {
	t.Parallel()
	timesOut := func(context.Context) error { return errors.New("timeout") }
	for name, tc := range map[string]struct {
		opt  func(*idem.Options)
		end  func(st *idemtest.FaultyStore) func(context.Context) error
		kept bool
	}{
		"the call times out":           {asIs, func(*idemtest.FaultyStore) func(context.Context) error { return timesOut }, true},
		"the same, declared":           {func(o *idem.Options) { o.CallsOut = true }, func(*idemtest.FaultyStore) func(context.Context) error { return timesOut }, true},
		"the process dies in the call": {asIs, dies, true},
		"it dies, declared":            {func(o *idem.Options) { o.CallsOut = true }, dies, true},
		"the call certainly had no effect": {func(o *idem.Options) { o.CallsOut = true }, func(*idemtest.FaultyStore) func(context.Context) error {
			return func(context.Context) error { return idem.SafeToRetry(errors.New("refused")) }
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := idemtest.NewClock()
			var mem idem.MemoryStore
			var w outside
			st := idemtest.Faulty(&mem, nil)
			opt := func(o *idem.Options) { o.Now = clock.Now }
			end := tc.end(st)
			handler := func(end func(context.Context) error) func(context.Context) (idem.Response, error) {
				return func(ctx context.Context) (idem.Response, error) {
					_, err := idem.Foreign(ctx, "charge", func(ctx context.Context, tx *idem.Tx) (int, error) {
						w.charge(tx.Key("payments"))
						return 1, end(ctx)
					})
					return idem.Response{Status: 201}, err
				}
			}
			_, err := do(t, idem.New(st, opt, tc.opt), handler(end))
			if err == nil {
				t.Fatal("no error")
			}
			r := onlyRecord(t, &mem)
			if kept := r.Keep == store.KeepOpen && r.Expires.IsZero(); kept != tc.kept {
				t.Fatalf("keep %q, expires %v, in doubt %v; want it kept: %t", r.Keep, r.Expires, r.Doubts, tc.kept)
			}
			if !tc.kept {
				return
			}
			clock.Advance(30 * time.Hour) // beyond the key's lifetime, and its provider's memory
			_, err = do(t, idem.New(&mem, opt, tc.opt), handler(func(context.Context) error { return nil }))
			if !errors.Is(err, idem.ErrStuck) || len(w.calls) != 1 {
				t.Errorf("a day later: %v, %d calls under %v", err, len(w.calls), w.charged())
			}
		})
	}
}

func asIs(*idem.Options) {}

func dies(st *idemtest.FaultyStore) func(context.Context) error {
	return func(context.Context) error { st.Crash(); return errors.New("died") }
}

// An abandoned call whose client never comes back is given up after retention, and so
// listed. No request has to be stored for that.
func TestForsakenCallWaitsForPeople(t *testing.T) {
	t.Parallel()
	a := &abandoned{clock: idemtest.NewClock()}
	a.engine = idem.New(&a.mem, func(o *idem.Options) { o.Now, o.CallsOut = a.clock.Now, true })
	dying := idemtest.Faulty(&a.mem, nil)
	_, _ = do(t, idem.New(dying, func(o *idem.Options) { o.Now, o.CallsOut = a.clock.Now, true }), charging("charge", func(string) { dying.Crash() }))
	a.clock.Advance(25 * time.Hour)
	if err := a.engine.MarkStuck(t.Context(), jobs.TicketFor(a.record(t)), "its client never came back"); err != nil {
		t.Fatal(err)
	}
	if r := a.record(t); r.State != store.Stuck || len(r.Doubts) == 0 || r.WaitSince.IsZero() {
		t.Errorf("state %q, in doubt %v, waits since %v", r.State, r.Doubts, r.WaitSince)
	}
}

// An answer is kept, or the record stays open: an operation with phases doesn't give its
// answer up because one write was slow (R150). Only a body that never fits is left out.
func TestAnswerIsKeptOrTheRecordStaysOpen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		fn    func(context.Context) (idem.Response, error)
		state store.State
	}{
		"phases, and a write that fails":        {errors.New("write body: context deadline exceeded"), reserves(201), store.Open},
		"phases, and an answer that never fits": {fmt.Errorf("%w: 401 KB", store.ErrTooLarge), reserves(201), store.Done},
		"no phases, and a write that fails":     {errors.New("write body: context deadline exceeded"), answers(201), store.Done},
		"no phases, and a body that never fits": {fmt.Errorf("%w: 401 KB", store.ErrTooLarge), answers(201), store.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			st := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
				if c.Verb == idemtest.Commit && c.Commit.Next.State == store.Done && c.Commit.Next.Overflow == nil {
					return idemtest.Fault{Err: tc.err}
				}
				return idemtest.Fault{}
			})
			_, _ = do(t, idem.New(st), tc.fn)
			for _, r := range mem.Records() {
				if r.State != tc.state {
					t.Errorf("state %q, want %q: %+v", r.State, tc.state, r)
				}
			}
		})
	}
}

// A phase's result leaves room for what take-overs add to its record, which nobody could
// otherwise finish, nor give up.
func TestResultLeavesRoomForATakeOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size int
		ok   bool
	}{"with room": {380 << 10, true}, "without": {399 << 10, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting()
			_, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Atomic(ctx, "large", func(context.Context, *idem.Tx) (string, error) { return strings.Repeat("x", tc.size), nil })
				return idem.Response{Status: 201}, err
			})
			if r := a.record(t); (err == nil) != tc.ok || !tc.ok && (!errors.Is(err, store.ErrTooLarge) || !r.Blocked) {
				t.Errorf("%v; waits for people: %t", err, r.Blocked)
			}
		})
	}
}

// Jobs that a drain has delivered meanwhile don't count as waiting.
func TestDeliveredJobsDoNotCount(t *testing.T) {
	t.Parallel()
	mem := &emptied{}
	_, err := do(t, idem.New(mem), func(ctx context.Context) (idem.Response, error) {
		for n := range 3 {
			if _, err := idem.Atomic(ctx, fmt.Sprint("phase", n), func(_ context.Context, tx *idem.Tx) (int, error) {
				for range 30 {
					tx.Stage(idem.NewJob("mail", n))
				}
				return n, nil
			}); err != nil {
				return idem.Response{}, err
			}
			mem.deliver = true
		}
		return idem.Response{Status: 201}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// emptied is a store whose jobs are delivered as soon as it is told so.
type emptied struct {
	idem.MemoryStore
	deliver bool
}

func (s *emptied) Load(ctx context.Context, pk string) (*store.Record, error) {
	r, err := s.MemoryStore.Load(ctx, pk)
	if r != nil && s.deliver {
		r.Jobs = nil
	}
	return r, err
}

// A key that is asked for when nobody can record its call ends the program: it would
// stand for two calls.
func TestKeyAfterItsPhase(t *testing.T) {
	t.Parallel()
	var late *idem.Tx
	_, err := do(t, idem.New(new(idem.MemoryStore)), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) { late = tx; return 1, nil })
		return idem.Response{Status: 201}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "after its phase has ended") {
			t.Errorf("recovered %v", v)
		}
	}()
	t.Errorf("got the key %s", late.Key("payments"))
}

// Storing a request costs a write unit for each KB, also if its handler refuses it.
func TestLargeRequestIsRefusedByDefault(t *testing.T) {
	t.Parallel()
	a := accepting()
	_, err := a.engine.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Body: make([]byte, defaults.MaxInput+1)}, answers(201))
	if !errors.Is(err, idem.ErrTooLarge) || len(a.mem.Records()) != 0 {
		t.Errorf("%v, %d records", err, len(a.mem.Records()))
	}
}
