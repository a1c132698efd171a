package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// sleeps works for d regardless of its context, like code without a context.
func sleeps(d time.Duration, effects *int) func(context.Context) (idem.Response, error) {
	return func(context.Context) (idem.Response, error) {
		time.Sleep(d) //nolint:forbidigo // virtual
		*effects++
		return idem.Response{Status: 201, Body: []byte("charged")}, nil
	}
}

func shortLease(o *idem.Options) { o.Lease = 2500 * time.Millisecond }

// renewals counts the writes that change only the lease.
func renewals(seen *int) idemtest.Plan {
	return func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb == "Commit" && c.Commit.Next.Lease.After(c.Commit.Prev.Lease) {
			*seen++
		}
		return idemtest.Fault{}
	}
}

// If no platform kills a handler at its deadline (Lambda Managed Instances, a
// container, net/http), a handler that ignores its context continues and keeps
// its key: requests in that time wait, the effect happens once, and its answer is
// stored.
func TestHandlerThatOutlivesItsTimeKeepsItsKey(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt      func(*idem.Options)
		limit    time.Duration // 0: none
		wrap     func(handler func(context.Context) (idem.Response, error)) func(context.Context) (idem.Response, error)
		renewals int
	}{
		"a deadline":                {limit: 2500 * time.Millisecond, renewals: 1},
		"no deadline":               {opt: shortLease, renewals: 2},
		"a deadline, a short lease": {opt: shortLease, limit: 2500 * time.Millisecond, renewals: 2},
		"after a phase":             {limit: 2500 * time.Millisecond, wrap: afterPhase, renewals: 1},
		"and commits a phase then":  {limit: 2500 * time.Millisecond, wrap: beforePhase, renewals: 1},
		"and ends in Finish":        {limit: 2500 * time.Millisecond, wrap: beforeFinish, renewals: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mem idem.MemoryStore
				effects, seen := 0, 0
				opt := tc.opt
				if opt == nil {
					opt = func(*idem.Options) {}
				}
				e := idem.New(idemtest.Faulty(&mem, renewals(&seen)), callertest.Anybody, opt)
				others := idem.New(&mem, callertest.Anybody)
				handler := sleeps(7300*time.Millisecond, &effects)
				if tc.wrap != nil {
					handler = tc.wrap(handler)
				}
				var first idem.Result
				var wg sync.WaitGroup
				wg.Go(func() {
					var err error
					if first, err = inTime(t, tc.limit, e, handler); err != nil || first.Status != 201 || first.Expires.IsZero() {
						t.Errorf("got %+v, %v; want it stored", first, err)
					}
				})
				for range 6 { // until its seventh second
					time.Sleep(1100 * time.Millisecond) //nolint:forbidigo // virtual
					if tc.renewals > 0 {
						if res, err := inTime(t, 2500*time.Millisecond, others, never(t)); !errors.Is(err, idem.ErrInFlight) {
							t.Errorf("a retry gets %+v, %v", res, err)
						}
					}
				}
				wg.Wait()
				if res, err := inTime(t, time.Minute, others, never(t)); err != nil || !res.Replayed || string(res.Body) != string(first.Body) {
					t.Errorf("a late retry gets %+v, %v", res, err)
				}
				if effects != 1 || seen != tc.renewals {
					t.Errorf("%d effects, %d renewals; want 1 and %d", effects, seen, tc.renewals)
				}
			})
		})
	}
}

func afterPhase(handler func(context.Context) (idem.Response, error)) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		if _, err := onePhase(ctx); err != nil {
			return idem.Response{}, err
		}
		return handler(ctx)
	}
}

func beforePhase(handler func(context.Context) (idem.Response, error)) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		resp, _ := handler(ctx)
		_, err := onePhase(ctx)
		return resp, err
	}
}

func beforeFinish(handler func(context.Context) (idem.Response, error)) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(ctx context.Context, _ *idem.Tx) (idem.Response, error) { return handler(ctx) })
	}
}

// A handler that works on after its answer is stored holds nothing any more.
func TestAnsweredOperationIsNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mem idem.MemoryStore
		st := idemtest.Faulty(&mem, nil)
		if _, err := inTime(t, 2500*time.Millisecond, idem.New(st, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
			res, err := idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
			time.Sleep(10 * time.Second) //nolint:forbidigo // virtual
			return res, err
		}); err != nil {
			t.Error(err)
		}
		if r := one(&mem); st.Calls() != 2 || r.State != store.Done || !r.Lease.IsZero() {
			t.Errorf("%d calls, lease until %v; want the claim and the finish", st.Calls(), r.Lease)
		}
	})
}

