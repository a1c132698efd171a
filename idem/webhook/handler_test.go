package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/webhook"
)

// endpoint is a handler under test with its store, clock and logs.
type endpoint struct {
	*webhook.Handler
	clock  *clock
	store  *recorder
	log    bytes.Buffer
	events []webhook.Event // handled events
	mu     sync.Mutex
}

// newEndpoint makes an endpoint for Stripe's events. fn may be nil.
func newEndpoint(t testing.TB, fn func(context.Context, webhook.Event) error, optFns ...func(*idem.Options)) *endpoint {
	t.Helper()
	e := &endpoint{clock: newClock(), store: &recorder{}}
	common := func(o *idem.Options) {
		o.Now, o.Logger = e.clock.Now, slog.New(slog.NewTextHandler(&e.log, nil))
	}
	e.Handler = webhook.New(e.store, "stripe", newStripe(t, e.clock), func(ctx context.Context, ev webhook.Event) error {
		e.mu.Lock()
		e.events = append(e.events, ev)
		e.mu.Unlock()
		if fn == nil {
			return nil
		}
		return fn(ctx, ev)
	}, append([]func(*idem.Options){common}, optFns...)...)
	return e
}

// deliver signs and sends an event now.
func (e *endpoint) deliver(t testing.TB, body string) idem.Response {
	t.Helper()
	return e.Serve(t.Context(), delivery(stripeSigned(body, e.clock.Now(), stripeSecret), body)).Response
}

func (e *endpoint) ran(t testing.TB, n int) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.events) != n {
		t.Errorf("the handler ran %d times, want %d", len(e.events), n)
	}
}

// recorder is a MemoryStore that can fail and records its calls.
type recorder struct {
	idem.MemoryStore
	mu      sync.Mutex
	claims  int
	commits []store.Commit
	down    error // fails claims and loads
	gone    bool  // answers are no longer there
	refuse  error // fails commits
}

func (s *recorder) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	s.mu.Lock()
	s.claims++
	down, gone := s.down, s.gone
	s.mu.Unlock()
	if down != nil {
		return nil, down
	}
	rec, err := s.MemoryStore.Claim(ctx, c)
	if gone && rec != nil {
		rec.Overflow = new(store.Overflow)
	}
	return rec, err
}

func (s *recorder) Load(ctx context.Context, pk string) (*store.Record, error) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down != nil {
		return nil, down
	}
	return s.MemoryStore.Load(ctx, pk)
}

func (s *recorder) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	s.mu.Lock()
	s.commits = append(s.commits, c)
	refuse := s.refuse
	s.mu.Unlock()
	if refuse != nil {
		return nil, refuse
	}
	return s.MemoryStore.Commit(ctx, c)
}

// untouched checks that the store was not called.
func (s *recorder) untouched(t testing.TB) {
	t.Helper()
	if s.claims != 0 || len(s.commits) != 0 {
		t.Errorf("%d claims and %d commits, want none", s.claims, len(s.commits))
	}
}

// note is a user's write.
type note string

func (note) Err() error       { return nil }
func (n note) String() string { return string(n) }

func finish(writes ...idem.Write) func(context.Context, webhook.Event) error {
	return func(ctx context.Context, _ webhook.Event) error {
		_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
			tx.Write(writes...)
			tx.Stage(idem.NewJob("send_receipt", "pi_1"))
			return nil, nil
		})
		return err
	}
}

// An event is handled once, in the order of its deliveries; later ones are duplicates.
func TestWebhook(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, nil)
	want(t, e.deliver(t, succeeded), http.StatusOK, "")
	e.clock.Add(2 * time.Hour) // a retry has a new signature
	want(t, e.deliver(t, succeeded), http.StatusOK, "duplicate")
	want(t, e.deliver(t, `{"id":"evt_0"}`), http.StatusOK, "")
	want(t, e.deliver(t, succeeded), http.StatusOK, "duplicate")
	two := webhook.Event{ID: "evt_0", Sent: start.Add(2 * time.Hour), Body: []byte(`{"id":"evt_0"}`)}
	if diff := cmp.Diff([]webhook.Event{{ID: "evt_1", Sent: start, Body: []byte(succeeded)}, two}, e.events); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
}

