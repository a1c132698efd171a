package client_test

import (
	"errors"
	"testing"

	"github.com/samekey/samekey/idem/client"
)

// A provider that knows the key has had an earlier call with it; this answer doesn't tell
// that call's outcome.
func TestClassify(t *testing.T) {
	t.Parallel()
	torn := errors.New("unexpected EOF")
	for _, tt := range []struct {
		status int
		err    error
		codes  []string
		want   client.Outcome
	}{
		{0, nil, nil, client.Unknown},
		{200, nil, nil, client.Succeeded},
		{204, nil, nil, client.Succeeded},
		{200, torn, nil, client.Unknown},
		{300, nil, nil, client.Rejected},
		{302, nil, nil, client.Rejected},
		{400, nil, nil, client.Rejected},
		{401, nil, nil, client.Unknown},
		{402, nil, nil, client.Declined},
		{403, nil, nil, client.Unknown},
		{404, nil, nil, client.Rejected},
		{407, nil, nil, client.Unknown},
		{408, nil, nil, client.Unknown},
		{409, nil, nil, client.Pending},
		{410, nil, nil, client.Rejected},
		{422, nil, nil, client.Rejected},
		{425, nil, nil, client.Unknown},
		{429, nil, nil, client.Unknown},
		{500, nil, nil, client.Unknown},
		{503, nil, nil, client.Unknown},
		{400, nil, []string{"idempotency_error", ""}, client.Unknown}, // Stripe: other parameters
		{409, nil, []string{"idempotency_error"}, client.Unknown},     // older versions of Stripe
		{409, nil, []string{"invalid_request_error", "idempotency_key_in_use"}, client.Pending}, // Stripe: the first call is still running
		{400, nil, []string{"IDEMPOTENCY_KEY_REUSED"}, client.Unknown},                          // Square
		{409, nil, []string{"idempotent_creation_conflict"}, client.Unknown},                    // GoCardless: the earlier call succeeded
		{422, nil, []string{"idempotency_key_mismatch"}, client.Unknown},                        // package idem's
		{409, nil, []string{"idempotency_in_flight"}, client.Pending},
		{409, nil, []string{"idempotency_stuck"}, client.Unknown},
		{410, nil, []string{"idempotency_answer_not_kept"}, client.Unknown},
		{402, nil, []string{"card_error", "card_declined"}, client.Declined},
		{400, nil, []string{"invalid_request_error", "parameter_missing"}, client.Rejected},
		{400, nil, []string{"IDEMPOTENCY_KEY_IN_USE"}, client.Pending},
		{400, nil, []string{"idempotent_request_in_progress"}, client.Pending},
		{400, nil, []string{"email_in_use"}, client.Rejected}, // nothing about a key
		{200, nil, []string{"idempotency_error"}, client.Succeeded},
		{500, nil, []string{"idempotency_key_in_use"}, client.Unknown},
	} {
		got := client.Classify(tt.status, tt.err, tt.codes...)
		if again := tt.want == client.Unknown || tt.want == client.Pending; got != tt.want || got.Retry() != again {
			t.Errorf("%d, %v, %q: %v, retry %t; want %v, %t", tt.status, tt.err, tt.codes, got, got.Retry(), tt.want, again)
		}
	}
	for o, want := range map[client.Outcome]string{
		client.Succeeded: "succeeded", client.Unknown: "unknown", client.Pending: "pending", client.Declined: "declined", client.Rejected: "rejected",
		-1: "invalid", client.Rejected + 1: "invalid",
	} {
		if got := o.String(); got != want {
			t.Errorf("%d: %q, want %q", int(o), got, want)
		}
	}
}
