package idem_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func TestTicketIsGoodForWhatItSaw(t *testing.T) {
	t.Parallel()
	settle := func(t *testing.T, a *operation) jobs.Ticket {
		t.Helper()
		a.leaseOver()
		if err := a.resume(t, a.engine, state.TicketFor(a.record(t)), completes); err != nil {
			t.Fatal(err)
		}
		return state.TicketFor(a.record(t))
	}
	giveUp := func(t *testing.T, a *operation) jobs.Ticket {
		t.Helper()
		a.leaseOver()
		if err := a.engine.MarkStuck(t.Context(), state.TicketFor(a.record(t)), "test"); err != nil {
			t.Fatal(err)
		}
		return state.TicketFor(a.record(t))
	}
	of := func(change func(*jobs.Ticket)) func(*testing.T, *operation) jobs.Ticket {
		return func(t *testing.T, a *operation) jobs.Ticket {
			t.Helper()
			a.leaseOver()
			ticket := state.TicketFor(a.record(t))
			change(&ticket)
			return ticket
		}
	}
	for name, tc := range map[string]struct {
		ticket func(*testing.T, *operation) jobs.Ticket
		want   error
	}{
		"another operation with the same version": {of(func(t *jobs.Ticket) { t.Owner = "another" }), jobs.ErrMoved},
		"written since":       {of(func(t *jobs.Ticket) { t.Ver-- }), jobs.ErrMoved},
		"no record":           {of(func(t *jobs.Ticket) { t.PK += "x" }), jobs.ErrMoved},
		"finished":            {settle, jobs.ErrMoved},
		"stuck":               {giveUp, jobs.ErrMoved},
		"still running":       {func(t *testing.T, a *operation) jobs.Ticket { t.Helper(); return state.TicketFor(a.record(t)) }, idem.ErrInFlight},
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
	if err := a.resume(t, a.engine, state.TicketFor(before), completes); !errors.Is(err, idem.ErrNotKept) {
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
	if err := a.resume(t, other, state.TicketFor(before), completes); !errors.Is(err, jobs.ErrMoved) {
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
		err := a.resume(t, dying, state.TicketFor(a.record(t)), func(context.Context, *idem.Request) (idem.Response, error) {
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
	ticket := state.TicketFor(a.record(t))
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
	err := a.resume(t, a.engine, state.TicketFor(a.record(t)), func(ctx context.Context, r *idem.Request) (idem.Response, error) {
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
	ticket := state.TicketFor(before)
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
			st := idemtest.Faulty(&a.mem, idemtest.At("Take", 1, idemtest.Fault{Err: store.ErrUnknown, Applied: applied}))
			engine := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", a.clock.Now, true })
			if err := a.resume(t, engine, state.TicketFor(a.record(t)), completes); err != nil {
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
	if err := a.resume(t, engine, state.TicketFor(a.record(t)), completes); err != nil {
		t.Error(err)
	}
	if rec := a.record(t); rec.State != store.Done || rec.Tries != 1 {
		t.Errorf("the record is %s after %d tries, held until %v", rec.State, rec.Tries, rec.Lease)
	}
}

// An engine first reads the record from a store that can't take over by a ticket.
func TestTicketsOnAPlainStore(t *testing.T) {
	t.Parallel()
	a := abandon(t, func(o *idem.Options) { o.Function = "charges" })
	option := func(name string) func(*idem.Options) {
		return func(o *idem.Options) { o.Now, o.Resumable, o.Function = a.clock.Now, true, name }
	}
	ticket := state.TicketFor(a.record(t))
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

// A resumable route completes every accepted request, whatever stopped the
// request and whether or not its client retries. Only a refusal frees the key.
func TestAcceptedIsCompletedWhateverStoppedIt(t *testing.T) {
	t.Parallel()
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting()
			survived(func() { _, _ = do(t, a.engine, stop.fn) })
			r := a.record(t)
			if !r.Lease.IsZero() || r.State != store.Open {
				t.Fatalf("state %q, lease until %v; want it open and given back", r.State, r.Lease)
			}
			if free := state.Freed(r) && r.Input == nil; free != stop.freed {
				t.Fatalf("keep %q, expires %v, request %v; want the key free: %v", r.Keep, r.Expires, r.Input, stop.freed)
			}
			err := a.resume(t, a.engine, state.TicketFor(r), completes)
			if stop.freed {
				if !errors.Is(err, jobs.ErrMoved) {
					t.Errorf("a completer gets %v for a key that is free", err)
				}
				return
			}
			if r := a.record(t); err != nil || r.State != store.Done || r.Response.Status != 201 || len(a.mem.Writes()) != 1 {
				t.Errorf("completed: %v, state %q, writes %v", err, r.State, written(&a.mem))
			}
		})
	}
}

// Without Resumable no completer finishes the operation: an error before the
// first commit frees the key.
func TestNotResumableGivesTheKeyBack(t *testing.T) {
	t.Parallel()
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting(func(o *idem.Options) { o.Resumable = false })
			survived(func() { _, _ = do(t, a.engine, stop.fn) })
			if r := a.record(t); !state.Freed(r) {
				t.Errorf("keep %q, expires %v", r.Keep, r.Expires)
			}
		})
	}
}

// A handler that never returns a storable answer is given up, with its last
// status as cause.
func TestUnstoredStatusIsTheCause(t *testing.T) {
	t.Parallel()
	const tries = 2
	a := accepting(func(o *idem.Options) { o.MaxTries = tries })
	busy := reserves(503)
	if res, err := do(t, a.engine, busy); err != nil || res.Status != 503 {
		t.Fatalf("%+v, %v", res, err)
	}
	const said = "the handler answered 503, which is not stored"
	if r := a.record(t); r.LastErr != said {
		t.Errorf("last error %q", r.LastErr)
	}
	var err error
	for range tries + 1 {
		err = a.resume(t, a.engine, state.TicketFor(a.record(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return busy(ctx) })
	}
	if r := a.record(t); !errors.Is(err, idem.ErrStuck) || r.State != store.Stuck || r.LastErr != "not completed in 2 tries: "+said {
		t.Errorf("%v, state %q: %s", err, r.State, r.LastErr)
	}
}

// A request that was accepted, and under which nothing was ever done, is let go: one
// client could have any number of them wait for people.
func TestNothingDoneIsLetGo(t *testing.T) {
	t.Parallel()
	const tries = 2
	a := accepting(func(o *idem.Options) { o.MaxTries = tries })
	down := func(context.Context, *idem.Request) (idem.Response, error) {
		return idem.Response{}, errors.New("bad deploy")
	}
	_, _ = do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return down(ctx, nil) })
	var err error
	for range tries + 1 {
		err = a.resume(t, a.engine, state.TicketFor(a.record(t)), down)
	}
	r := a.record(t)
	if !errors.Is(err, jobs.ErrMoved) || r.State != store.Open || !state.Freed(r) || r.Input != nil {
		t.Errorf("%v: state %q, keep %q, expires %v", err, r.State, r.Keep, r.Expires)
	}
	if res, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return completes(ctx, nil) }); err != nil || res.Status != 201 {
		t.Errorf("the key's next request: %+v, %v", res, err)
	}
}

