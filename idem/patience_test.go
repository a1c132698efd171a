package idem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// down is a plan for a table that is unreachable for a while: each call hangs
// until its context ends, or is refused at once.
func down(until time.Time, hangs bool, verbs ...idemtest.Verb) idemtest.Plan {
	return func(ctx context.Context, c idemtest.Call) idemtest.Fault {
		struck := len(verbs) == 0
		for _, v := range verbs {
			struck = struck || v == c.Verb
		}
		if !struck || !time.Now().Before(until) {
			return idemtest.Fault{}
		}
		if hangs {
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(until)):
			}
		}
		return idemtest.Fault{Err: store.ErrUnknown}
	}
}

// inTime runs fn under a deadline, like an invocation; 0 means no deadline.
func inTime(t *testing.T, limit time.Duration, e *idem.Engine, fn func(context.Context) (idem.Response, error)) (idem.Result, error) {
	t.Helper()
	return requestInTime(t, limit, e, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, fn)
}

func requestInTime(t *testing.T, limit time.Duration, e *idem.Engine, r idem.Request, fn func(context.Context) (idem.Response, error)) (idem.Result, error) {
	t.Helper()
	ctx := t.Context()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return e.Do(ctx, r, fn)
}

// A handler has charged a customer when the table becomes unreachable for most of
// the invocation: the answer is stored as soon as the table is back.
func TestFinishHasAllTheTimeThereIs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limit, away time.Duration // limit 0: a context without a deadline
		hangs       bool
		write       func(ctx context.Context) (idem.Response, error)
	}{
		"a plain answer":                 {limit: time.Minute, away: 55 * time.Second},
		"a plain answer, packets hang":   {limit: time.Minute, away: 55 * time.Second, hangs: true},
		"a plain answer, no deadline":    {away: 25 * time.Second},
		"a phase's commit":               {limit: time.Minute, away: 55 * time.Second, write: onePhase},
		"a phase's commit, packets hang": {limit: time.Minute, away: 55 * time.Second, hangs: true, write: onePhase},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mem idem.MemoryStore
				store := idemtest.Faulty(&mem, nil)
				e, effects := idem.New(store, callertest.Anybody), 0
				handler := func(ctx context.Context) (idem.Response, error) {
					effects++
					store.Reset(down(time.Now().Add(tc.away), tc.hangs))
					if tc.write != nil {
						return tc.write(ctx)
					}
					return idem.Response{Status: 201, Body: []byte("charged")}, nil
				}
				begun := time.Now()
				res, err := inTime(t, tc.limit, e, handler)
				if err != nil || res.Status != 201 || res.Expires.IsZero() {
					t.Errorf("after %v: %+v, %v; want it stored", time.Since(begun), res, err)
				}
				time.Sleep(time.Minute) //nolint:forbidigo // virtual
				if res, err := inTime(t, tc.limit, e, handler); err != nil || !res.Replayed || effects != 1 {
					t.Errorf("the retry gets %+v, %v after %d effects", res, err, effects)
				}
			})
		})
	}
}

func onePhase(ctx context.Context) (idem.Response, error) {
	if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
		return idem.Response{}, err
	}
	return idem.Response{Status: 201}, nil
}

// One packet that hangs leaves time for another packet.
func TestOneCommitNeverTakesAllTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := idemtest.Faulty(new(idem.MemoryStore), func(ctx context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == idemtest.Commit && c.N == 1 {
				<-ctx.Done()
				return idemtest.Fault{Err: store.ErrUnknown}
			}
			return idemtest.Fault{}
		})
		res, err := inTime(t, 10*time.Second, idem.New(st, callertest.Anybody), answers(201))
		if err != nil || res.Expires.IsZero() || st.Calls(idemtest.Commit) != 2 {
			t.Errorf("%+v, %v after %d commits; want it stored by the second", res, err, st.Calls(idemtest.Commit))
		}
	})
}

