package idem_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func refuses(t *testing.T) func(context.Context, *idem.Request) (idem.Response, error) {
	t.Helper()
	return func(context.Context, *idem.Request) (idem.Response, error) {
		t.Error("the handler ran")
		return idem.Response{Status: 404}, nil
	}
}

// Only the handler named by a record completes its operation, whoever sends the
// ticket to whom. Any other handler changes nothing, and the ticket stays valid.
func TestTicketOfAnotherHandlerIsRefused(t *testing.T) { //nolint:tparallel // one record, in this order
	t.Parallel()
	function := func(name string) func(*idem.Options) { return func(o *idem.Options) { o.Function = name } }
	a := abandon(t, function("charges"))
	a.leaseOver()
	before := a.record(t)
	if before.Handler != (store.HandlerID{Function: "charges"}) {
		t.Fatalf("the record names the %v", before.Handler)
	}
	ticket := jobs.TicketFor(before)
	refunds := idem.New(&a.mem, callertest.Anybody, function("refunds"), func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", a.clock.Now, true })
	for name, as := range map[string]struct {
		engine *idem.Engine
		opt    func(*idem.ResumeOptions)
	}{
		"another function": {refunds, func(*idem.ResumeOptions) {}},
		"another handler of it": {a.engine, func(o *idem.ResumeOptions) {
			o.Handlers = []store.HandlerID{{Name: "POST /refunds"}}
		}},
		"another tenant's process": {a.engine, func(o *idem.ResumeOptions) { o.Tenant = "jane" }},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := as.engine.Resume(t.Context(), ticket, refuses(t), as.opt); !errors.Is(err, jobs.ErrNotMine) {
				t.Errorf("got %v, want ErrNotMine", err)
			}
			if diff := cmp.Diff(before, a.record(t)); diff != "" {
				t.Errorf("the record was written (-before +after):\n%s", diff)
			}
		})
	}
	for name, as := range map[string]func(*idem.ResumeOptions){
		"under its former name": func(o *idem.ResumeOptions) {
			o.Handlers = []store.HandlerID{{Name: "POST /refunds"}, {Function: "charges"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := refunds.Resume(t.Context(), ticket, func(ctx context.Context, r *idem.Request) (idem.Response, error) {
				if r.Handler != before.Handler {
					t.Errorf("the handler is told that it is the %v", r.Handler)
				}
				return completes(ctx, r)
			}, as)
			if err != nil || a.record(t).State != store.Done {
				t.Errorf("got %v, state %s", err, a.record(t).State)
			}
		})
	}
}

// A client's retry may reach any handler. From then on the operation belongs to
// that handler: the handler before may be gone.
func TestTakeOverByAClientNamesItsHandler(t *testing.T) {
	t.Parallel()
	a := abandon(t, func(o *idem.Options) { o.Function = "charges" })
	a.leaseOver()
	store := idemtest.Faulty(&a.mem, nil)
	renamed := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Function, o.Now, o.Resumable = "payments", a.clock.Now, true })
	if _, err := do(t, renamed, func(context.Context) (idem.Response, error) {
		store.Crash()
		return idem.Response{}, errors.New("died")
	}); err == nil {
		t.Fatal("no error")
	}
	if got := a.record(t); got.Handler.Function != "payments" || got.Ver < 3 {
		t.Errorf("version %d is of the %v", got.Ver, got.Handler)
	}
}

// The acknowledgement of the take-over is lost, applied or not: the operation is
// completed once, and no try is counted twice.
func TestTakeOverWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	for name, applied := range map[string]bool{"applied": true, "not applied": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := abandon(t)
			a.leaseOver()
			st := idemtest.Faulty(&a.mem, idemtest.At(idemtest.Take, 1, idemtest.Fault{Err: store.ErrUnknown, Applied: applied}))
			engine := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", a.clock.Now, true })
			if err := a.resume(t, engine, jobs.TicketFor(a.record(t)), completes); err != nil {
				t.Fatal(err)
			}
			if r := a.record(t); r.State != store.Done || r.Tries != 1 {
				t.Errorf("state %s after %d tries", r.State, r.Tries)
			}
		})
	}
}

// resent is a store whose client repeats each take-over by itself, like an SDK
// after a lost answer.
type resent struct{ *idem.MemoryStore }

func (r resent) Take(ctx context.Context, t store.Take) (*store.Record, bool, error) {
	if _, _, err := r.MemoryStore.Take(ctx, t); err != nil {
		return nil, false, err
	}
	return r.MemoryStore.Take(ctx, t)
}

// The record that refuses the second copy is the result of the first copy.
func TestTakeOverThatWasSentTwiceIsOurs(t *testing.T) {
	t.Parallel()
	a := abandon(t)
	a.leaseOver()
	engine := idem.New(resent{&a.mem}, callertest.Anybody, func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", a.clock.Now, true })
	if err := a.resume(t, engine, jobs.TicketFor(a.record(t)), completes); err != nil {
		t.Error(err)
	}
	if rec := a.record(t); rec.State != store.Done || rec.Tries != 1 {
		t.Errorf("the record is %s after %d tries, held until %v", rec.State, rec.Tries, rec.Lease)
	}
}

// plain is a store without optional parts.
type plain struct{ store.Store }

// An engine first reads the record from a store that can't take over by a ticket.
func TestTicketsOnAPlainStore(t *testing.T) {
	t.Parallel()
	a := abandon(t, func(o *idem.Options) { o.Function = "charges" })
	option := func(name string) func(*idem.Options) {
		return func(o *idem.Options) { o.Now, o.Resumable, o.Function = a.clock.Now, true, name }
	}
	ticket := jobs.TicketFor(a.record(t))
	if err := a.resume(t, idem.New(plain{&a.mem}, callertest.Anybody, option("charges")), ticket, refuses(t)); !errors.Is(err, idem.ErrInFlight) {
		t.Errorf("before the lease is over: %v", err)
	}
	a.leaseOver()
	before := a.record(t)
	if err := a.resume(t, idem.New(plain{&a.mem}, callertest.Anybody, option("refunds")), ticket, refuses(t)); !errors.Is(err, jobs.ErrNotMine) {
		t.Errorf("another function: %v", err)
	}
	if diff := cmp.Diff(before, a.record(t)); diff != "" {
		t.Errorf("the record was written (-before +after):\n%s", diff)
	}
	if err := a.resume(t, idem.New(plain{&a.mem}, callertest.Anybody, option("charges")), ticket, completes); err != nil {
		t.Error(err)
	}
	if err := a.resume(t, idem.New(plain{&a.mem}, callertest.Anybody, option("charges")), ticket, refuses(t)); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("the ticket again: %v", err)
	}
}

// On Lambda the function's name is the default, without any setting.
func TestFunctionIsNamedByItsPlatform(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "orders")
	var st idem.MemoryStore
	if _, err := do(t, idem.New(&st, callertest.Anybody), func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }); err != nil {
		t.Fatal(err)
	}
	for _, r := range st.Records() {
		if r.Handler != (store.HandlerID{Function: "orders"}) {
			t.Errorf("the record names the %v", r.Handler)
		}
	}
}
