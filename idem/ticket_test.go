package idem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// abandoned is an operation whose attempt died in its handler, with a store and a
// clock for what follows.
type abandoned struct {
	mem    idem.MemoryStore
	clock  *idemtest.Clock
	engine *idem.Engine
}

// abandon lets one attempt die after the phase "one".
func abandon(t *testing.T, optFns ...func(*idem.Options)) *abandoned {
	t.Helper()
	a := &abandoned{clock: idemtest.NewClock()}
	optFns = append([]func(*idem.Options){func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", a.clock.Now, true }}, optFns...)
	a.engine = idem.New(&a.mem, append([]func(*idem.Options){callertest.Anybody}, optFns...)...)
	store := idemtest.Faulty(&a.mem, nil)
	_, err := do(t, idem.New(store, append([]func(*idem.Options){callertest.Anybody}, optFns...)...), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil })
		store.Crash()
		return idem.Response{}, errors.Join(err, errors.New("died"))
	})
	if err == nil {
		t.Fatal("no error")
	}
	return a
}

func (a *abandoned) record(t *testing.T) *store.Record {
	t.Helper()
	for _, r := range a.mem.Records() {
		return r
	}
	t.Fatal("no record")
	return nil
}

func (a *abandoned) leaseOver() { a.clock.Advance(time.Hour) }

func (a *abandoned) resume(t *testing.T, e *idem.Engine, ticket jobs.Ticket, fn func(context.Context, *idem.Request) (idem.Response, error)) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	_, err := e.Resume(ctx, ticket, fn)
	return err
}

func completes(ctx context.Context, _ *idem.Request) (idem.Response, error) {
	_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("again")); return 1, nil })
	return idem.Response{Status: 201}, err
}

func TestTicketIsGoodForWhatItSaw(t *testing.T) {
	t.Parallel()
	settle := func(t *testing.T, a *abandoned) jobs.Ticket {
		t.Helper()
		a.leaseOver()
		if err := a.resume(t, a.engine, jobs.TicketFor(a.record(t)), completes); err != nil {
			t.Fatal(err)
		}
		return jobs.TicketFor(a.record(t))
	}
	giveUp := func(t *testing.T, a *abandoned) jobs.Ticket {
		t.Helper()
		a.leaseOver()
		if err := a.engine.MarkStuck(t.Context(), jobs.TicketFor(a.record(t)), "test"); err != nil {
			t.Fatal(err)
		}
		return jobs.TicketFor(a.record(t))
	}
	of := func(change func(*jobs.Ticket)) func(*testing.T, *abandoned) jobs.Ticket {
		return func(t *testing.T, a *abandoned) jobs.Ticket {
			t.Helper()
			a.leaseOver()
			ticket := jobs.TicketFor(a.record(t))
			change(&ticket)
			return ticket
		}
	}
	for name, tc := range map[string]struct {
		ticket func(*testing.T, *abandoned) jobs.Ticket
		want   error
	}{
		"another operation with the same version": {of(func(t *jobs.Ticket) { t.Owner = "another" }), jobs.ErrMoved},
		"written since":       {of(func(t *jobs.Ticket) { t.Ver-- }), jobs.ErrMoved},
		"no record":           {of(func(t *jobs.Ticket) { t.PK += "x" }), jobs.ErrMoved},
		"finished":            {settle, jobs.ErrMoved},
		"stuck":               {giveUp, jobs.ErrMoved},
		"still running":       {func(t *testing.T, a *abandoned) jobs.Ticket { t.Helper(); return jobs.TicketFor(a.record(t)) }, idem.ErrInFlight},
		"the right one helps": {of(func(*jobs.Ticket) {}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := abandon(t)
			ticket := tc.ticket(t, a)
			before := a.record(t)
			err := a.resume(t, a.engine, ticket, func(ctx context.Context, r *idem.Request) (idem.Response, error) {
				if tc.want != nil {
					t.Error("the handler ran")
				}
				return completes(ctx, r)
			})
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if after := a.record(t); tc.want != nil && (after.Ver != before.Ver || after.Owner != before.Owner) {
				t.Error("the record was written")
			}
			if n := len(a.mem.Writes()); n != 1 {
				t.Errorf("%d writes, want one", n)
			}
		})
	}
}

