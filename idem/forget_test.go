package idem_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// underOperators runs do while an attempt holds an operation that an attempt holds, with committed work and a job.
func underOperators(t *testing.T, do func(e *idem.Engine, rec func() *store.Record)) {
	t.Helper()
	mem := &idem.MemoryStore{}
	e := idem.New(mem, callertest.Anybody, func(o *idem.Options) { o.CallsOut = true })
	rec := func() *store.Record {
		for _, r := range mem.Records() {
			return r
		}
		return nil
	}
	_, _ = e.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST"}, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob("mail", 1))
			return 1, nil
		})
		if err != nil {
			t.Error(err)
		}
		do(e, rec)
		return idem.Response{Status: 201}, nil
	})
}

// A lease is ended only as it was seen, and what its attempt may have called is in doubt.
func TestEndLease(t *testing.T) {
	t.Parallel()
	underOperators(t, func(e *idem.Engine, rec func() *store.Record) {
		seen := jobs.TicketFor(rec())
		for _, moved := range []jobs.Ticket{{PK: seen.PK, Owner: seen.Owner, Ver: seen.Ver - 1}, {PK: seen.PK, Owner: "another", Ver: seen.Ver}} {
			if err := e.EndLease(t.Context(), moved, "jane"); !errors.Is(err, jobs.ErrMoved) {
				t.Errorf("got %v for a record that has moved", err)
			}
		}
		if err := e.EndLease(t.Context(), seen, "jane"); err != nil {
			t.Fatal(err)
		}
		r := rec()
		if !r.Lease.IsZero() || r.Owner == seen.Owner || !slices.Equal(r.Doubts, []string{"?"}) || len(r.Settled) != 1 || r.Settled[0].By != "jane" ||
			r.Settled[0].From != "held" || r.Settled[0].To != "released" {
			t.Errorf("got %+v", r)
		}
		if err := e.EndLease(t.Context(), jobs.TicketFor(r), "jane"); !errors.Is(err, jobs.ErrMoved) {
			t.Errorf("got %v for a record that nobody holds", err)
		}
	})
}

// A key is freed only with the losses that were accepted.
func TestForget(t *testing.T) {
	t.Parallel()
	underOperators(t, func(e *idem.Engine, rec func() *store.Record) {
		for _, accepted := range []idem.Loss{{}, {Held: true, Work: true}, {Held: true, Jobs: true}, {Work: true, Jobs: true}} {
			if _, err := e.Forget(t.Context(), jobs.TicketFor(rec()), "jane", accepted); !errors.Is(err, jobs.ErrMoved) {
				t.Errorf("%+v: got %v", accepted, err)
			}
		}
		seen := jobs.TicketFor(rec())
		id := rec().ID
		if lost, err := e.Forget(t.Context(), seen, "jane", idem.Loss{Held: true, Work: true, Jobs: true}); err != nil || !slices.Equal(lost, []string{id + ".0.0"}) {
			t.Fatal(lost, err)
		}
		if r := rec(); r.Jobs != nil || r.Settled[0].What != "forget "+id+", with its jobs 0.0" || r.Owner == seen.Owner || r.Keep != store.KeepFreed || len(r.Settled) != 1 || r.Settled[0].To != "free" {
			t.Errorf("got %+v", r)
		}
		res, err := e.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST"}, func(context.Context) (idem.Response, error) { return idem.Response{Status: 202}, nil })
		if err != nil || res.Status != 202 || res.Replayed {
			t.Errorf("a request with the key got %+v, %v", res, err)
		}
	})
}
