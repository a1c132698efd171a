package idem_test

import (
	"errors"
	"testing"

	"github.com/samekey/samekey/idem"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		err    error
		want   idem.Outcome
		retry  bool
	}{
		{401, nil, idem.Unknown, true},
		{403, nil, idem.Unknown, true},
		{404, nil, idem.Rejected, false},
		{407, nil, idem.Unknown, true},
		{410, nil, idem.Rejected, false},
		{425, nil, idem.Unknown, true},
		{200, nil, idem.Succeeded, false},
		{204, nil, idem.Succeeded, false},
		{200, errors.New("unexpected EOF"), idem.Unknown, true},
		{0, nil, idem.Unknown, true},
		{302, nil, idem.Rejected, false},
		{400, nil, idem.Rejected, false},
		{402, nil, idem.Declined, false},
		{408, nil, idem.Unknown, true},
		{409, nil, idem.Pending, true},
		{422, nil, idem.Rejected, false},
		{429, nil, idem.Unknown, true},
		{500, nil, idem.Unknown, true},
		{503, nil, idem.Unknown, true},
	} {
		got := idem.Classify(tc.status, tc.err)
		if got != tc.want || got.Retry() != tc.retry {
			t.Errorf("%d, %v: %v, retry %t", tc.status, tc.err, got, got.Retry())
		}
	}
}

// A provider that knows the key has had an earlier call with it, and doesn't say
// here what that came to.
func TestClassifyAnswersAboutTheKey(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		codes  []string
		want   idem.Outcome
	}{
		{400, []string{"idempotency_error", ""}, idem.Unknown},                           // Stripe: other parameters
		{409, []string{"idempotency_error"}, idem.Unknown},                               // as older versions of it
		{409, []string{"invalid_request_error", "idempotency_key_in_use"}, idem.Pending}, // Stripe: under way
		{400, []string{"IDEMPOTENCY_KEY_REUSED"}, idem.Unknown},                          // Square
		{409, []string{"idempotent_creation_conflict"}, idem.Unknown},                    // GoCardless: made before
		{422, []string{"idempotency_key_mismatch"}, idem.Unknown},                        // this package's
		{409, []string{"idempotency_in_flight"}, idem.Pending},
		{409, []string{"idempotency_stuck"}, idem.Unknown},
		{410, []string{"idempotency_key_expired"}, idem.Unknown},
		{410, []string{"idempotency_answer_not_kept"}, idem.Unknown},
		{402, []string{"card_error", "card_declined"}, idem.Declined},
		{400, []string{"invalid_request_error", "parameter_missing"}, idem.Rejected},
		{200, []string{"idempotency_error"}, idem.Succeeded},
		{500, []string{"idempotency_key_in_use"}, idem.Unknown},
	} {
		if got := idem.Classify(tc.status, nil, tc.codes...); got != tc.want {
			t.Errorf("%d %q: %v, want %v", tc.status, tc.codes, got, tc.want)
		}
	}
}
