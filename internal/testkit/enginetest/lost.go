package enginetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// The outcomes that lostAnswers and crashPaths expect of requests.
const (
	answers     = "the handler's answer"
	failsItself = "the handler's error"
	unavailable = "store unavailable"
	waits       = "in flight"
	replays     = "a replay"
)

func (r result) came() string {
	switch {
	case r.err == nil && r.Replayed:
		return replays
	case r.err == nil:
		return answers
	case errors.Is(r.err, errHandler):
		return failsItself
	case errors.Is(r.err, idem.ErrInFlight):
		return waits
	case errors.Is(r.err, idem.ErrUnavailable):
		return unavailable
	}
	return r.err.Error()
}

func (r result) cameTo(t testing.TB, who string, allowed ...string) result {
	t.Helper()
	if !slices.Contains(allowed, r.came()) {
		t.Fatalf("%s got %s (%v), want %q", who, r.came(), r, allowed)
	}
	return r
}

var errHandler = errors.New("handler failed")

// In lostAnswers, one write of each request gets no answer from the store. In some rows
// of the table the store applied the write, and in the others it didn't. If the record
// can be read, the engine finds out whether the write was applied, and the client
// notices nothing. The only exception is a claim that was not applied: the client may
// be told that the store is unavailable. If the record can't be read, the lost answer
// still causes no second run of the handler.
func lostAnswers(s suite) {
	type want []string
	for _, tt := range []struct {
		write     string
		applied   bool
		loadFails bool
		first     want // the outcome of the request whose answer is lost
		retry     want // the outcome of an immediate retry
		runs      int  // runs of the handler until there is a stored answer
	}{
		{"claim", true, false, want{answers}, want{replays}, 1},
		{"claim", true, true, want{unavailable}, want{waits}, 1},
		{"claim", false, false, want{answers, unavailable}, want{replays, answers}, 1},
		{"claim", false, true, want{unavailable}, want{answers}, 1},

		{"take-over", true, false, want{answers}, want{replays}, 1},
		{"take-over", true, true, want{unavailable}, want{waits}, 1},
		{"take-over", false, false, want{answers}, want{replays}, 1},
		{"take-over", false, true, want{answers, unavailable}, want{replays, answers}, 1},

		{"finish", true, false, want{answers}, want{replays}, 1},
		{"finish", true, true, want{answers}, want{replays}, 1},
		{"finish", false, false, want{answers}, want{replays}, 1},
		{"finish", false, true, want{answers}, want{replays}, 1},

		{"release", true, false, want{failsItself}, want{answers}, 2},
		{"release", true, true, want{failsItself}, want{answers}, 2},
		{"release", false, false, want{failsItself}, want{answers}, 2},
		{"release", false, true, want{failsItself}, want{answers, waits}, 2},
	} {
		name := "the answer to a " + tt.write + " is lost, "
		if tt.applied {
			name += "applied"
		} else {
			name += "not applied"
		}
		if tt.loadFails {
			name += ", and nothing can be read"
		}
		s.run(name, func(t *testing.T, e *env) {
			var a app
			verb, fn := "Commit", a.run
			switch tt.write {
			case "claim":
				verb = "Claim"
			case "take-over":
				e.abandon(t, order("k", "1"))
				e.clock.Advance(storetest.LeaseOver)
			case "release":
				fn = a.fail(errHandler)
			}
			e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
				if c.Verb == verb && c.N == 1 {
					return idemtest.Fault{Err: store.ErrUnknown, Applied: tt.applied}
				}
				if c.Verb == "Load" && tt.loadFails {
					return idemtest.Fault{Err: errDown}
				}
				return idemtest.Fault{}
			})
			first := do(t, e.engine(), order("k", "1"), fn).cameTo(t, "the request", tt.first...)
			if tt.write != "claim" && e.store.Calls("Load") == 0 {
				t.Error("the record was not consulted about the lost answer")
			}

			healthy := e.engineOn(idemtest.Faulty(e.inner, nil))
			retry := do(t, healthy, order("k", "1"), a.run).cameTo(t, "its retry", tt.retry...)
			if first.came() == answers && retry.came() == replays {
				retry.replays(t, first)
			}
			e.clock.Advance(storetest.LeaseOver)
			last := do(t, healthy, order("k", "1"), a.run).cameTo(t, "a retry after the lease", answers, replays)
			do(t, healthy, order("k", "1"), a.run).replays(t, last)
			a.ran(t, tt.runs)
		})
	}

	// The write is slow: the store applies it after the engine has read the record.
	for _, tt := range []struct {
		write string
		fn    func(*app) handler
		first string
		runs  int
	}{
		{"finish", func(a *app) handler { return a.run }, answers, 1},
		{"release", func(a *app) handler { return a.fail(errHandler) }, failsItself, 2},
	} {
		s.run("the answer to a "+tt.write+" is lost, and it is applied just before it is sent again", func(t *testing.T, e *env) {
			var a app
			var slow store.Commit
			e.store.Reset(func(ctx context.Context, c idemtest.Call) idemtest.Fault {
				switch {
				case c.Verb == "Commit" && c.N == 1:
					slow = store.Commit{Prev: c.Commit.Prev.Clone(), Next: c.Commit.Next.Clone()}
					return idemtest.Fault{Err: store.ErrUnknown}
				case c.Verb == "Commit" && c.N == 2:
					if held, err := e.inner.Commit(ctx, slow); held != nil || err != nil {
						t.Errorf("the slow commit came to %+v, %v", held, err)
					}
				}
				return idemtest.Fault{}
			})
			first := do(t, e.engine(), order("k", "1"), tt.fn(&a)).cameTo(t, "the request", tt.first)
			if got := e.store.Calls("Commit"); got != 2 {
				t.Errorf("%d commits, want the second to be recognised", got)
			}
			retry := do(t, e.engine(), order("k", "1"), a.run)
			if tt.first == answers {
				retry.replays(t, first)
			} else {
				retry.cameTo(t, "its retry", answers)
			}
			a.ran(t, tt.runs)
		})
	}

	s.run("the answer to a claim is lost, and it is applied when its client was told to come back", func(t *testing.T, e *env) {
		var a app
		var slow store.Claim
		e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Claim" {
				slow = store.Claim{Next: c.Claim.Next.Clone(), Now: c.Claim.Now}
				return idemtest.Fault{Err: store.ErrUnknown}
			}
			return idemtest.Fault{}
		})
		do(t, e.engine(), order("k", "1"), a.run).cameTo(t, "the request", unavailable)
		storetest.MustClaim(t, e.inner, slow)
		e.store.Reset(nil)
		do(t, e.engine(), order("k", "1"), a.run).cameTo(t, "its retry", waits)
		e.clock.Advance(storetest.LeaseOver)
		first := do(t, e.engine(), order("k", "1"), a.run).cameTo(t, "a retry after the lease", answers)
		do(t, e.engine(), order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	// Another attempt finishes the operation before the engine reads the record.
	for _, tt := range []struct {
		write   string
		verb    string
		applied bool
		first   want
	}{
		{"claim", "Claim", false, want{replays}},
		{"finish", "Commit", false, want{replays}},
		{"release", "Commit", true, want{replays, failsItself}},
	} {
		s.run("the answer to a "+tt.write+" is lost while another attempt finishes", func(t *testing.T, e *env) {
			var a, other app
			var theirs result
			healthy := e.engineOn(idemtest.Faulty(e.inner, nil))
			rivalRuns := func() {
				e.clock.Advance(storetest.LeaseOver)
				theirs = do(t, healthy, order("k", "1"), other.run).first(t)
			}
			e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
				switch {
				case c.Verb == tt.verb && c.N == 1 && !tt.applied:
					rivalRuns()
					return idemtest.Fault{Err: store.ErrUnknown}
				case c.Verb == tt.verb && c.N == 1:
					return idemtest.Fault{Err: store.ErrUnknown, Applied: true}
				case c.Verb == "Load" && c.N == 1 && tt.applied:
					rivalRuns()
				}
				return idemtest.Fault{}
			})
			fn := a.run
			if tt.write == "release" {
				fn = a.fail(errHandler)
			}
			do(t, e.engine(), order("k", "1"), fn).cameTo(t, "the request", tt.first...)
			other.ran(t, 1)
			do(t, healthy, order("k", "1"), other.run).replays(t, theirs)
			other.ran(t, 1)
		})
	}
}
