package rides_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/samekey/samekey/examples/rides"
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
		{"a new charge", 201, `{"id":"ch_1"}`, nil, false},
		{"a charge without id", 200, `{}`, nil, true},
		{"half a charge", 200, `{"id":"ch_`, nil, true},
		{"declined", 402, `{}`, rides.ErrDeclined, false},
		{"in flight", 409, ``, nil, true},
		{"too many", 429, ``, nil, true},
		{"took too long to send", 408, ``, nil, true},
		{"bad request", 400, ``, rides.ErrRefused, false},
		{"unauthorized", 401, ``, rides.ErrRefused, false},
		{"not found", 404, ``, rides.ErrRefused, false},
		{"elsewhere", 304, ``, rides.ErrRefused, false},
		{"broken", 500, ``, nil, true},
		{"down", 503, ``, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer srv.Close()
			pay := rides.Payments{URL: srv.URL}
			c, err := pay.Charge(t.Context(), "cus_jane", 2000, "Ride 1", "key")
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

func TestChargeSendsItsKey(t *testing.T) {
	t.Parallel()
	st := inMemory(t)
	for range 2 {
		if _, err := st.app.Payments.Charge(t.Context(), "cus_jane", 2000, "Ride 1", "key"); err != nil {
			t.Fatal(err)
		}
	}
	if got := st.charges(t); len(got) != 1 || got[0].Key != "key" || got[0].Calls != 2 {
		t.Errorf("got %+v, want one charge of two calls", got)
	}
}

func TestRefusedPaymentIsDefinitive(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		srv := httptest.NewServer(http.NotFoundHandler())
		defer srv.Close()
		st.app.Payments.URL = srv.URL
		first := st.post(t, jane, "k", trip).is(t, http.StatusBadGateway).has(t, "You were not charged")
		st.app.Payments.URL = st.url
		st.post(t, jane, "k", trip).replays(t, first)
		st.want(t, seen{Rides: 1, Audits: 1})
	})
}