// A request that is no delivery of the provider reaches neither store nor
// handler.
func TestRefusedDeliveries(t *testing.T) {
	t.Parallel()
	good := stripeSigned(succeeded, start, stripeSecret)
	twice := good.Clone()
	twice.Add(webhook.StripeHeader, good.Get(webhook.StripeHeader))
	noID := `{"object":"event"}`
	large := `{"id":"evt_1","x":"` + strings.Repeat("x", 1000) + `"}`
	post := delivery(good, succeeded)
	get := post
	get.Method = http.MethodGet
	for name, tc := range map[string]struct {
		r      idem.Request
		status int
		code   string
	}{
		"GET":           {get, 405, "method_not_allowed"},
		"not signed":    {delivery(nil, succeeded), 400, "not_signed"},
		"altered":       {delivery(good, strings.Replace(succeeded, "evt_1", "evt_2", 1)), 400, "no_valid_signature"},
		"truncated":     {delivery(good, succeeded[:20]), 400, "no_valid_signature"},
		"empty":         {delivery(good, ""), 400, "no_valid_signature"},
		"too old":       {delivery(stripeSigned(succeeded, start.Add(-time.Hour), stripeSecret), succeeded), 400, "too_old"},
		"too new":       {delivery(stripeSigned(succeeded, start.Add(time.Hour), stripeSecret), succeeded), 400, "too_new"},
		"signed twice":  {delivery(twice, succeeded), 400, "malformed"},
		"without an id": {delivery(stripeSigned(noID, start, stripeSecret), noID), 400, "malformed"},
		"too large":     {delivery(stripeSigned(large, start, stripeSecret), large), 413, "body_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []idem.Event
			e := newEndpoint(t, nil, func(o *idem.Options) {
				o.MaxRequest = 1000
				o.Hooks.Refused = func(_ context.Context, ev idem.Event) { told = append(told, ev) }
			})
			resp := e.Serve(t.Context(), tc.r).Response
			want(t, resp, tc.status, tc.code)
			if resp.Header.Get("Retry-After") != "" || (resp.Header.Get("Allow") == "POST") != (tc.status == 405) {
				t.Errorf("headers: %v", resp.Header)
			}
			e.ran(t, 0)
			e.store.untouched(t)
			if len(told) != 1 || told[0].Route != "stripe" || told[0].Err == nil {
				t.Errorf("Hooks.Refused was told %+v", told)
			}
			for what, s := range map[string]string{"secret": stripeSecret, "body": "payment_intent", "signature": good.Get(webhook.StripeHeader)[15:]} {
				if strings.Contains(e.log.String()+string(resp.Body), s) {
					t.Errorf("log or answer show the %s:\n%s\n%s", what, &e.log, resp.Body)
				}
			}
			if !strings.Contains(e.log.String(), "webhook refused") {
				t.Errorf("the log says nothing of it: %s", &e.log)
			}
		})
	}
}

// The commit with the handler's writes and jobs also records the event as
// handled, and no earlier commit does.
func TestRecordedWithItsHandling(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, finish(note("payment pi_1")))
	want(t, e.deliver(t, succeeded), http.StatusOK, "")
	if n := len(e.store.commits); n != 1 {
		t.Fatalf("%d commits, want 1", n)
	}
	c := e.store.commits[0]
	if c.Prev.State != store.Open || c.Next.State != store.Done || len(c.Writes) != 1 || len(c.Next.Jobs) != 1 {
		t.Errorf("the commit turns %s into %s with %d writes and %d jobs", c.Prev.State, c.Next.State, len(c.Writes), len(c.Next.Jobs))
	}
	want(t, e.deliver(t, succeeded), http.StatusOK, "duplicate")
	e.ran(t, 1)
	if len(e.store.Writes()) != 1 {
		t.Errorf("writes: %v", e.store.Writes())
	}
}

func TestCommitThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, finish(note("payment pi_1")))
	boom := errors.New("table is gone")
	e.store.refuse = boom
	resp := e.deliver(t, succeeded)
	want(t, resp, http.StatusInternalServerError, "internal_error")
	if len(e.store.Writes()) != 0 {
		t.Errorf("writes: %v", e.store.Writes())
	}
	e.store.refuse = nil
	e.clock.Add(time.Hour) // the lease, which could not be released either, has ended
	want(t, e.deliver(t, succeeded), http.StatusOK, "")
	e.ran(t, 2)
	if len(e.store.Writes()) != 1 {
		t.Errorf("writes: %v", e.store.Writes())
	}
}