func TestTicketWithoutARequestIsRefused(t *testing.T) {
	t.Parallel()
	a := abandon(t, func(o *idem.Options) { o.Resumable = false })
	a.leaseOver()
	before := a.record(t)
	if err := a.resume(t, a.engine, jobs.TicketFor(before), completes); !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("got %v", err)
	}
	if a.record(t).Ver != before.Ver {
		t.Error("it was taken over")
	}
}

func TestTicketOfAnotherNamespaceIsRefused(t *testing.T) {
	t.Parallel()
	a := abandon(t, func(o *idem.Options) { o.Namespace = "a" })
	a.leaseOver()
	before := a.record(t)
	other := idem.New(&a.mem, callertest.Anybody, func(o *idem.Options) { o.Function, o.Namespace, o.Now, o.Resumable = "f", "b", a.clock.Now, true })
	if err := a.resume(t, other, jobs.TicketFor(before), completes); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("got %v", err)
	}
	if a.record(t).Ver != before.Ver {
		t.Error("it was taken over")
	}
}

// The take-over counts a try that dies, so an operation that kills every process
// is given up in the end.
func TestTriesThatDieAreCounted(t *testing.T) {
	t.Parallel()
	const tries = 2
	limit := func(o *idem.Options) { o.MaxTries = tries }
	a := abandon(t, limit)
	runs := 0
	for range tries + 1 {
		a.leaseOver()
		st := idemtest.Faulty(&a.mem, nil)
		dying := idem.New(st, callertest.Anybody, limit, func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", a.clock.Now, true })
		err := a.resume(t, dying, jobs.TicketFor(a.record(t)), func(context.Context, *idem.Request) (idem.Response, error) {
			runs++
			st.Crash()
			return idem.Response{}, errors.New("died")
		})
		if runs == tries && errors.Is(err, idem.ErrStuck) {
			break
		}
	}
	if r := a.record(t); r.State != store.Stuck || runs != tries || r.Keep != store.KeepOpen {
		t.Errorf("state %q, keep %q after %d runs; want it stuck and kept after %d", r.State, r.Keep, runs, tries)
	}
	if _, err := do(t, a.engine, func(context.Context) (idem.Response, error) { t.Error("ran"); return idem.Response{}, nil }); !errors.Is(err, idem.ErrStuck) {
		t.Errorf("a client gets %v", err)
	}
}

// Two completers in one process are two attempts: the completer that slept past
// its lease can't release the other's lease.
func TestTwoCompletersAreTwoAttempts(t *testing.T) {
	t.Parallel()
	a := abandon(t)
	a.leaseOver()
	asleep, wake, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ticket := jobs.TicketFor(a.record(t))
	go func() {
		_, err := a.engine.Resume(context.WithoutCancel(t.Context()), ticket, func(context.Context, *idem.Request) (idem.Response, error) {
			close(asleep)
			<-wake
			return idem.Response{}, errors.New("provider is down")
		})
		over <- err
	}()
	<-asleep
	a.leaseOver()
	err := a.resume(t, a.engine, jobs.TicketFor(a.record(t)), func(ctx context.Context, r *idem.Request) (idem.Response, error) {
		before := a.record(t)
		close(wake)
		if err := <-over; err == nil {
			t.Error("the first completer says it is done")
		}
		if now := a.record(t); now.Ver != before.Ver || !now.Lease.Equal(before.Lease) {
			t.Errorf("version %d and lease until %v, were %d and %v: the holder was robbed", now.Ver, now.Lease, before.Ver, before.Lease)
		}
		return completes(ctx, r)
	})
	if err != nil || a.record(t).State != store.Done {
		t.Errorf("%v, state %q", err, a.record(t).State)
	}
}
