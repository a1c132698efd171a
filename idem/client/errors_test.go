package client_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/samekey/samekey/idem/client"
)

// The message tells how far the request came, and Timeout what the cause says.
func TestErrorTellsHowFarItCame(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*client.Error{
		"client: not sent: reset":                        {GaveUp: "retries", Err: errors.New("reset")},
		"client: attempt 1: reset":                       {Attempts: 1, Err: errors.New("reset")},
		"client: gave up after attempt 3 (budget): late": {Attempts: 3, GaveUp: "budget", Err: errors.New("late")},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for err, want := range map[error]bool{
		errReset: false, errRefused: false, os.ErrDeadlineExceeded: true, fmt.Errorf("late: %w", os.ErrDeadlineExceeded): true,
	} {
		if got := (&client.Error{Err: err}).Timeout(); got != want {
			t.Errorf("%v is a timeout: %t, want %t", err, got, want)
		}
	}
}