// A 2xx is given only for recorded events, even if the handler has succeeded.
func TestNotRecorded(t *testing.T) {
	t.Parallel()
	phase := func(ctx context.Context, cause error) {
		_, _ = idem.Atomic(ctx, "a", func(context.Context, *idem.Tx) (int, error) { return 0, cause })
	}
	for name, tt := range map[string]struct {
		phase, refuse bool
		cause, result error // of the phase's failure; the handler's
	}{
		"store refuses":               {refuse: true},
		"store refuses after a phase": {phase: true, refuse: true},
		"store refuses a response":    {phase: true, refuse: true, result: idem.Respond(nil)},
		"a phase has failed":          {phase: true, cause: errors.New("boom")},
		// From this endpoint's own engine, the errors would mean that the event is handled,
		// or that the handler was not run.
		"a phase has failed on another engine's word": {phase: true, cause: fmt.Errorf("refund: %w", idem.ErrNotKept)},
		"a phase has failed on two engines' words":    {phase: true, cause: errors.Join(idem.ErrNotKept, idem.ErrUnavailable)},
		"a phase has failed with another store":       {phase: true, cause: fmt.Errorf("refund: %w", idem.ErrUnavailable)},
		"a phase has failed for lack of time":         {phase: true, cause: fmt.Errorf("refund: %w", idem.ErrNoTime)},
		"a phase has failed with a bad signature":     {phase: true, cause: webhook.ErrNotSigned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing := true
			var e *endpoint
			e = newEndpoint(t, func(ctx context.Context, _ webhook.Event) error {
				if !failing {
					phase(ctx, nil)
					return nil
				}
				if tt.phase {
					phase(ctx, tt.cause)
				}
				if tt.refuse {
					e.store.refuse = errors.New("no")
				}
				return tt.result
			})
			resp := e.deliver(t, succeeded)
			want(t, resp, http.StatusServiceUnavailable, "not_recorded")
			if resp.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			e.store.refuse, failing = nil, false
			e.clock.Add(time.Hour)
			want(t, e.deliver(t, succeeded), http.StatusOK, "")
			want(t, e.deliver(t, succeeded), http.StatusOK, "duplicate")
			e.ran(t, 2)
		})
	}
}

// Any error of the handler frees the event.
func TestHandlerFails(t *testing.T) {
	t.Parallel()
	for name, boom := range map[string]error{
		"any error":              errors.New("boom: s3cr3t"),
		"as if it were recorded": &idem.Error{Op: "claim", Err: idem.ErrNotKept},
		"as if it were in vain":  fmt.Errorf("payments: %w", idem.ErrNotKept),
		"as if it were in use":   &idem.Error{Op: "claim", Err: idem.ErrInFlight, RetryAfter: time.Hour},
		"as if it were refused":  webhook.ErrNotSigned,
		"as if it were large":    idem.ErrTooLarge,
		"cancelled":              context.Canceled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing := true
			e := newEndpoint(t, func(context.Context, webhook.Event) error {
				if failing {
					return boom
				}
				return nil
			})
			resp := e.deliver(t, succeeded)
			want(t, resp, http.StatusInternalServerError, "internal_error")
			if strings.Contains(string(resp.Body), boom.Error()) {
				t.Errorf("the error leaks: %s", resp.Body)
			}
			if !strings.Contains(e.log.String(), "event=evt_1") {
				t.Errorf("the log doesn't name the event: %s", &e.log)
			}
			failing = false
			e.clock.Add(time.Second)
			want(t, e.deliver(t, succeeded), http.StatusOK, "")
			want(t, e.deliver(t, succeeded), http.StatusOK, "duplicate")
			e.ran(t, 2)
		})
	}
}

// A panic is answered like an error and frees the event; the log contains its
// place, but not its value. http.ErrAbortHandler cuts the connection.
func TestHandlerPanics(t *testing.T) {
	t.Parallel()
	var value any = "boom: secret"
	e := newEndpoint(t, func(context.Context, webhook.Event) error {
		if value != nil {
			panic(value)
		}
		return nil
	})
	want(t, e.deliver(t, succeeded), http.StatusInternalServerError, "internal_error")
	if log := e.log.String(); strings.Contains(log, "secret") || !strings.Contains(log, "handler_test.go") || !strings.Contains(log, "evt_") {
		t.Errorf("the log says %s", log)
	}
	res := e.Serve(t.Context(), delivery(stripeSigned(succeeded, start, stripeSecret), succeeded))
	if res.Status != http.StatusInternalServerError || res.Panic != value {
		t.Errorf("adapters are told %d and %v", res.Status, res.Panic)
	}
	value = http.ErrAbortHandler
	func() {
		defer func() {
			if r := recover(); r != value {
				t.Errorf("recovered %v", r)
			}
		}()
		e.deliver(t, succeeded)
	}()
	value = nil
	want(t, e.deliver(t, succeeded), http.StatusOK, "")
}

