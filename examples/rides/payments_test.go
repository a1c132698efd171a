package rides_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/world"
)

func TestWhatThePaymentProviderAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   error
		again  bool // an error after which to try again
	}{
		{"a charge", 200, `{"id":"ch_1","object":"charge"}`, nil, false},
		{"a charge without id", 200, `{}`, nil, true},
		{"declined", 402, `{}`, rides.ErrDeclined, false},
		{"in flight", 409, ``, nil, true},
		{"bad request", 400, ``, rides.ErrRefused, false},
		{"unauthorized", 401, ``, nil, true},
		{"the key was used before", 400, `{"error":{"type":"idempotency_error"}}`, nil, true},
		{"not found", 404, ``, rides.ErrRefused, false},
		{"broken", 500, ``, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer srv.Close()
			pay := rides.Payments{URL: srv.URL}
			c, err := pay.Charge(t.Context(), rides.Bill{Customer: "cus_jane", Amount: 2000, Description: "Ride 1"}, "key")
			final := errors.Is(err, rides.ErrDeclined) || errors.Is(err, rides.ErrRefused)
			switch {
			case tc.again:
				if err == nil || final {
					t.Errorf("got %v, want an error that isn't final", err)
				}
			case !errors.Is(err, tc.want):
				t.Errorf("got %v, want %v", err, tc.want)
			case err == nil && c.ID != "ch_1":
				t.Errorf("got %+v", c)
			}
		})
	}
}

// The money was taken, the answer was lost, and the next try is refused: by
// then that says nothing of the first. So nothing final is said, and the charge
// is found once the provider answers again.
func TestRefusalAfterALostAnswerIsNotFinal(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]struct {
		status int
		body   string
	}{
		"the key was used with other parameters": {400, `{"error":{"type":"idempotency_error","message":"Keys for idempotent requests can only be used with the same parameters"}}`},
		"the URL has changed":                    {404, `not found`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := inMemory(t)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(refusal.status)
				_, _ = io.WriteString(w, refusal.body)
			}))
			defer srv.Close()
			st.world.SetMode(world.Mode{Charge: world.ChargeThenDrop, Times: 1})
			st.post(t, jane, "k", trip).is(t, 500)
			st.app.Payments.URL = srv.URL
			st.post(t, jane, "k", trip).is(t, 500).has(t, "Retry with the same key")
			st.app.Payments.URL = st.url
			st.post(t, jane, "k", trip).is(t, 201)
			want := whole
			want.Calls = 2
			st.want(t, want)
		})
	}
}

// The provider forgets a charge's key before the retry comes: it is asked, and charges once all the same.
func TestForgottenChargeIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode   world.Mode
		before func(t *testing.T, st *stage) // before the last retry
		later  time.Duration
		status int
		want   seen
	}{
		"charged":           {world.Mode{Charge: world.ChargeThenDrop, Times: 1}, nil, 25 * time.Hour, 201, whole},
		"not charged":       {world.Mode{Charge: world.Error, Times: 1}, nil, 25 * time.Hour, 201, whole},
		"too early to tell": {world.Mode{Charge: world.Error, Times: 1}, nil, 5 * time.Minute, 503, seen{Rides: 1, Audits: 1}},
		"the provider is down": {world.Mode{Charge: world.ChargeThenDrop, Times: 1}, func(t *testing.T, st *stage) {
			t.Helper()
			st.app.Payments.URL = "http://127.0.0.1:1"
		}, 25 * time.Hour, 503, seen{Rides: 1, Audits: 1, Charges: 1, Calls: 1}},
		"charged twice": {world.Mode{Charge: world.ChargeThenDrop, Times: 1}, func(t *testing.T, st *stage) {
			t.Helper()
			pay := rides.Payments{URL: st.url}
			if _, err := pay.Charge(t.Context(), rides.Bill{Customer: "cus_jane", Amount: rides.Price}, st.charges(t)[0].Key); err != nil {
				t.Fatal(err)
			}
		}, 25 * time.Hour, 409, seen{Rides: 1, Audits: 1, Charges: 2, Calls: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := inMemory(t)
			st.world.Memory, st.app.Memory = time.Nanosecond, time.Minute
			st.world.SetMode(tt.mode)
			st.post(t, jane, "k", trip).is(t, 500)
			if tt.before != nil {
				tt.before(t, st)
			}
			st.clock = st.clock.Add(tt.later)
			st.post(t, jane, "k", trip).is(t, tt.status)
			st.want(t, tt.want)
		})
	}
}

// Prices change while requests are under way: who was charged the old one hears
// of the old one, and is charged once.
func TestPriceChangesAfterALostAnswer(t *testing.T) {
	t.Parallel()
	st := inMemory(t)
	st.world.SetMode(world.Mode{Charge: world.ChargeThenDrop, Times: 1})
	st.post(t, jane, "k", trip).is(t, 500)
	st.app.Price = 2500
	st.post(t, jane, "k", trip).is(t, 201)
	want := whole
	want.Calls = 2
	st.want(t, want)
	if c := st.charges(t)[0]; c.Amount != rides.Price {
		t.Errorf("charged %d", c.Amount)
	}
	st.post(t, jane, "another", trip).is(t, 201)
	if c := st.charges(t)[1]; c.Amount != 2500 {
		t.Errorf("the next ride: charged %d", c.Amount)
	}
}

func TestRefusedPaymentIsDefinitive(t *testing.T) {
	t.Parallel()
	st := inMemory(t)
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	st.app.Payments.URL = srv.URL
	first := st.post(t, jane, "k", trip).is(t, http.StatusBadGateway).has(t, "The payment was refused.")
	st.app.Payments.URL = st.url
	st.post(t, jane, "k", trip).replays(t, first)
	st.want(t, seen{Rides: 1, Audits: 1})
}