// Whatever the table does, the answer is sent before the invocation is cut off: a
// fifth of the reserve before the end, or the whole reserve if the handler has
// not begun.
func TestEveryAnswerIsOutInTime(t *testing.T) {
	t.Parallel()
	const limit, begun, notBegun = 10 * time.Second, defaults.Reserve / 5, defaults.Reserve
	stored := func(ctx context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }
	// A handler that observes its context uses all of its time.
	late := func(then func(context.Context) (idem.Response, error)) func(context.Context) (idem.Response, error) {
		return func(ctx context.Context) (idem.Response, error) {
			<-ctx.Done()
			return then(ctx)
		}
	}
	fails := func(ctx context.Context) (idem.Response, error) { return idem.Response{}, ctx.Err() }
	waits := func(o *idem.Options) { o.InFlight, o.WaitMax = idem.InFlightWait, time.Hour }
	for name, tc := range map[string]struct {
		opt     func(*idem.Options)
		repeats bool                                                  // the request is read before its claim
		before  func(*testing.T, *idem.Engine, *idemtest.FaultyStore) // prepares the table
		verbs   []idemtest.Verb                                       // affected calls; none = all
		handler func(context.Context) (idem.Response, error)
		reserve time.Duration
	}{
		"a claim":                     {verbs: []idemtest.Verb{idemtest.Claim}, reserve: notBegun},
		"a claim, and the look at it": {reserve: notBegun},
		"a look before the claim":     {repeats: true, reserve: notBegun},
		"a look that takes over":      {repeats: true, before: died, verbs: []idemtest.Verb{idemtest.Commit}, reserve: notBegun},
		"a take-over":                 {before: died, verbs: []idemtest.Verb{idemtest.Commit, idemtest.Load}, reserve: notBegun},
		"waiting":                     {opt: waits, before: held, verbs: []idemtest.Verb{idemtest.Load}, reserve: notBegun},
		"a replay's body":             {before: elsewhere, verbs: []idemtest.Verb{idemtest.LoadBody}, reserve: begun},
		"a finish":                    {verbs: []idemtest.Verb{idemtest.Commit, idemtest.Load}, handler: late(stored), reserve: begun},
		"a finish, an answer lost":    {verbs: []idemtest.Verb{idemtest.Commit}, handler: late(stored), reserve: begun},
		"a phase":                     {verbs: []idemtest.Verb{idemtest.Commit, idemtest.Load}, handler: late(onePhase), reserve: begun},
		"a release":                   {verbs: []idemtest.Verb{idemtest.Commit, idemtest.Load}, handler: late(fails), reserve: begun},
		"a call that is not repeated": {verbs: []idemtest.Verb{idemtest.Commit, idemtest.Load}, handler: late(oneCall), reserve: begun},
	} {
		for how, hangs := range map[string]bool{"refused": false, "hanging": true} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store := idemtest.Faulty(new(bodiesElsewhere), nil)
					opt := tc.opt
					if opt == nil {
						opt = func(*idem.Options) {}
					}
					e := idem.New(store, callertest.Anybody, opt)
					if tc.before != nil {
						tc.before(t, e, store)
					}
					store.Reset(down(time.Now().Add(time.Hour), hangs, tc.verbs...))
					begun := time.Now()
					handler := tc.handler
					if handler == nil {
						handler = never(t)
					}
					r := idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, ReadFirst: tc.repeats}
					res, err := requestInTime(t, limit, e, r, handler)
					if left := limit - time.Since(begun); left < tc.reserve {
						t.Errorf("%v left, want %v: %+v, %v", left, tc.reserve, res, err)
					}
					if err == nil && !res.Expires.IsZero() || store.Calls() == 0 {
						t.Errorf("%+v, %v after %d calls: nothing was struck", res, err, store.Calls())
					}
				})
			})
		}
	}
}

// A completer reports the outcome of a ticket to its queue in time.
func TestEveryResumeIsOutInTime(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	for name, tc := range map[string]struct {
		verbs   []idemtest.Verb
		reserve time.Duration
	}{
		"a take-over":            {[]idemtest.Verb{idemtest.Take}, defaults.Reserve},
		"a take-over and a read": {[]idemtest.Verb{idemtest.Take, idemtest.Load}, defaults.Reserve},
		"a stored request":       {[]idemtest.Verb{idemtest.LoadBody}, defaults.Reserve},
		"a finish":               {[]idemtest.Verb{idemtest.Commit}, defaults.Reserve / 5},
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
					res, err := e.Resume(ctx, jobs.TicketFor(a.record(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) {
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

// However long an invocation may take, no copy of a claim is in flight for longer
// than a minute: the copy could outlive its record.
func TestClaimIsGivenUpAfterAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := idemtest.Faulty(new(idem.MemoryStore), down(time.Now().Add(time.Hour), true, idemtest.Claim))
		begun := time.Now()
		_, err := inTime(t, 15*time.Minute, idem.New(store, callertest.Anybody), never(t))
		if took := time.Since(begun); !errors.Is(err, idem.ErrUnavailable) || took > time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// died leaves a record whose attempt is dead and whose lease has ended.
func died(t *testing.T, e *idem.Engine, store *idemtest.FaultyStore) {
	t.Helper()
	_, _ = inTime(t, 0, e, func(context.Context) (idem.Response, error) { store.Crash(); return idem.Response{}, nil })
	store.Reset(nil)
	time.Sleep(time.Hour) //nolint:forbidigo // virtual
}

// held leaves a record whose attempt is working.
func held(t *testing.T, e *idem.Engine, _ *idemtest.FaultyStore) {
	t.Helper()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	go func() {
		_, _ = inTime(t, 0, e, func(context.Context) (idem.Response, error) { <-over; return idem.Response{}, nil })
	}()
	synctest.Wait()
}

// elsewhere leaves a finished record without its body.
func elsewhere(t *testing.T, e *idem.Engine, _ *idemtest.FaultyStore) {
	t.Helper()
	if _, err := inTime(t, 0, e, answers(299)); err != nil {
		t.Fatal(err)
	}
}

func oneCall(ctx context.Context) (idem.Response, error) {
	ctx = context.WithoutCancel(ctx)
	_, err := idem.Foreign(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }, idem.NotIdempotent())
	return idem.Response{Status: 201}, err
}

// bodiesElsewhere keeps the bodies of 299 answers outside of their records.
type bodiesElsewhere struct{ idem.MemoryStore }

func (s *bodiesElsewhere) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	held, err := s.MemoryStore.Claim(ctx, c)
	if held != nil && held.Response != nil && held.Response.Status == 299 {
		held.Overflow = &store.Overflow{Count: 1}
	}
	return held, err
}