// The provider names the event: other parts of the body may differ between
// deliveries, and must neither refuse a retry nor count as another event.
func TestSameEventOtherBody(t *testing.T) {
	t.Parallel()
	failing := true
	e := newEndpoint(t, func(context.Context, webhook.Event) error {
		if failing {
			return errors.New("boom")
		}
		return nil
	})
	want(t, e.deliver(t, `{"id":"evt_1","pending_webhooks":2}`), http.StatusInternalServerError, "internal_error")
	failing = false
	want(t, e.deliver(t, `{"id":"evt_1","pending_webhooks":1}`), http.StatusOK, "")
	want(t, e.deliver(t, `{"id":"evt_1","pending_webhooks":0}`), http.StatusOK, "duplicate")
	e.ran(t, 2)
	if got := string(e.events[1].Body); got != `{"id":"evt_1","pending_webhooks":1}` {
		t.Errorf("handled %s", got)
	}
}

// Which deliveries are of one event: neither another path nor the provider's count of its
// tries makes it another, but another tenant or endpoint does.
func TestSameEvent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change   func(*idem.Request)
		endpoint string
		code     string
		claims   int
	}{
		"a new path":         {func(r *idem.Request) { r.Path = "/v2/webhooks" }, "stripe", "duplicate", 2},
		"marked":             {func(r *idem.Request) { r.Header["Square-Retry-Number"] = []string{"1"} }, "stripe", "duplicate", 1}, // looked for, not claimed
		"no repetition":      {func(r *idem.Request) { r.Header["Square-Retry-Number"] = []string{"0"} }, "stripe", "duplicate", 2},
		"another tenant":     {func(r *idem.Request) { r.Tenant = "green" }, "stripe", "", 2},
		"its answer is gone": {func(*idem.Request) {}, "stripe", "duplicate", 2},
		"another endpoint":   {func(*idem.Request) {}, "analytics", "", 2},
	} {
		s, c := &recorder{}, newClock()
		deliver := func(endpoint string, r idem.Request) idem.Response {
			h := webhook.New(s, endpoint, newStripe(t, c), func(context.Context, webhook.Event) error { return nil }, func(o *idem.Options) { o.Now = c.Now })
			return h.Serve(t.Context(), r).Response
		}
		r := delivery(stripeSigned(succeeded, start, stripeSecret), succeeded)
		r.Tenant = "blue"
		want(t, deliver("stripe", r), http.StatusOK, "")
		tt.change(&r)
		s.gone = name == "its answer is gone"
		want(t, deliver(tt.endpoint, r), http.StatusOK, tt.code)
		if s.claims != tt.claims {
			t.Errorf("%s: %d claims, want %d", name, s.claims, tt.claims)
		}
	}
}

// Of many deliveries at once one is handled; the others are told to come again, and find
// the event handled.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const n = 20
	refused := make(chan struct{})
	e := newEndpoint(t, func(context.Context, webhook.Event) error {
		<-refused // until all other deliveries have their answer
		return nil
	})
	h := stripeSigned(succeeded, start, stripeSecret)
	var inFlight atomic.Int32
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			resp := e.Serve(t.Context(), delivery(h, succeeded)).Response
			if resp.Status == http.StatusOK {
				want(t, resp, http.StatusOK, "")
				return
			}
			want(t, resp, http.StatusConflict, "in_flight")
			if inFlight.Add(1) == n-1 {
				close(refused)
			}
		})
	}
	wg.Wait()
	want(t, e.deliver(t, succeeded), http.StatusOK, "duplicate")
	e.ran(t, 1)
}

