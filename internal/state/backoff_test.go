package state

import (
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

func TestBackOffDoublesUpToAnHour(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		grace time.Duration
		tries int
		want  time.Duration
	}{
		{time.Minute, 0, time.Minute},
		{time.Minute, 1, 2 * time.Minute},
		{time.Minute, 5, 32 * time.Minute},
		{time.Minute, 6, time.Hour},
		{time.Minute, 1 << 62, time.Hour},
		{time.Nanosecond, 41, 1 << 41},
		{time.Nanosecond, 42, time.Hour},
		{time.Hour, 3, time.Hour},
		{3 * time.Hour, 3, 3 * time.Hour},
		{0, 3, 0},
		{time.Minute, -1, time.Minute},
	} {
		if got := BackOff(tt.grace, tt.tries); got != tt.want {
			t.Errorf("%v after %d tries: %v, want %v", tt.grace, tt.tries, got, tt.want)
		}
	}
}

// An operation is due a grace after it was seen, or after its lease if that ends later.
func TestDue(t *testing.T) {
	t.Parallel()
	seen := time.Unix(1_000_000, 0)
	for name, tt := range map[string]struct {
		r    store.Record
		want time.Duration
	}{
		"no lease":        {store.Record{}, time.Minute},
		"an ended lease":  {store.Record{Lease: seen.Add(-time.Second)}, time.Minute},
		"a longer lease":  {store.Record{Lease: seen.Add(time.Second)}, time.Minute + time.Second},
		"after two tries": {store.Record{Lease: seen.Add(time.Second), Tries: 2}, 4*time.Minute + time.Second},
	} {
		if got := Due(&tt.r, seen, time.Minute).Sub(seen); got != tt.want {
			t.Errorf("%s: %v later, want %v", name, got, tt.want)
		}
	}
}
