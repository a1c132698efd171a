package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReasonNames(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"unknown", "stuck", "blocked", "parked", "unreadable"}, ReasonNames(true)); diff != "" {
		t.Errorf("people (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"open", "no_request", "expiring", "undelivered", "kept"}, ReasonNames(false)); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
}