// Nor does it wait for people: who asks for that hears that there is nothing to decide.
func TestNothingDoneIsNotMarkedStuck(t *testing.T) {
	t.Parallel()
	a := accepting()
	_, _ = do(t, a.engine, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("bad deploy") })
	err := a.engine.MarkStuck(t.Context(), state.TicketFor(a.record(t)), "nobody came")
	if r := a.record(t); !errors.Is(err, jobs.ErrMoved) || !state.Freed(r) {
		t.Errorf("%v: state %q, keep %q", err, r.State, r.Keep)
	}
}

// A handler that a completer runs may have the same wrapper: its request has no key of its
// own, since the completer has it.
func TestCompleterRunsAWrappedHandler(t *testing.T) {
	t.Parallel()
	a := abandon(t)
	a.leaseOver()
	err := a.resume(t, a.engine, state.TicketFor(a.record(t)), func(ctx context.Context, r *idem.Request) (idem.Response, error) {
		inner := *r
		inner.Key, inner.Header = "", nil
		res, err := a.engine.Serve(ctx, inner, func(ctx context.Context) (idem.Response, error) { return completes(ctx, r) })
		return res.Response, err
	})
	if rec := a.record(t); err != nil || rec.State != store.Done || rec.Response.Status != 201 {
		t.Errorf("%v, the record is %s with %+v", err, rec.State, rec.Response)
	}
}

