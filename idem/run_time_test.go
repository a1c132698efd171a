package idem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// R40: a record has the begin of its last attempt, and keeps the begin of its
// first.
func TestEachAttemptNotesItsTime(t *testing.T) {
	t.Parallel()
	begun := time.UnixMilli(1_800_000_000_000)
	now := begun
	store := &idem.MemoryStore{}
	engine := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Now = func() time.Time { return now } })
	for _, later := range []time.Duration{0, time.Minute, time.Hour} {
		now = begun.Add(later)
		_, _ = engine.Serve(t.Context(), keyed("k"), func(ctx context.Context) (idem.Response, error) {
			if _, err := idem.Atomic(ctx, "made", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
				t.Error(err)
			}
			for _, r := range store.Records() {
				if !r.Run.Equal(now) {
					t.Errorf("while it runs, after %v: run at %v", later, r.Run)
				}
			}
			return idem.Response{}, errors.New("down")
		})
		for _, r := range store.Records() {
			if !r.Run.Equal(now) || !r.Created.Equal(begun) {
				t.Errorf("after %v: run at %v, created at %v", later, r.Run, r.Created)
			}
		}
		if n := len(store.Records()); n != 1 {
			t.Errorf("%d records", n)
		}
	}
}
