package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// No client hears an answer that isn't kept while the operation may still act by itself:
// told "sold out", it would be charged by the completer.
func TestToldIsKept(t *testing.T) {
	t.Parallel()
	died := func(a *operation) {
		dying := idemtest.Faulty(&a.mem, nil)
		e := idem.New(dying, func(o *idem.Options) { o.Now, o.Resumable, o.Function = a.clock.Now, true, "f" })
		_, _ = e.Do(context.Background(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Path: "/rides"}, func(context.Context) (idem.Response, error) {
			dying.Crash()
			return idem.Response{}, errors.New("died")
		})
		a.leaseOver()
	}
	for name, tc := range map[string]struct {
		resumable bool
		before    func(*operation)
		fn        func(context.Context) (idem.Response, error)
		told      int
	}{
		"a refusal before anything was done":                {resumable: true, fn: answers(409), told: 409},
		"a refusal before anything was done, not resumable": {fn: answers(422), told: 422},
		"a 409 after a committed phase":                     {resumable: true, fn: reserves(409), told: 503},
		"a 409 after a committed phase, not resumable":      {fn: reserves(409), told: 503},
		"a 402 after a swallowed error of a call":           {resumable: true, fn: swallows(402), told: 503},
		"a 402 after a swallowed error, not resumable":      {fn: swallows(402), told: 503},
		"a 422 after a predecessor that died":               {resumable: true, before: died, fn: answers(422), told: 422},
		"a handler that says that its 409 is final":         {resumable: true, fn: responds(409), told: 409},
		"a 503 of the handler's own":                        {resumable: true, fn: reserves(503), told: 503},
		"a 200 whose storing another policy leaves out":     {resumable: true, fn: reserves(206), told: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting(func(o *idem.Options) {
				o.Resumable = tc.resumable
				o.Stored = func(r idem.Response) bool { return r.Status != 206 && idem.DefaultStored(r) }
			})
			if tc.before != nil {
				tc.before(a)
			}
			res := serve(t, a.engine, tc.fn)
			if res.Status != tc.told {
				t.Errorf("the client was told %d %s, want %d", res.Status, res.Body, tc.told)
			}
			r := a.record(t)
			acts := r.State == store.Open && r.Keep == store.KeepOpen
			if final := res.Status < http.StatusInternalServerError; final && acts {
				t.Errorf("told %d, and the operation goes on: %+v", res.Status, r)
			}
			if !acts && tc.told >= http.StatusInternalServerError && r.State == store.Open {
				t.Errorf("told %d, and the operation is gone: %+v", res.Status, r)
			}
		})
	}
}

// A withheld answer counts as a try, whoever ran it. Until its back-off is over a retry
// runs nothing, and past MaxTries the operation waits for people.
func TestWithheldAnswersEnd(t *testing.T) {
	t.Parallel()
	const tries = 4
	for name, resumable := range map[string]bool{"resumable": true, "not resumable": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting(func(o *idem.Options) { o.Resumable, o.MaxTries = resumable, tries })
			runs, statuses, waits := 0, []int(nil), []int(nil)
			counted := func(ctx context.Context) (idem.Response, error) { runs++; return reserves(409)(ctx) }
			for range 2 * tries {
				res := serve(t, a.engine, counted)
				before := runs
				again := serve(t, a.engine, counted)
				wait, err := strconv.Atoi(again.Header.Get("Retry-After"))
				if runs != before || res.Status == 503 && (again.Status != 503 || err != nil) {
					t.Errorf("a retry at once: %d, Retry-After %q, %d runs", again.Status, again.Header.Get("Retry-After"), runs-before)
				}
				statuses, waits = append(statuses, res.Status), append(waits, wait)
				a.clock.Advance(time.Duration(wait) * time.Second) // the next retry runs, and no earlier one
			}
			if diff := cmp.Diff([]int{503, 503, 503, 409, 409, 409, 409, 409}, statuses); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]int{2, 4, 8, 0, 0, 0, 0, 0}, waits); diff != "" {
				t.Errorf("Retry-After (-want +got):\n%s", diff)
			}
			const said = "not completed in 4 tries: the handler answered 409, which is not stored"
			if r := a.record(t); runs != tries || r.State != store.Stuck || r.LastErr != said || len(r.Phases) != 1 {
				t.Errorf("%d runs, state %q: %s, phases %v", runs, r.State, r.LastErr, r.Phases)
			}
		})
	}
}

// A completer's try that ends with such an answer is counted once, by its take-over.
func TestWithheldFromACompleter(t *testing.T) {
	t.Parallel()
	a := accepting()
	_ = serve(t, a.engine, reserves(409))
	err := a.resume(t, a.engine, state.TicketFor(a.record(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return reserves(409)(ctx) })
	if r := a.record(t); !errors.Is(err, idem.ErrUnfinished) || r.Tries != 2 || r.State != store.Open {
		t.Errorf("%v, %d tries, state %q", err, r.Tries, r.State)
	}
}

// Whether a release has freed the key decides if the handler's refusal may be told.
func TestRefusalIsWithheldIfItsReleaseIsUnknown(t *testing.T) {
	t.Parallel()
	clock := idemtest.NewClock()
	var mem idem.MemoryStore
	st := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb != "Claim" {
			return idemtest.Fault{Err: store.ErrUnknown}
		}
		return idemtest.Fault{}
	})
	e := idem.New(st, func(o *idem.Options) { o.Now, o.Resumable, o.Function = clock.Now, true, "f" })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // the release gives up with it
	defer cancel()
	res, err := e.Serve(ctx, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST"}, answers(409))
	if err != nil || res.Status != http.StatusServiceUnavailable {
		t.Errorf("told %d, %v", res.Status, err)
	}
}

