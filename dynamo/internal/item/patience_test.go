package item

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/internal/base/chance"
)

// The wait before a request is sent again doubles up to a second, and ends with the context.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		most := int64(0)
		longest := chance.With(t.Context(), func(n int64) int64 { most = n; return n - 1 })
		for round, want := range map[int]time.Duration{0: 20 * time.Millisecond, 1: 40 * time.Millisecond, 5: 640 * time.Millisecond, 6: time.Second, 11: time.Second, 1000: time.Second} {
			began := time.Now()
			if !Pause(longest, round) || time.Duration(most) != want || time.Since(began) != want-1 {
				t.Errorf("round %d: waited %v of %v, want %v", round, time.Since(began), time.Duration(most), want)
			}
		}
		ended, cancel := context.WithTimeout(longest, 100*time.Millisecond)
		defer cancel()
		if Pause(ended, 6) {
			t.Error("it goes on after its context")
		}
		if w := Backoff(3); w < 0 || w >= 160*time.Millisecond {
			t.Errorf("waits %v", w)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if Overdue(t.Context()) || Overdue(soon) {
			t.Error("overdue before its end")
		}
		time.Sleep(time.Second + 1) //nolint:forbidigo // virtual
		if !Overdue(soon) {
			t.Error("not overdue after its end")
		}
	})
}
