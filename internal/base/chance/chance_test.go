package chance_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/base/chance"
)

func TestChance(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	seen := make(map[time.Duration]bool)
	for range 1000 {
		d := chance.N(ctx, 3*time.Nanosecond)
		if d < 0 || d >= 3 {
			t.Fatalf("N draws %d of 3", d)
		}
		seen[d] = true
		if p := slices.Sorted(slices.Values(chance.Perm(ctx, 5))); !slices.Equal(p, []int{0, 1, 2, 3, 4}) {
			t.Fatalf("Perm draws %v", p)
		}
	}
	if len(seen) != 3 {
		t.Errorf("N draws %v only", seen)
	}
	last := chance.With(ctx, func(n int64) int64 { return n - 1 })
	if got := chance.N(last, 7); got != 6 {
		t.Errorf("a context's source isn't used: %d", got)
	}
}
