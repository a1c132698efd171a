package calls_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	idemclient "github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// What a retry costs that its client marks, as idem/client does: a read, where any other
// costs a refused write. proof/bench has the units and the dollars.
//
//nolint:tparallel // the steps are one story on one table
func TestCallsPerRetryOfAClient(t *testing.T) {
	t.Parallel()
	store, tr := newStore(t)
	status, inside := 0, func() {}
	server := httptest.NewServer(idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Lease = 10 * time.Minute }).Middleware(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			inside()
			w.WriteHeader(status)
		})))
	t.Cleanup(server.Close)
	lost := &losing{base: http.DefaultTransport}
	hc := &http.Client{Transport: idemclient.New(lost, func(o *idemclient.Options) { o.InitialDelay, o.MaxDelay = 1, 1 })}
	post := func(t *testing.T, key string, sign string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(idem.KeyHeader, key)
		if sign != "" {
			req.Header.Set("X-Stainless-Retry-Count", sign)
		}
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for _, tt := range []struct {
		name   string
		status int
		lost   int
		sign   string
		want   calls
	}{
		{"new", 201, 0, "", calls{"PutItem": 1, "UpdateItem": 1}},
		{"new, its answer is lost, and its retry replays", 201, 1, "", calls{"PutItem": 1, "UpdateItem": 1, "GetItem": 1}},
		{"new, and marked as a retry", 201, 0, "1", calls{"PutItem": 1, "UpdateItem": 1, "GetItem": 1}},
		{"three tries, none of which is stored", 503, 0, "", calls{"PutItem": 3, "UpdateItem": 3, "GetItem": 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr.Reset()
			status, lost.n = tt.status, tt.lost
			if got := post(t, rand.Text(), tt.sign); got != tt.status {
				t.Errorf("got %d", got)
			}
			if diff := cmp.Diff(tt.want, tr.Calls()); diff != "" {
				t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("in flight", func(t *testing.T) {
		status = 201
		for sign, want := range map[string]calls{"": {"PutItem": 1}, "2": {"GetItem": 1}} {
			inside = func() {
				tr.Reset()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders", strings.NewReader("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set(idem.KeyHeader, "held-"+sign)
				req.Header.Set("X-Stainless-Retry-Count", sign)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				if diff := cmp.Diff(want, tr.Calls()); diff != "" || resp.StatusCode != http.StatusConflict {
					t.Errorf("%q: %d, DynamoDB calls (-want +got):\n%s", sign, resp.StatusCode, diff)
				}
			}
			post(t, "held-"+sign, "")
		}
		inside = func() {}
	})
}

// losing loses the next answers.
type losing struct {
	base http.RoundTripper
	n    int
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(r)
	if err == nil && l.n > 0 {
		l.n--
		_ = resp.Body.Close()
		return nil, errors.New("connection reset by peer")
	}
	return resp, err
}

// A webhook that its sender marks as delivered again is looked for, too.
func TestCallsPerRepeatedDelivery(t *testing.T) {
	t.Parallel()
	store, tr := newStore(t)
	h := webhook.New(store, "square", signed{}, func(context.Context, webhook.Event) error { return nil })
	for _, tt := range []struct {
		name   string
		header http.Header
		want   calls
	}{
		{"new", nil, calls{"PutItem": 1, "UpdateItem": 1}},
		{"again, unmarked", nil, calls{"PutItem": 1}},
		{"again", http.Header{"Square-Retry-Number": {"1"}}, calls{"GetItem": 1}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		tr.Reset()
		if re := h.Serve(ctx, idem.Request{Method: "POST", Header: tt.header, Body: []byte("{}")}); re.Status != http.StatusOK {
			t.Errorf("%s: %d %s", tt.name, re.Status, re.Body)
		}
		cancel()
		if diff := cmp.Diff(tt.want, tr.Calls()); diff != "" {
			t.Errorf("%s: DynamoDB calls (-want +got):\n%s", tt.name, diff)
		}
	}
}

// signed takes every delivery for the same event.
type signed struct{}

func (signed) Verify(http.Header, []byte) (webhook.Event, error) {
	return webhook.Event{ID: "evt-1"}, nil
}