// A duplicate may wait for the first delivery, but never gets 202: a 202 would
// end the retries of an event that can still fail.
func TestInFlightModes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode   idem.InFlightMode
		status int
		code   string
	}{
		"wait":   {idem.InFlightWait, http.StatusOK, "duplicate"},
		"accept": {idem.InFlightAccept, http.StatusConflict, "in_flight"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				second := make(chan idem.Response, 1)
				var e *endpoint
				e = newEndpoint(t, func(ctx context.Context, _ webhook.Event) error {
					go func() { second <- e.deliver(t, succeeded) }()
					synctest.Wait()
					if answered := len(second) == 1; answered != (tc.mode == idem.InFlightAccept) {
						t.Errorf("answered during the first delivery: %t", answered)
					}
					return ctx.Err()
				}, func(o *idem.Options) { o.InFlight, o.StatusURL = tc.mode, "/status/" })
				want(t, e.deliver(t, succeeded), http.StatusOK, "")
				resp := <-second
				want(t, resp, tc.status, tc.code)
				if after, _ := strconv.Atoi(resp.Header.Get("Retry-After")); tc.mode == idem.InFlightAccept && after < 2 {
					t.Errorf("Retry-After %d, want the rest of the first delivery's lease", after)
				}
				e.ran(t, 1)
			})
		})
	}
}

// A delivery whose handler has returned too late has the other's answer, or none yet.
func TestOvertakenDelivery(t *testing.T) {
	t.Parallel()
	late, boom := errors.New("late"), errors.New("boom")
	for name, tt := range map[string]struct {
		first, other error // of the handler
		runs         bool  // the other delivery is still being handled
		status       int
		code         string
	}{
		"succeeds, and the other has succeeded": {nil, nil, false, http.StatusOK, "duplicate"},
		"fails, and the other has succeeded":    {late, nil, false, http.StatusOK, "duplicate"},
		"succeeds, and the other runs":          {nil, nil, true, http.StatusConflict, "in_flight"},
		"fails, and the other runs":             {late, nil, true, http.StatusConflict, "in_flight"},
		"succeeds, and the other has failed":    {nil, boom, false, http.StatusServiceUnavailable, "not_recorded"},
		"fails, and the other has failed":       {late, boom, false, http.StatusServiceUnavailable, "not_recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				end, runs := make(chan bool), 0
				var e *endpoint
				e = newEndpoint(t, func(context.Context, webhook.Event) error {
					switch runs++; runs {
					case 1:
						e.clock.Add(time.Hour) // the lease has ended
						go e.deliver(t, succeeded)
						synctest.Wait() // until the other delivery has ended or is blocked
						return tt.first
					case 2:
						if tt.runs {
							<-end
						}
						return tt.other
					}
					return nil
				})
				resp := e.deliver(t, succeeded)
				want(t, resp, tt.status, tt.code)
				if after := resp.Header.Get("Retry-After"); (after == "") != (tt.status == http.StatusOK) {
					t.Errorf("Retry-After %q", after)
				}
				close(end)
				synctest.Wait()
				if tt.other == nil {
					want(t, e.deliver(t, succeeded), http.StatusOK, "duplicate")
				}
			})
		})
	}
}

func TestStuckEventWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	calls := 0
	e := newEndpoint(t, func(ctx context.Context, _ webhook.Event) error {
		_, err := idem.Foreign(ctx, "mailed", func(context.Context, *idem.Tx) (int, error) {
			calls++
			return 0, errors.New("no answer")
		}, idem.NotIdempotent())
		return err
	})
	for range 3 {
		resp := e.deliver(t, succeeded)
		want(t, resp, http.StatusConflict, "stuck")
		if resp.Header.Get("Retry-After") != "" {
			t.Error("Retry-After, though retries don't help")
		}
		e.clock.Add(time.Hour)
	}
	if calls != 1 {
		t.Errorf("called %d times", calls)
	}
}

// While the outcome of an earlier delivery's call is unknown, the provider is told when to
// come again.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	noAnswer := errors.New("no answer")
	for name, leavesOut := range map[string]bool{"the look-up decides nothing": false, "the handler leaves the call out": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known := false
			var e *endpoint
			e = newEndpoint(t, func(ctx context.Context, _ webhook.Event) error {
				if leavesOut && len(e.events) > 1 && !known {
					return nil
				}
				_, err := idem.Foreign(ctx, "mailed", func(context.Context, *idem.Tx) (int, error) {
					if leavesOut && len(e.events) == 1 {
						panic("the process dies")
					}
					return 0, noAnswer
				}, idem.NotIdempotent(), idem.Sends("mail", 1), idem.LookUp(func(context.Context, idem.Call) (int, idem.Found, error) {
					if known {
						return 1, idem.Made, nil
					}
					return 0, 0, noAnswer
				}, 0))
				return err
			})
			want(t, e.deliver(t, succeeded), http.StatusInternalServerError, "internal_error")
			e.clock.Add(time.Hour)
			for range 2 { // the second one comes too soon
				resp := e.deliver(t, succeeded)
				want(t, resp, http.StatusServiceUnavailable, "unfinished")
				if resp.Header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			}
			e.ran(t, 2)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			want(t, e.Serve(ctx, delivery(stripeSigned(succeeded, e.clock.Now(), stripeSecret), succeeded)).Response, http.StatusServiceUnavailable, "no_time_left")
			known = true
			e.clock.Add(time.Hour)
			want(t, e.deliver(t, succeeded), http.StatusOK, "")
		})
	}
}