// A new version of the handler doesn't pass over work that an earlier one committed,
// even with an answer that isn't stored: people are told.
func TestPlainRefusalOverCommittedWork(t *testing.T) {
	t.Parallel()
	for name, resumable := range map[string]bool{"resumable": true, "not resumable": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting(func(o *idem.Options) { o.Resumable = resumable })
			_, _ = do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
				_, _ = reserves(500)(ctx)
				return idem.Response{}, errors.New("down")
			})
			res := serve(t, a.engine, answers(422))
			if r := a.record(t); res.Status != http.StatusInternalServerError || !r.Blocked || len(r.Phases) != 1 {
				t.Errorf("told %d; blocked: %t, %q", res.Status, r.Blocked, r.LastErr)
			}
		})
	}
}

// While an operation with InFlightAccept goes on, its client is sent to the status. An
// operation that only its client continues is no such: the answer and the status say
// that it is to be sent again.
func TestWithheldIsAccepted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		resumable bool
		fn        func(context.Context) (idem.Response, error)
		told      int
	}{
		"withheld":                  {true, reserves(409), http.StatusAccepted},
		"withheld, not resumable":   {false, reserves(409), http.StatusServiceUnavailable},
		"given back":                {true, reserves(503), http.StatusServiceUnavailable},
		"given back, not resumable": {false, reserves(503), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting(func(o *idem.Options) {
				o.Resumable, o.InFlight, o.StatusURL = tt.resumable, idem.InFlightAccept, "/operations/"
			})
			if res := serve(t, a.engine, tt.fn); res.Status != tt.told || (res.Header.Get("Location") == "/operations/k") != (tt.told == http.StatusAccepted) {
				t.Errorf("told %d %v, want %d", res.Status, res.Header, tt.told)
			}
			for range 2 { // the second time nothing is held back any more
				res, err := a.engine.Status(t.Context(), request)
				if tt.resumable && (err != nil || res.Status != http.StatusAccepted) || !tt.resumable && !errors.Is(err, idem.ErrUnfinished) {
					t.Errorf("the status is %d, %v", res.Status, err)
				}
				a.leaseOver()
			}
		})
	}
}

// What became of another operation, whose error a handler passes on, is no answer to this
// request.
func TestErrorsOfOtherOperationsAreNoAnswers(t *testing.T) {
	t.Parallel()
	for _, of := range []error{
		idem.ErrStuck, idem.ErrLeaseLost, idem.ErrConflict, idem.ErrUnavailable, idem.ErrMismatch, idem.ErrNotKept, idem.ErrNoTime, idem.ErrInFlight,
	} {
		a := accepting()
		res := serve(t, a.engine, func(context.Context) (idem.Response, error) {
			return idem.Response{}, fmt.Errorf("the refund: %w", &idem.Error{Op: "claim", Err: of})
		})
		if res.Status != 500 || !strings.Contains(string(res.Body), `"code":"internal_error"`) {
			t.Errorf("%v: told %d %s", of, res.Status, res.Body)
		}
	}
}

// An error of a phase never says that nothing was done.
func TestNoTimeInAPhaseIsUnfinished(t *testing.T) {
	t.Parallel()
	a := accepting()
	res := serve(t, a.engine, func(ctx context.Context) (idem.Response, error) {
		if _, err := reserves(201)(ctx); err != nil {
			return idem.Response{}, err
		}
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err := idem.Foreign(over, "charge", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
		return idem.Response{}, err
	})
	if want := `"code":"idempotency_unfinished"`; res.Status != 503 || !strings.Contains(string(res.Body), want) {
		t.Errorf("got %d %s, want %s", res.Status, res.Body, want)
	}
}

// The caller of Do hears that the operation goes on, and no 202.
func TestDoIsNotAcceptedForLater(t *testing.T) {
	t.Parallel()
	a := accepting(func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
	if res, err := do(t, a.engine, reserves(409)); !errors.Is(err, idem.ErrUnfinished) || res.Status != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// Who comes while an answer is withheld hears when to come again: a second from now at
// least.
func TestRetryAfterAWithheldAnswer(t *testing.T) {
	t.Parallel()
	m := meets(t, "plain", "withheld")
	again := func() time.Duration {
		t.Helper()
		_, err := m.engine(&m.mem, m.opt).Do(t.Context(), ordered("{}"), never(t))
		e, ok := errors.AsType[*idem.Error](err)
		if !ok || !errors.Is(err, idem.ErrUnfinished) {
			t.Fatal(err)
		}
		return e.RetryAfter
	}
	first := again()
	m.clock.Advance(first - 100*time.Millisecond)
	if last := again(); first <= time.Second || last != time.Second {
		t.Errorf("again after %v, and shortly before that after %v, want a second", first, last)
	}
}
