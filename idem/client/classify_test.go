package client_test

import (
	"errors"
	"testing"

	"github.com/samekey/samekey/idem/client"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		err    error
		want   client.Outcome
		retry  bool
	}{
		{401, nil, client.Unknown, true},
		{403, nil, client.Unknown, true},
		{404, nil, client.Rejected, false},
		{407, nil, client.Unknown, true},
		{410, nil, client.Rejected, false},
		{425, nil, client.Unknown, true},
		{200, nil, client.Succeeded, false},
		{204, nil, client.Succeeded, false},
		{200, errors.New("unexpected EOF"), client.Unknown, true},
		{0, nil, client.Unknown, true},
		{300, nil, client.Rejected, false},
		{302, nil, client.Rejected, false},
		{400, nil, client.Rejected, false},
		{402, nil, client.Declined, false},
		{408, nil, client.Unknown, true},
		{409, nil, client.Pending, true},
		{422, nil, client.Rejected, false},
		{429, nil, client.Unknown, true},
		{500, nil, client.Unknown, true},
		{503, nil, client.Unknown, true},
	} {
		got := client.Classify(tc.status, tc.err)
		if got != tc.want || got.Retry() != tc.retry {
			t.Errorf("%d, %v: %v, retry %t", tc.status, tc.err, got, got.Retry())
		}
	}
}

// A provider that knows the key has had an earlier call with it; this answer
// doesn't tell that call's outcome.
func TestClassifyAnswersAboutTheKey(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		codes  []string
		want   client.Outcome
	}{
		{400, []string{"idempotency_error", ""}, client.Unknown},                           // Stripe: other parameters
		{409, []string{"idempotency_error"}, client.Unknown},                               // older versions of Stripe
		{409, []string{"invalid_request_error", "idempotency_key_in_use"}, client.Pending}, // Stripe: the first call is still running
		{400, []string{"IDEMPOTENCY_KEY_REUSED"}, client.Unknown},                          // Square
		{409, []string{"idempotent_creation_conflict"}, client.Unknown},                    // GoCardless: the earlier call succeeded
		{422, []string{"idempotency_key_mismatch"}, client.Unknown},                        // package idem's
		{409, []string{"idempotency_in_flight"}, client.Pending},
		{409, []string{"idempotency_stuck"}, client.Unknown},
		{410, []string{"idempotency_key_expired"}, client.Unknown},
		{410, []string{"idempotency_answer_not_kept"}, client.Unknown},
		{402, []string{"card_error", "card_declined"}, client.Declined},
		{400, []string{"invalid_request_error", "parameter_missing"}, client.Rejected},
		{400, []string{"IDEMPOTENCY_KEY_IN_USE"}, client.Pending},
		{400, []string{"idempotent_request_in_progress"}, client.Pending},
		{400, []string{"email_in_use"}, client.Rejected}, // nothing about a key
		{200, []string{"idempotency_error"}, client.Succeeded},
		{500, []string{"idempotency_key_in_use"}, client.Unknown},
	} {
		if got := client.Classify(tc.status, nil, tc.codes...); got != tc.want {
			t.Errorf("%d %q: %v, want %v", tc.status, tc.codes, got, tc.want)
		}
	}
}

func TestOutcomeHasAName(t *testing.T) {
	t.Parallel()
	for o, want := range map[client.Outcome]string{
		client.Succeeded: "succeeded", client.Unknown: "unknown", client.Pending: "pending", client.Declined: "declined", client.Rejected: "rejected",
		-1: "invalid", client.Rejected + 1: "invalid",
	} {
		if got := o.String(); got != want {
			t.Errorf("%d: %q, want %q", int(o), got, want)
		}
	}
}