// Respond marks an event as handled, even after a failed phase.
func TestRespondEndsAnEvent(t *testing.T) {
	t.Parallel()
	for _, v := range []any{nil, idem.Response{Status: 402}, 7} {
		e := newEndpoint(t, func(ctx context.Context, ev webhook.Event) error {
			if err := finish(note("older"))(ctx, ev); errors.Is(err, idem.ErrCondition) {
				return idem.Respond(v) // an outdated event: nothing to do
			}
			return errors.New("no ErrCondition")
		})
		e.store.Apply = func([]idem.Write) error { return idem.ErrCondition }
		want(t, e.deliver(t, succeeded), http.StatusOK, "")
		want(t, e.deliver(t, succeeded), http.StatusOK, "duplicate")
		e.ran(t, 1)
	}
}

// The defaults hold without options, and for options that an option function sets to zero.
func TestDefaults(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	large := `{"id":"evt_2"}` + strings.Repeat(" ", 1<<20-14)
	for name, set := range map[string]func(*idem.Options){
		"no options": func(*idem.Options) {},
		"zero":       func(o *idem.Options) { *o = idem.Options{Now: o.Now, Logger: o.Logger} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tt := range []struct {
				gap  time.Duration
				code string
			}{
				{31*day - time.Second, "duplicate"},
				{31*day + time.Second, ""},
			} {
				e := newEndpoint(t, nil, set)
				want(t, e.deliver(t, succeeded), http.StatusOK, "")
				e.clock.Add(tt.gap)
				want(t, e.deliver(t, succeeded), http.StatusOK, tt.code)
				want(t, e.deliver(t, large), http.StatusOK, "")
				want(t, e.deliver(t, large+" "), http.StatusRequestEntityTooLarge, "body_too_large")
			}
		})
	}
}

// usedUp is a quota that is used up for so long.
type usedUp time.Duration

func (u usedUp) Begin(context.Context, idem.QuotaRequest) (func(idem.QuotaUse), time.Duration, error) {
	return nil, time.Duration(u), nil
}

// Without a record nothing is handled, and the provider is told when to come again.
func TestEngineRefuses(t *testing.T) {
	t.Parallel()
	for code, tt := range map[string]struct {
		status int
		time   time.Duration
		down   error
		wait   time.Duration // of the quota
	}{
		"store_unavailable": {503, time.Hour, errors.New("down"), 0},
		"no_time_left":      {503, 100 * time.Millisecond, nil, 0},
		"quota_exceeded":    {429, time.Hour, nil, 7500 * time.Millisecond},
	} {
		e := newEndpoint(t, nil, func(o *idem.Options) {
			if tt.wait > 0 {
				o.Quota = usedUp(tt.wait)
			}
		})
		e.store.down = tt.down
		ctx, cancel := context.WithTimeout(t.Context(), tt.time)
		defer cancel()
		resp := e.Serve(ctx, delivery(stripeSigned(succeeded, start, stripeSecret), succeeded)).Response
		want(t, resp, tt.status, code)
		if after := resp.Header.Get("Retry-After"); after == "" || tt.wait > 0 && after != "8" {
			t.Errorf("%s: Retry-After %q", code, after)
		}
		e.ran(t, 0)
	}
}

func TestUnprotected(t *testing.T) {
	t.Parallel()
	for _, mode := range []idem.Mode{idem.ModeOff, idem.ModeOpen} {
		e := newEndpoint(t, nil, func(o *idem.Options) { o.Mode = mode })
		e.store.down = errors.New("down")
		want(t, e.deliver(t, succeeded), http.StatusOK, "")
		want(t, e.deliver(t, succeeded), http.StatusOK, "")
		e.ran(t, 2)
	}
}