// A request that ends in time needs no renewal, however late it ends.
func TestRequestInTimeIsNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		effects, seen := 0, 0
		store := idemtest.Faulty(new(idem.MemoryStore), renewals(&seen))
		if _, err := inTime(t, 2500*time.Millisecond, idem.New(store, callertest.Anybody), sleeps(2400*time.Millisecond, &effects)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour) //nolint:forbidigo // virtual
		if seen != 0 || store.Calls() != 2 {
			t.Errorf("%d renewals, %d calls; want the claim and the finish", seen, store.Calls())
		}
	})
}

// A handler that hangs forever doesn't keep its key forever.
func TestRenewalsEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sleeps bool          // past its deadline
		held   time.Duration // minimum, from the beginning; at most a lease's margin longer
	}{
		"a process that is awake": {false, 10*time.Second + defaults.RenewFor},
		"a process that sleeps":   {true, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := idem.New(new(idem.MemoryStore), callertest.Anybody)
				effects := 0
				var wg sync.WaitGroup
				wg.Go(func() {
					ctx := t.Context()
					if tc.sleeps {
						ctx = asleep.With(ctx)
					}
					ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
					defer cancel()
					res, err := e.Do(ctx, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, sleeps(time.Hour, &effects))
					if err != nil || !res.Replayed || string(res.Body) != "x" {
						t.Errorf("the hanging one gets %+v, %v; want the other's answer", res, err)
					}
				})
				time.Sleep(tc.held) //nolint:forbidigo // virtual
				if _, err := inTime(t, 0, e, never(t)); !errors.Is(err, idem.ErrInFlight) {
					t.Errorf("got %v while the lease was to be held", err)
				}
				time.Sleep(defaults.LeaseMargin + time.Millisecond) //nolint:forbidigo // virtual
				if res, err := inTime(t, 0, e, answers(201)); err != nil || res.Replayed {
					t.Errorf("got %+v, %v after the bound", res, err)
				}
				wg.Wait()
			})
		})
	}
}

// A renewal that finds another holder informs the handler as far as possible: no
// further phase begins, and the handler's return value changes nothing.
func TestRenewalThatIsFencedEndsTheOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mem idem.MemoryStore
		var asleep atomic.Bool // the process
		st := idemtest.Faulty(&mem, func(context.Context, idemtest.Call) idemtest.Fault {
			if asleep.Load() {
				return idemtest.Fault{Err: store.ErrUnknown}
			}
			return idemtest.Fault{}
		})
		order := func(ctx context.Context) error { // so that the call writes nothing before it begins
			_, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (int, error) { return 7, nil })
			return err
		}
		lost, called := 0, false
		e := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.Hooks.LeaseLost = func(context.Context, idem.Event) { lost++ } })
		res, err := inTime(t, 2500*time.Millisecond, e, func(ctx context.Context) (idem.Response, error) {
			if err := order(ctx); err != nil {
				return idem.Response{}, err
			}
			asleep.Store(true)
			time.Sleep(10 * time.Second) //nolint:forbidigo // virtual
			if res, err := inTime(t, 0, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, order(ctx)
			}); err != nil {
				t.Errorf("the successor gets %+v, %v", res, err)
			}
			asleep.Store(false)
			time.Sleep(10 * time.Second) //nolint:forbidigo // virtual
			_, err := idem.Foreign(context.WithoutCancel(ctx), "charge", func(context.Context, *idem.Tx) (int, error) {
				called = true
				return 1, nil
			})
			if !errors.Is(err, idem.ErrLeaseLost) {
				t.Errorf("a phase gets %v", err)
			}
			return idem.Response{Status: 202}, nil
		})
		if called || err != nil || !res.Replayed || res.Status != 201 || lost != 1 {
			t.Errorf("got %+v, %v; called: %t, told %d times", res, err, called, lost)
		}
	})
}

// A commit that finds another holder ends the handler's context, with the cause.
func TestLostLeaseEndsTheHandlersContext(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
	res, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
		clock.Advance(time.Hour)
		if _, err := do(t, e, answers(201)); err != nil {
			t.Error(err)
		}
		_, err := onePhase(ctx)
		if cause := context.Cause(ctx); !errors.Is(cause, idem.ErrLeaseLost) || !errors.Is(err, idem.ErrLeaseLost) {
			t.Errorf("the phase gets %v, the context's cause is %v", err, cause)
		}
		return idem.Response{}, err
	})
	if err != nil || !res.Replayed {
		t.Errorf("%+v, %v", res, err)
	}
}

