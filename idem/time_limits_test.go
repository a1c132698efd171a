package idem_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

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

// One packet that hangs leaves time for another packet.
func TestOneCommitNeverTakesAllTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := idemtest.Faulty(new(idem.MemoryStore), func(ctx context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Commit" && c.N == 1 {
				<-ctx.Done()
				return idemtest.Fault{Err: store.ErrUnknown}
			}
			return idemtest.Fault{}
		})
		res, err := inTime(t, 10*time.Second, idem.New(st, callertest.Anybody), answers(201))
		if err != nil || res.Expires.IsZero() || st.Calls("Commit") != 2 {
			t.Errorf("%+v, %v after %d commits; want it stored by the second", res, err, st.Calls("Commit"))
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
	waits := func(o *idem.Options) { o.InFlight = idem.InFlightWait }
	for name, tc := range map[string]struct {
		opt     func(*idem.Options)
		repeats bool                                                  // the request is read before its claim
		before  func(*testing.T, *idem.Engine, *idemtest.FaultyStore) // prepares the table
		verbs   []string                                              // affected calls; none = all
		handler func(context.Context) (idem.Response, error)
		reserve time.Duration
	}{
		"a claim":                     {verbs: []string{"Claim"}, reserve: notBegun},
		"a claim, and the look at it": {reserve: notBegun},
		"a look before the claim":     {repeats: true, reserve: notBegun},
		"a look that takes over":      {repeats: true, before: died, verbs: []string{"Commit"}, reserve: notBegun},
		"a take-over":                 {before: died, verbs: []string{"Commit", "Load"}, reserve: notBegun},
		"waiting":                     {opt: waits, before: held, verbs: []string{"Load"}, reserve: notBegun},
		"a replay's body":             {before: elsewhere, verbs: []string{"LoadBody"}, reserve: begun},
		"a finish":                    {verbs: []string{"Commit", "Load"}, handler: late(stored), reserve: begun},
		"a finish, an answer lost":    {verbs: []string{"Commit"}, handler: late(stored), reserve: begun},
		"a phase":                     {verbs: []string{"Commit", "Load"}, handler: late(onePhase), reserve: begun},
		"a release":                   {verbs: []string{"Commit", "Load"}, handler: late(fails), reserve: begun},
		"a call that is not repeated": {verbs: []string{"Commit", "Load"}, handler: late(oneCall), reserve: begun},
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

// However long an invocation may take, no copy of a claim is in flight for longer
// than a minute: the copy could outlive its record.
func TestClaimIsGivenUpAfterAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := idemtest.Faulty(new(idem.MemoryStore), down(time.Now().Add(time.Hour), true, "Claim"))
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

// A claim uses up the time, or the sandbox freezes after the claim: the handler
// doesn't begin.
func TestNoTimeLeftAfterTheClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := &idem.MemoryStore{}
		st := &spoilt{Store: memory, claim: func(ctx context.Context, c store.Claim) (*store.Record, error) {
			held, err := memory.Claim(ctx, c)
			<-time.After(1900 * time.Millisecond)
			return held, err
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var told []string
		listens := func(o *idem.Options) { o.Hooks = listening(&told, new([]idem.Summary)) }
		if _, err := idem.New(st, callertest.Anybody, listens).Do(ctx, request, never(t)); !errors.Is(err, idem.ErrNoTime) {
			t.Errorf("got %v, want no time left", err)
		}
		if want := []string{"Released", "Refused", "Ended"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if res, err := idem.New(memory, callertest.Anybody).Do(t.Context(), request, answers(201)); err != nil || res.Replayed {
			t.Errorf("the key isn't free: %+v, %v", res, err)
		}
	})
}

// Whoever calls without a deadline hears of it once, and not with each request.
func TestNoDeadlineIsToldOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, logsTo(&log))
	for _, key := range []string{"one", "two"} {
		r := request
		r.Key = key
		if _, err := e.Do(context.WithoutCancel(t.Context()), r, answers(201)); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "no deadline"); n != 1 {
		t.Errorf("told %d times:\n%s", n, &log)
	}
}

// An operation that goes on isn't taken over, and nothing is said of it, by a retry with too
// little time.
func TestTooLittleTimeForKnownWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var st idem.MemoryStore
		e := idem.New(&st, callertest.Anybody)
		r := idem.Request{Method: "POST", Path: "/charges", Header: http.Header{idem.KeyHeader: {"k"}}}
		send := func(limit time.Duration, fn func(context.Context) (idem.Response, error)) idem.Response {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			res, err := e.Serve(ctx, r, fn)
			if err != nil {
				t.Fatal(err)
			}
			return res.Response
		}
		send(time.Minute, func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "paid", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return idem.Response{}, errors.Join(err, errors.New("down"))
		})
		before := one(&st).Ver
		time.Sleep(time.Minute) //nolint:forbidigo // virtual
		got := send(300*time.Millisecond, answers(201))
		if code := codeOf(got); got.Status != 503 || code != "idempotency_unfinished" || one(&st).Ver != before {
			t.Errorf("got %d %s and version %d, want 503 idempotency_unfinished and version %d: %s", got.Status, code, one(&st).Ver, before, got.Body)
		}
	})
}
