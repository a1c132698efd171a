package idem

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The HTTP contract of every error, in both shapes. Add new errors here and
// explain them in docs/use/http.md.
func TestProblems(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/use/http.md")
	if err != nil {
		t.Fatal(err)
	}
	var tested atomic.Int64
	t.Cleanup(func() {
		if want := int64(len(problems) + 1); !t.Failed() && tested.Load() != want { // one for errors outside of the table
			t.Errorf("%d answers are tested, there are %d", tested.Load(), want)
		}
	})
	wrap := func(err error) error {
		return &Error{Op: "claim", Record: "12345678", RetryAfter: 1500 * time.Millisecond, Err: fmt.Errorf("%w: more", err)}
	}
	for _, tt := range []struct {
		err        error
		status     int
		code       string
		retryAfter string
		stripe     string // type
		acp        string // type
	}{
		{ErrKeyMissing, 400, "idempotency_key_missing", "", "invalid_request_error", "invalid_request"},
		{ErrKeyInvalid, 400, "idempotency_key_invalid", "", "invalid_request_error", "invalid_request"},
		{ErrTooLarge, 413, "request_too_large", "", "invalid_request_error", "invalid_request"},
		{ErrRequest, 400, "request_invalid", "", "invalid_request_error", "invalid_request"},
		{ErrMismatch, 422, "idempotency_key_mismatch", "", "idempotency_error", "invalid_request"},
		{ErrNotKept, 410, "idempotency_answer_not_kept", "", "idempotency_error", "invalid_request"},
		{ErrEncoding, 406, "idempotency_encoding", "", "idempotency_error", "invalid_request"},
		{ErrStuck, 409, "idempotency_stuck", "", "idempotency_error", "invalid_request"},
		{ErrUnfinished, 503, "idempotency_unfinished", "2", "api_error", "service_unavailable"},
		{ErrInFlight, 409, "idempotency_in_flight", "2", "idempotency_error", "invalid_request"},
		{ErrLeaseLost, 409, "idempotency_lease_lost", "2", "idempotency_error", "invalid_request"},
		{ErrConflict, 409, "conflict", "2", "idempotency_error", "invalid_request"},
		{ErrKeyUnknown, 404, "idempotency_key_unknown", "", "idempotency_error", "invalid_request"},
		{ErrNoTime, 503, "no_time_left", "2", "api_error", "service_unavailable"},
		{ErrQuota, 429, "quota_exceeded", "2", "invalid_request_error", "service_unavailable"},
		{ErrUnavailable, 503, "store_unavailable", "2", "api_error", "service_unavailable"},
		{ErrUnprotected, 503, "unprotected", "2", "api_error", "service_unavailable"},
		{ErrCorrupt, 500, "record_corrupt", "", "api_error", "processing_error"},
		{ErrIncomparable, 503, "idempotency_incomparable", "2", "api_error", "service_unavailable"},
		{ErrScope, 500, "scope_unknown", "", "api_error", "processing_error"},
		{errors.New("anything else"), 500, "internal_error", "", "api_error", "processing_error"},
	} {
		t.Run(tt.code, func(t *testing.T) {
			t.Parallel()
			r := ProblemJSON(problemOf(wrap(tt.err)))
			var body struct {
				Type, Title, Detail, Code string
				Status                    int
			}
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			if r.Status != tt.status || body.Status != tt.status || body.Code != tt.code || body.Title == "" || body.Detail == "" {
				t.Errorf("got %d %s", r.Status, r.Body)
			}
			if got := r.Header.Get("Retry-After"); got != tt.retryAfter {
				t.Errorf("Retry-After %q, want %q", got, tt.retryAfter)
			}
			if got := r.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("content type %q", got)
			}
			if strings.Contains(string(r.Body), "more") {
				t.Errorf("the cause is shown to the client: %s", r.Body)
			}
			if _, anchor, _ := strings.Cut(body.Type, "#"); !strings.Contains(string(page), "## "+anchor+"\n") {
				t.Errorf("docs/use/http.md doesn't explain %s", body.Type)
			}

			wait := tt.retryAfter
			switch {
			case errors.Is(tt.err, ErrIncomparable):
				wait = "300"
			case wait != "":
				wait = "1"
			}
			if got := ProblemJSON(problemOf(tt.err)).Header.Get("Retry-After"); got != wait {
				t.Errorf("Retry-After %q of an error without one, want %q", got, wait)
			}

			tested.Add(1)
			s := stripeJSON(problemOf(wrap(tt.err)))
			if want := strconv.FormatBool(tt.retryAfter != "" || tt.code == "internal_error"); s.Header.Get("Stripe-Should-Retry") != want {
				t.Errorf("Stripe-Should-Retry %q, want %s", s.Header.Get("Stripe-Should-Retry"), want)
			}
			var stripe struct {
				Error struct{ Code, Message, Type string }
			}
			if err := json.Unmarshal(s.Body, &stripe); err != nil {
				t.Fatal(err)
			}
			status := tt.status
			if status == http.StatusUnprocessableEntity {
				status = http.StatusBadRequest
			}
			if s.Status != status || stripe.Error.Type != tt.stripe || stripe.Error.Message == "" {
				t.Errorf("Stripe's shape: got %d %s", s.Status, s.Body)
			}

			code := cmp.Or(map[string]string{"idempotency_key_missing": "idempotency_key_required", "idempotency_key_mismatch": "idempotency_conflict"}[tt.code], tt.code)
			var acp struct{ Type, Code, Message string }
			a := acpJSON(problemOf(wrap(tt.err)))
			if err := json.Unmarshal(a.Body, &acp); err != nil || a.Status != tt.status || acp.Type != tt.acp || acp.Code != code || acp.Message != body.Title+". "+body.Detail {
				t.Errorf("ACP's shape: got %d %s, %v", a.Status, a.Body, err)
			}
			if status = tt.status; status == http.StatusUnprocessableEntity {
				status = http.StatusConflict
			}
			var ucp struct{ Code, Content string }
			u := ucpJSON(problemOf(wrap(tt.err)))
			if err := json.Unmarshal(u.Body, &ucp); err != nil || u.Status != status || ucp.Code != code || ucp.Content != acp.Message {
				t.Errorf("UCP's shape: got %d %s, %v", u.Status, u.Body, err)
			}
		})
	}
	if got := stripeJSON(problemOf(ErrMismatch)); !strings.Contains(string(got.Body), "same parameters") {
		t.Errorf("mismatch in Stripe's words: %s", got.Body)
	}
	if got := stripeJSON(problemOf(ErrInFlight)); !strings.Contains(string(got.Body), "idempotency_key_in_use") || !strings.Contains(string(got.Body), "in-progress") {
		t.Errorf("in flight in Stripe's words: %s", got.Body)
	}
	for _, why := range []error{errNotCanonical, errNotUTF8, errTooLong, errTooDeep, errTwice, errCase, errSurrogate} {
		got := acpJSON(problemOf(fmt.Errorf("%w: %w", ErrRequest, why)))
		if !strings.Contains(string(got.Body), `"The body `+why.Error()+". ") || !strings.Contains(string(got.Body), `"request_invalid"`) {
			t.Errorf("a body that %v, in ACP's words: %s", why, got.Body)
		}
	}
	if problemOf(ErrInFlight).Status != http.StatusConflict {
		t.Error("in flight isn't 409")
	}
}
