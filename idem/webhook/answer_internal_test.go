package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
)

// Each error has its answer, which makes the provider try again: never a 2xx, or a 410. The wait
// is the engine's if that is longer, where one is told at all.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		status int
		code   string
		retry  string // Retry-After
		later  string // if the engine tells 7.5 s
	}{
		{errMethod, 405, "method_not_allowed", "", ""},
		{idem.ErrTooLarge, 413, "body_too_large", "", ""},
		{ErrNotSigned, 400, "not_signed", "", ""},
		{ErrNoValidSignature, 400, "no_valid_signature", "", ""},
		{ErrTooOld, 400, "too_old", "", ""},
		{ErrTooNew, 400, "too_new", "", ""},
		{ErrMalformed, 400, "malformed", "", ""},
		{errNotRecorded, 503, "not_recorded", "1", "8"},
		{idem.ErrStuck, 409, "stuck", "", ""},
		{idem.ErrInFlight, 409, "in_flight", "1", "8"},
		{idem.ErrLeaseLost, 409, "in_flight", "1", "8"},
		{idem.ErrNoTime, 503, "no_time_left", "1", "8"},
		{idem.ErrQuota, 429, "quota_exceeded", "1", "8"},
		{idem.ErrUnavailable, 503, "store_unavailable", "1", "8"},
		{&handlerError{idem.ErrInFlight}, 500, "internal_error", "", ""},
		{errors.New("anything else"), 500, "internal_error", "", ""},
	} {
		for after, retry := range map[time.Duration]string{0: tt.retry, time.Millisecond: tt.retry, 7500 * time.Millisecond: tt.later} {
			err := tt.err
			if after > 0 {
				err = &idem.Error{RetryAfter: after, Err: err}
			}
			re := answer(fmt.Errorf("delivery: %w", err))
			var problem struct {
				Type, Title, Detail, Code string
				Status                    int
			}
			if err := json.Unmarshal(re.Body, &problem); err != nil {
				t.Fatal(err)
			}
			if re.Status != tt.status || problem.Status != tt.status || problem.Code != tt.code || problem.Type != docs+tt.code || problem.Title == "" || problem.Detail == "" {
				t.Errorf("%v: %d %s", tt.err, re.Status, re.Body)
			}
			if got := re.Header.Get("Retry-After"); got != retry {
				t.Errorf("%v, told %v: Retry-After %q, want %q", tt.err, after, got, retry)
			}
			if allow := re.Header.Get("Allow"); (allow == "POST") != (tt.status == 405) || re.Header.Get("Cache-Control") != "no-store" || re.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%v: %v", tt.err, re.Header)
			}
		}
	}
}
