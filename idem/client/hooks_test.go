package client_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
)

// Each event tells what happened, and nothing is told that didn't happen.
func TestEvents(t *testing.T) {
	t.Parallel()
	slow := func(do step) step {
		return func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second) //nolint:forbidigo // virtual
			return do(r)
		}
	}
	status503, inner := errors.New("status 503"), errors.New("token: no answer")
	const half = 500 * time.Millisecond
	for name, tt := range map[string]struct {
		method, operation string
		steps             []step
		want              []client.Event
	}{
		"a named operation": {"POST", "order-42", []step{slow(answer(503)), failing(errReset), answer(201)}, []client.Event{
			{Keyed: true},
			{Keyed: true, Attempt: 1, Status: 503, Took: time.Second},
			{Keyed: true, Attempt: 1, Wait: half, Reason: "status", Err: status503},
			{Keyed: true, Attempt: 2, Err: errReset},
			{Keyed: true, Attempt: 2, Wait: half, Reason: "network", Err: errReset},
			{Keyed: true, Attempt: 3, Status: 201},
		}},
		"a request without a key": {"GET", "", []step{answer(503), answer(503)}, []client.Event{
			{Attempt: 1, Status: 503},
			{Attempt: 1, Wait: half, Reason: "status", Err: status503},
			{Attempt: 2, Status: 503},
			{Attempt: 2, Wait: half, Reason: "status", Err: status503},
			{Attempt: 3, Status: 503},
			{Attempt: 3, Status: 503, Reason: "retries"},
		}},
		"an error that stays": {"GET", "", []step{failing(x509.UnknownAuthorityError{})}, []client.Event{{Attempt: 1, Err: x509.UnknownAuthorityError{}}}},
		"a final answer of a server that ignores keys": {"POST", "", []step{answer(201, "Idempotency-Status", "ignored")}, []client.Event{
			{Keyed: true}, {Keyed: true, Attempt: 1, Status: 201},
		}},
		"an error of a transport inside": {"GET", "", []step{failing(inner), answer(200)}, []client.Event{
			{Attempt: 1, Err: inner}, {Attempt: 1, Wait: half, Reason: "network", Err: inner}, {Attempt: 2, Status: 200},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &counts{}
				req := request(t, tt.method, "x")
				opt := func(*client.Options) {}
				if tt.operation != "" {
					req, opt = named(t, tt.method, tt.operation, "x"), with(open(t, journalFile(t)))
				}
				resp, err := client.New(&script{steps: tt.steps}, opt, func(o *client.Options) {
					o.Hooks, o.MaxDelay = c.hooks(), half
				}).RoundTrip(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				for i := range tt.want {
					e := &tt.want[i]
					e.Method, e.Host, e.Operation = tt.method, "api.test", tt.operation
				}
				if diff := cmp.Diff(tt.want, c.events, cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}