// Renewals and the handler's own commits are writes of one owner, in sequence:
// neither fences the other, whatever the store does with their acknowledgements.
func TestRenewalsAndPhasesGoTogether(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]idemtest.Fault{
		"slow":                            {},
		"renewals' answers lost":          {Err: store.ErrUnknown, Applied: true},
		"renewals lost":                   {Err: store.ErrUnknown},
		"renewals refused":                {Err: errors.New("access denied")},
		"applied, and said to be refused": {Err: errors.New("access denied"), Applied: true},
	} {
		for _, after := range []time.Duration{0, 300 * time.Millisecond, 700 * time.Millisecond, 1100 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s, %v apart", name, after), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var mem idem.MemoryStore
					lost, struck := 0, 0
					var busy atomic.Bool
					st := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
						if busy.Swap(true) {
							t.Error("a renewal and a commit are under way together")
						}
						time.Sleep(250 * time.Millisecond) //nolint:forbidigo // virtual
						busy.Store(false)
						if c.Verb == "Commit" && c.Commit.Next.State == store.Open && c.Commit.Next.Lease.Before(c.Commit.Prev.Lease) {
							t.Error("a commit takes back a renewal")
						}
						if c.Verb == "Commit" && c.Commit.Next.Lease.After(c.Commit.Prev.Lease) {
							if struck++; struck%2 == 1 {
								return fault
							}
						}
						if c.Verb == "Load" && struck%2 == 1 && fault.Err != nil {
							return idemtest.Fault{Err: errors.New("connection refused")}
						}
						return idemtest.Fault{}
					})
					e := idem.New(st, callertest.Anybody, func(o *idem.Options) {
						o.Lease, o.Hooks.LeaseLost = time.Second, func(context.Context, idem.Event) { lost++ }
					})
					const phases = 20
					res, err := inTime(t, time.Second, e, func(ctx context.Context) (idem.Response, error) {
						time.Sleep(time.Second) //nolint:forbidigo // virtual
						for i := range phases {
							time.Sleep(after) //nolint:forbidigo // virtual
							if _, err := idem.Atomic(ctx, fmt.Sprint(i), func(context.Context, *idem.Tx) (int, error) { return i, nil }); err != nil {
								return idem.Response{}, err
							}
						}
						return idem.Response{Status: 201}, nil
					})
					if err != nil || res.Status != 201 || res.Expires.IsZero() || lost != 0 || struck == 0 {
						t.Errorf("%+v, %v; the lease lost %d times, %d renewals", res, err, lost, struck)
					}
					if r := one(&mem); len(r.Phases) != phases || r.State != store.Done {
						t.Errorf("%d phases, state %q", len(r.Phases), r.State)
					}
				})
			})
		}
	}
}

// A handler that refuses the request after a renewal frees the key, like a
// handler that refuses in time: the renewal adds nothing that must be kept. Other
// contents still keep the record.
func TestRefusedAfterARenewal(t *testing.T) {
	t.Parallel()
	slowly := func(answer idem.Response, err error) func(context.Context) (idem.Response, error) {
		return func(context.Context) (idem.Response, error) {
			time.Sleep(7300 * time.Millisecond) //nolint:forbidigo // virtual
			return answer, err
		}
	}
	refused := slowly(idem.Response{Status: 400}, nil)
	resumable := func(o *idem.Options) { o.Function, o.Resumable = "f", true }
	for name, tc := range map[string]struct {
		opt   func(*idem.Options)
		h     func(context.Context) (idem.Response, error)
		fault idemtest.Fault // of renewals
		takes bool           // the attempt took the record over
		frees bool
	}{
		"a 400":                     {h: refused, frees: true},
		"an error":                  {h: slowly(idem.Response{}, errors.New("down")), frees: true},
		"a 400, Resumable":          {opt: resumable, h: refused, frees: true},
		"an error, Resumable":       {opt: resumable, h: slowly(idem.Response{}, errors.New("down"))},
		"renewals' answers lost":    {h: refused, fault: idemtest.Fault{Err: store.ErrUnknown, Applied: true}, frees: true},
		"an earlier attempt died":   {h: refused, takes: true, frees: true},
		"a call's outcome is open":  {h: calling(refused)},
		"a phase is committed":      {h: afterPhase(refused)},
		"a phase committed it then": {h: beforePhase(refused)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mem idem.MemoryStore
				seen := 0
				count := renewals(&seen)
				st := idemtest.Faulty(&mem, func(ctx context.Context, c idemtest.Call) idemtest.Fault {
					before := seen
					if count(ctx, c); seen > before && c.Commit.Prev.Owner == c.Commit.Next.Owner {
						return tc.fault
					}
					return idemtest.Fault{}
				})
				opts := []func(*idem.Options){shortLease}
				if tc.opt != nil {
					opts = append(opts, tc.opt)
				}
				request := func(body string) idem.Request {
					return idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Body: []byte(body)}
				}
				if tc.takes {
					dying := idemtest.Faulty(&mem, nil)
					_, _ = idem.New(dying, append([]func(*idem.Options){callertest.Anybody}, opts...)...).Do(t.Context(), request("1"), func(context.Context) (idem.Response, error) {
						dying.Crash()
						return idem.Response{}, errors.New("died")
					})
					time.Sleep(time.Hour) //nolint:forbidigo // virtual
				}
				_, _ = idem.New(st, append([]func(*idem.Options){callertest.Anybody}, opts...)...).Do(t.Context(), request("1"), tc.h)
				if seen == 0 {
					t.Fatal("the lease was not renewed")
				}
				res, err := idem.New(&mem, append([]func(*idem.Options){callertest.Anybody}, opts...)...).Do(t.Context(), request("corrected"), func(context.Context) (idem.Response, error) {
					return idem.Response{Status: 201}, nil
				})
				if tc.frees && (err != nil || res.Status != 201) || !tc.frees && !errors.Is(err, idem.ErrMismatch) {
					t.Errorf("a corrected request gets %d, %v; want the key freed: %t", res.Status, err, tc.frees)
				}
			})
		})
	}
}

