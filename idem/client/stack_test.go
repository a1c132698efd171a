package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stripe/stripe-go/v85"

	"github.com/samekey/samekey/idem/client"
)

// Credentials are added by a transport like oauth2's, which sends a clone.
func TestWithOAuth2(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(http.RoundTripper, *oauth) http.RoundTripper{
		"inside":  func(base http.RoundTripper, o *oauth) http.RoundTripper { o.base = base; return client.New(o) },
		"outside": func(base http.RoundTripper, o *oauth) http.RoundTripper { o.base = client.New(base); return o },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{failing(errReset), answer(503), answer(201)}}
				o := &oauth{}
				hc := &http.Client{Transport: wrap(s, o)}
				if resp := post(t, hc, "https://api.test/"); resp.StatusCode != 201 {
					t.Errorf("status %d", resp.StatusCode)
				}
				tokens := map[string]bool{}
				for _, a := range s.attempts() {
					tokens[a.Header.Get("Authorization")] = true
					if a.Key != s.attempts()[0].Key || a.Key == "" || a.Body != "x" {
						t.Errorf("attempt %+v", a)
					}
				}
				want := map[string]int{"inside": 3, "outside": 1}[name]
				if len(s.attempts()) != 3 || len(tokens) != want || tokens[""] {
					t.Errorf("%d attempts, tokens %v; want %d", len(s.attempts()), tokens, want)
				}
			})
		})
	}
}

// oauth behaves like oauth2.Transport.
type oauth struct {
	base http.RoundTripper
	n    int
}

func (o *oauth) RoundTrip(req *http.Request) (*http.Response, error) {
	o.n++
	r := new(http.Request)
	*r = *req
	r.Header = req.Header.Clone()
	r.Header.Set("Authorization", fmt.Sprint("Bearer token-", o.n))
	return o.base.RoundTrip(r)
}

// The real stripe-go, with and without its own retries: it sends its own key for
// each call, and returns its own errors for Stripe's.
func TestUnderStripeGo(t *testing.T) {
	t.Parallel()
	for _, retries := range []int64{0, 2} {
		t.Run(fmt.Sprint("with retries of its own: ", retries), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &fakeStripe{plan: []string{"lost", "rate limited"}, stored: map[string]*storedCharge{}}
				network, _ := serve(t, s, nil)
				sc := stripe.NewClient("sk_test", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
					HTTPClient: &http.Client{Transport: client.New(network)}, URL: stripe.String("http://api.test"),
					MaxNetworkRetries: &retries, EnableTelemetry: new(false), LeveledLogger: &stripe.LeveledLogger{},
				})))
				charge := func(card, key string) (*stripe.Charge, error) {
					params := &stripe.ChargeCreateParams{Amount: stripe.Int64(2000), Currency: stripe.String("usd")}
					if err := params.SetSource(card); err != nil {
						t.Fatal(err)
					}
					if key != "" {
						params.SetIdempotencyKey(key)
					}
					return sc.V1Charges.Create(t.Context(), params)
				}

				ch, err := charge("visa", "")
				if err != nil || ch.ID != "ch_1" || ch.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("%+v, %v", ch, err)
				}
				if len(s.keys) != 3 || len(s.charges) != 1 || s.keys[1] != s.keys[0] || s.keys[2] != s.keys[0] || s.keys[0] == "" {
					t.Errorf("keys %q, charges %q", s.keys, s.charges)
				}
				if ch, err = charge("visa", ""); err != nil || ch.ID != "ch_2" || s.keys[3] == s.keys[0] {
					t.Errorf("the next charge: %+v, %v, keys %q", ch, err, s.keys)
				}
				if _, err := charge("visa", "mine"); err != nil {
					t.Error(err)
				}
				_, err = charge("amex", "mine")
				if e, ok := errors.AsType[*stripe.Error](err); !ok || e.Type != stripe.ErrorTypeIdempotency || len(s.keys) != 6 {
					t.Errorf("%v after %d requests, want an idempotency error at once", err, len(s.keys))
				}
			})
		})
	}
}