// verifierFunc is a custom verifier.
type verifierFunc func(http.Header, []byte) (webhook.Event, error)

func (f verifierFunc) Verify(h http.Header, body []byte) (webhook.Event, error) { return f(h, body) }

var errPanics = errors.New("panics")

func TestOwnVerifier(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ev     webhook.Event
		err    error
		status int
		code   string
	}{
		"good":                 {webhook.Event{ID: "e1"}, nil, 200, ""},
		"refuses":              {webhook.Event{}, webhook.ErrNoValidSignature, 400, "no_valid_signature"},
		"errors of its own":    {webhook.Event{ID: "e1"}, errors.New("what?"), 400, "malformed"},
		"can't tell now":       {webhook.Event{}, fmt.Errorf("keys: %w", idem.ErrUnavailable), 503, "store_unavailable"},
		"names no event":       {webhook.Event{}, nil, 400, "malformed"},
		"names an event badly": {webhook.Event{ID: "a b"}, nil, 400, "malformed"},
		"panics":               {webhook.Event{}, errPanics, 500, "internal_error"},
	} {
		runs := 0
		h := webhook.New(&idem.MemoryStore{}, "own", verifierFunc(func(http.Header, []byte) (webhook.Event, error) {
			if tc.err == errPanics { //nolint:errorlint // the very same
				panic("boom")
			}
			return tc.ev, tc.err
		}),
			func(context.Context, webhook.Event) error { runs++; return nil })
		want(t, h.Serve(t.Context(), delivery(nil, "x")).Response, tc.status, tc.code)
		if (runs == 1) != (tc.status == 200) {
			t.Errorf("%s: ran %d times", name, runs)
		}
	}
}

func TestNewPanicsOnMistakes(t *testing.T) {
	t.Parallel()
	s, v := &idem.MemoryStore{}, newStripe(t, newClock())
	fn := func(context.Context, webhook.Event) error { return nil }
	for name, make := range map[string]func(){
		"store":    func() { webhook.New(nil, "e", v, fn) },
		"endpoint": func() { webhook.New(s, "", v, fn) },
		"verifier": func() { webhook.New(s, "e", nil, fn) },
		"handler":  func() { webhook.New(s, "e", v, nil) },
		"no room":  func() { webhook.New(s, "e", v, fn, func(o *idem.Options) { o.MaxRequest = -1 }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			make()
		}()
	}
	for retention, warns := range map[time.Duration]bool{80 * time.Hour: false, 80*time.Hour - 1: true} {
		var log bytes.Buffer
		webhook.New(s, "e", v, fn, func(o *idem.Options) { o.Retention, o.Logger = retention, slog.New(slog.NewTextHandler(&log, nil)) })
		if got := strings.Contains(log.String(), "Options.Retention"); got != warns {
			t.Errorf("retention %v: log %q, want a warning: %t", retention, log.String(), warns)
		}
	}
}

// Options shared with routes can't make the endpoint handle an event twice, or never.
func TestOptionsOfRoutes(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*idem.Options){
		"observed": func(o *idem.Options) {
			o.Mode, o.Stored = idem.ModeObserve, func(idem.Response) bool { return false }
			o.Resumable, o.StatusURL = true, "/status/"
			o.Methods = []string{http.MethodPut}
		},
		"long keys":    func(o *idem.Options) { o.MinKey = 22 },
		"Stripe":       idem.Stripe,
		"IETF":         idem.IETF,
		"ACP":          idem.ACP,
		"UCP":          idem.UCP,
		"formerly ACP": func(o *idem.Options) { o.Former = &idem.Former{Preset: idem.ACP, Claims: true} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, runs := new(idem.MemoryStore), 0
			deliver := func(id, path, code string, optFns ...func(*idem.Options)) {
				t.Helper()
				v := verifierFunc(func(http.Header, []byte) (webhook.Event, error) { return webhook.Event{ID: id}, nil })
				h := webhook.New(s, "own", v, func(context.Context, webhook.Event) error { runs++; return nil }, optFns...)
				r := delivery(nil, "x")
				r.Path = path
				want(t, h.Serve(t.Context(), r).Response, http.StatusOK, code)
			}
			deliver("evt_1", "/a", "")
			deliver("evt_1", "/b", "duplicate", set)
			deliver("evt_2", "/a", "", set)
			deliver("evt_2", "/b", "duplicate", set)
			if runs != 2 {
				t.Errorf("two events handled %d times", runs)
			}
		})
	}
}