// A completer reports the outcome of a ticket to its queue in time.
func TestEveryResumeIsOutInTime(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	for name, tc := range map[string]struct {
		verbs   []string
		reserve time.Duration
	}{
		"a take-over":            {[]string{"Take"}, defaults.Reserve},
		"a take-over and a read": {[]string{"Take", "Load"}, defaults.Reserve},
		"a stored request":       {[]string{"LoadBody"}, defaults.Reserve},
		"a finish":               {[]string{"Commit"}, defaults.Reserve / 5},
	} {
		for how, hangs := range map[string]bool{"refused": false, "hanging": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					a := abandon(t)
					a.leaseOver()
					store := idemtest.Faulty(&inputsElsewhere{&a.mem}, down(time.Now().Add(time.Hour), hangs, tc.verbs...))
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					begun := time.Now()
					e := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", a.clock.Now, true })
					res, err := e.Resume(ctx, state.TicketFor(a.record(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) {
						<-ctx.Done()
						return idem.Response{}, ctx.Err()
					})
					if left := limit - time.Since(begun); left < tc.reserve || err == nil || store.Calls(tc.verbs...) == 0 {
						t.Errorf("%v left, want %v: %+v, %v", left, tc.reserve, res, err)
					}
				})
			})
		}
	}
}

// inputsElsewhere keeps the bodies of requests outside of their records.
type inputsElsewhere struct{ *idem.MemoryStore }

func (s *inputsElsewhere) Load(ctx context.Context, pk string) (*store.Record, error) {
	r, err := s.MemoryStore.Load(ctx, pk)
	if r != nil && r.Input != nil {
		r.Input.Overflow = &store.Overflow{Count: 1}
	}
	return r, err
}

func (s *inputsElsewhere) Take(ctx context.Context, t store.Take) (*store.Record, bool, error) {
	r, err := s.Load(ctx, t.PK) // its request lies elsewhere: the engine commits
	return r, false, err
}

func (s *inputsElsewhere) LoadBody(context.Context, *store.Record) error { return nil }

