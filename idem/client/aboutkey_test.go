package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// An answer about the key means that the server knows the key: an earlier attempt
// arrived. The answer doesn't tell that attempt's outcome, so it settles nothing.
func TestAnswerAboutTheKeySettlesNothing(t *testing.T) {
	t.Parallel()
	const problem = `{"type":"about:blank","title":"no","status":422,"code":%q}`
	for name, tt := range map[string]struct {
		status int
		body   string
		marked bool
	}{
		"mismatch":                  {422, fmt.Sprintf(problem, "idempotency_key_mismatch"), true},
		"Stripe's":                  {400, `{"error":{"type":"idempotency_error","message":"Keys for idempotent requests …"}}`, true},
		"Square's":                  {400, `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED"}]}`, true},
		"by its type only":          {422, `{"type":"https://developer.example.com/idempotency","title":"no"}`, true},
		"another shape":             {422, `{"error":"Conflict","code":"idempotent_creation_conflict"}`, true},
		"carried out, and not kept": {410, fmt.Sprintf(problem, "idempotency_answer_not_kept"), false},
		"the key is no key":         {400, fmt.Sprintf(problem, "idempotency_key_invalid"), false},
		"no key":                    {400, `{"error":{"type":"invalid_request_error","code":"idempotency_key_missing"}}`, false},
		"about the request":         {422, fmt.Sprintf(problem, "amount_too_small"), false},
		"what a user wrote":         {422, `{"code":"invalid","detail":"idempotency_key_mismatch","data":{"code":"idempotency_error"}}`, false},
		"a field of another type":   {422, `{"type":1,"code":"idempotency_key_mismatch"}`, true},
		"no JSON":                   {422, `idempotency_key_mismatch`, false},
		"a list":                    {422, `["idempotency_key_mismatch"]`, false},
		"done":                      {201, fmt.Sprintf(problem, "idempotency_key_mismatch"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				// The base transport may have sent the request before, unknown to this one.
				for _, before := range [][]step{{failing(errReset)}, nil} {
					j := open(t, journalFile(t))
					s := &script{steps: append(before, answerBody(tt.status, tt.body))}
					resp, body, err := roundTrip(t, client.New(s, with(j)), named(t, "POST", "order-42", "x"))
					if err != nil || resp.StatusCode != tt.status || body != tt.body {
						t.Fatalf("%v, %v: the answer was changed", resp, err)
					}
					if got := resp.Header.Get(client.ResultHeader) == client.OutcomeUnknown; got != tt.marked {
						t.Errorf("after %d attempts, marked as unknown: %t, want %t", len(before), got, tt.marked)
					}
					if e := j.Entries(); len(e) != 1 || e[0].Answered.IsZero() != tt.marked {
						t.Errorf("the journal has it as answered: %+v", e)
					}
				}
			})
		})
	}
}

// The answer of a charge is lost, and the token is refreshed in the meantime: the retry
// gets the answer, since the caller is the same.
func TestRefreshedTokenAfterALostAnswer(t *testing.T) {
	t.Parallel()
	var charges, requests atomic.Int64
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	srv := httptest.NewServer(engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		charges.Add(1)
		w.WriteHeader(http.StatusCreated)
	})))
	t.Cleanup(srv.Close)
	refreshed := roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		n := requests.Add(1)
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", fmt.Sprintf("Bearer token-%d", n))
		resp, err := srv.Client().Transport.RoundTrip(r)
		if err == nil && n == 1 {
			_ = resp.Body.Close()
			return nil, errReset
		}
		return resp, err
	})
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, srv.URL+"/charges", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, _, err := roundTrip(t, client.New(refreshed, fast), req)
	if err != nil || resp.StatusCode != http.StatusCreated || charges.Load() != 1 {
		t.Fatalf("%v, %v, %d charges", resp, err, charges.Load())
	}
	if got := resp.Header.Get(client.ResultHeader); got == client.OutcomeUnknown {
		t.Errorf("%s: %q of a charge whose answer came", client.ResultHeader, got)
	}
}
