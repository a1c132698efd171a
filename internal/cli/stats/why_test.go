package stats

import (
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// A lease that ends hours ahead is that of an attempt at work, as it is for the sweep:
// only one that ends in more than a day is a wrong clock's.
func TestLongLeaseIsAtWork(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]string{2 * time.Hour: "at work", 25 * time.Hour: "waits for its client"} {
		r := &store.Record{State: store.Open, Keep: store.KeepOpen, Lease: now.Add(ahead), Run: now}
		if got := why(r, now, time.Minute); got != want {
			t.Errorf("a lease of %v: %s, want %s", ahead, got, want)
		}
	}
}