// A completer in trouble runs nothing that it doesn't hold, and says why its ticket stays.
func TestTakeOverInTrouble(t *testing.T) {
	t.Parallel()
	lost, denied := idemtest.Fault{Err: store.ErrUnknown}, idemtest.Fault{Err: errors.New("access denied")}
	conflict, applied := idemtest.Fault{Err: idem.ErrConflict}, idemtest.Fault{Err: store.ErrUnknown, Applied: true}
	fails := func(verb string, n int, f idemtest.Fault) func(*bodied) idemtest.Plan {
		return func(*bodied) idemtest.Plan { return idemtest.At(verb, n, f) }
	}
	meets := func(change func(*store.Record)) func(*bodied) idemtest.Plan {
		return func(st *bodied) idemtest.Plan {
			return at("Commit", 1, func() { st.meddle(idemtest.Call{PK: one(st.MemoryStore).PK}, change) })
		}
	}
	for name, tt := range map[string]struct {
		plan  func(*bodied) idemtest.Plan
		late  time.Duration // it comes so much later
		body  func(*bodied)
		want  error
		runs  bool
		state store.State
	}{
		"no trouble":            {runs: true, state: store.Done},
		"the take-over is lost": {plan: fails("Take", 1, lost), runs: true, state: store.Done},
		"it conflicts":          {plan: fails("Take", 1, conflict), runs: true, state: store.Done},
		"it is denied":          {plan: fails("Take", 1, denied), want: idem.ErrUnavailable, state: store.Open},
		"nothing can be read": {plan: func(*bodied) idemtest.Plan {
			return each(idemtest.At("Take", 1, lost), idemtest.At("Load", 1, denied))
		}, want: idem.ErrUnavailable, state: store.Open},
		"its write is lost":          {plan: fails("Commit", 1, lost), runs: true, state: store.Done},
		"its write's answer is lost": {plan: fails("Commit", 1, applied), runs: true, state: store.Done},
		"its writes conflict":        {plan: fails("Commit", 0, conflict), want: idem.ErrUnavailable, state: store.Open},
		"somebody else is faster":    {plan: meets(func(r *store.Record) { r.Lease = time.Now().Add(time.Minute) }), want: jobs.ErrMoved, state: store.Open},
		"somebody has answered":      {plan: meets(func(r *store.Record) { *r = *state.Finished(r, store.Response{Status: 202}, time.Now()) }), want: jobs.ErrMoved, state: store.Done},
		"it has stuck":               {plan: meets(func(r *store.Record) { *r = *state.MadeStuck(r, time.Now(), "test") }), want: jobs.ErrMoved, state: store.Stuck},
		"the body can't be loaded":   {plan: fails("LoadBody", 1, denied), want: idem.ErrUnavailable, state: store.Open},
		"the body is gone":           {body: func(st *bodied) { clear(st.bodies) }, want: idem.ErrNotKept, state: store.Open},
		"the body is gone for long":  {body: func(st *bodied) { clear(st.bodies) }, late: 50 * time.Hour, want: idem.ErrStuck, state: store.Stuck},
		"the store loads no bodies":  {body: nil, plan: nil, late: -1, want: idem.ErrNotKept, state: store.Open},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				st, ticket := leaves(t)
				time.Sleep(10*time.Minute + max(0, tt.late)) //nolint:forbidigo // virtual
				if tt.body != nil {
					tt.body(st)
				}
				var plan idemtest.Plan
				if tt.plan != nil {
					plan = tt.plan(st)
				}
				s := store.Store(idemtest.Faulty(st, plan))
				if tt.late < 0 {
					s = plain{s}
				}
				ran := false
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				_, err := idem.New(s, callertest.Anybody, resumable).Resume(ctx, ticket, func(ctx context.Context, r *idem.Request) (idem.Response, error) {
					if ran = true; string(r.Body) != "a long body" {
						t.Errorf("the request is %q", r.Body)
					}
					return onePhase(ctx)
				})
				if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || ran != tt.runs {
					t.Errorf("got %v, ran %t; want %v, %t", err, ran, tt.want, tt.runs)
				}
				if r := one(st.MemoryStore); r.State != tt.state || r.State == store.Stuck && tt.late > 0 && !strings.Contains(r.LastErr, "the stored request is gone") {
					t.Errorf("the record is %s: %s; want it %s", r.State, r.LastErr, tt.state)
				}
			})
		})
	}
}

// A client that takes over brings the body along that the first attempt has not written.
func TestTakeOverBringsTheBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, _ := leaves(t)
		clear(st.bodies)
		time.Sleep(10 * time.Minute) //nolint:forbidigo // virtual
		r := ann
		r.Body = []byte("a long body")
		res, err := idem.New(st, callertest.Anybody, resumable).Do(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
			if len(st.bodies) != 1 {
				t.Errorf("%d bodies while the handler runs, want 1", len(st.bodies))
			}
			return onePhase(ctx)
		})
		if err != nil || res.Status != 201 {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}
