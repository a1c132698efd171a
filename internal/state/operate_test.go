package state_test

import (
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// A finished operation is work: a request with its freed key would charge again under
// another derived key.
func TestForgettingAFinishedOperationLosesWork(t *testing.T) {
	t.Parallel()
	now := time.Now()
	rec := &store.Record{
		PK: "v1##a", State: store.Done, Owner: "o", Ver: 3, Expires: now.Add(time.Hour), Response: &store.Response{Status: 201},
	}
	if _, err := state.Forgotten(rec, now, "jane", state.Loss{}); !errors.Is(err, state.ErrWork) {
		t.Errorf("got %v, want ErrWork", err)
	}
	if r, err := state.Forgotten(rec, now, "jane", state.Loss{Work: true}); err != nil || !state.Freed(r) {
		t.Errorf("got %+v, %v", r, err)
	}
}