// calling runs handler inside a call to another system that fails, and returns
// its answer.
func calling(handler func(context.Context) (idem.Response, error)) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		var resp idem.Response
		_, _ = idem.Foreign(ctx, "charge", func(ctx context.Context, tx *idem.Tx) (int, error) {
			tx.Key("payments")
			resp, _ = handler(ctx)
			return 0, errors.New("no answer")
		})
		return resp, nil
	}
}

// An answer that was stored after all, though its attempt got an error, is final:
// no renewal and no release follows it.
func TestRenewalLeavesAnAnswerAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mem idem.MemoryStore
		store := idemtest.Faulty(&mem, idemtest.At("Commit", 1, idemtest.Fault{Err: errors.New("access denied"), Applied: true}))
		res, err := inTime(t, 2500*time.Millisecond, idem.New(store, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
			resp, err := finishes(ctx)
			time.Sleep(10 * time.Second) //nolint:forbidigo // virtual
			return resp, err
		})
		if err != nil || !res.Replayed || res.Status != 201 || one(&mem).Ver != 2 || store.Calls("Commit") < 3 {
			t.Errorf("%+v, %v; version %d after %d commits", res, err, one(&mem).Ver, store.Calls("Commit"))
		}
	})
}

// The handler's return waits for a running renewal, and no renewal follows.
func TestNoRenewalOutlivesItsHandler(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{"an answer": nil, "a failure": errors.New("down")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var renewing atomic.Bool
				store := idemtest.Faulty(new(idem.MemoryStore), func(_ context.Context, c idemtest.Call) idemtest.Fault {
					switch {
					case c.Verb != "Commit":
					case c.Commit.Next.Lease.After(c.Commit.Prev.Lease):
						renewing.Store(true)
						time.Sleep(800 * time.Millisecond) //nolint:forbidigo // virtual
						renewing.Store(false)
					case renewing.Load():
						t.Error("a renewal is under way when its attempt ends")
					}
					return idemtest.Fault{}
				})
				// The renewal begins half a margin after the deadline: the handler returns in the middle of it.
				_, err := inTime(t, 2500*time.Millisecond, idem.New(store, callertest.Anybody), func(context.Context) (idem.Response, error) {
					time.Sleep(3900 * time.Millisecond) //nolint:forbidigo // virtual
					return idem.Response{Status: 201}, fails
				})
				if !errors.Is(err, fails) || store.Calls("Commit") != 2 {
					t.Errorf("%v after %d commits", err, store.Calls("Commit"))
				}
				time.Sleep(time.Hour) //nolint:forbidigo // virtual
				if n := store.Calls(); n != 3 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
}

// An answer that must be made again, after a renewal whose acknowledgement was lost, uses the
// body that is already stored.
func TestBodyIsStoredOnceForAnAnswerMadeAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, effects := elsewhereStore(), 0
		lost := idemtest.Faulty(st, func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Commit" && c.Commit.Next.Response == nil {
				return idemtest.Fault{Err: errors.New("its answer is lost"), Applied: true}
			}
			return idemtest.Fault{}
		})
		res, err := inTime(t, 2500*time.Millisecond, idem.New(lost, callertest.Anybody, shortLease), func(ctx context.Context) (idem.Response, error) {
			resp, err := sleeps(4*time.Second, &effects)(ctx)
			resp.Body = bytes.Clone(large)
			return resp, err
		})
		if err != nil || res.Status != 201 || res.Expires.IsZero() || len(st.bodies) != 1 || st.again != 0 {
			t.Errorf("got %+v, %v, %d bodies, %d written again; want one", res, err, len(st.bodies), st.again)
		}
	})
}
