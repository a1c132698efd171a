package lambda

import (
	"testing"
	"time"

	"github.com/samekey/samekey/internal/base/defaults"
)

func TestShare(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		left time.Duration
		turn turn
		want time.Duration
	}{
		"nobody waits":                         {20 * time.Second, turn{own: 1, workers: 10}, 20 * time.Second},
		"nobody waits behind a long lane":      {20 * time.Second, turn{own: 7, workers: 1}, 20 * time.Second},
		"one of five, one worker":              {20 * time.Second, turn{own: 1, behind: 4, longest: 1, workers: 1}, 4*time.Second - 250*time.Millisecond},
		"a group of four behind it":            {20 * time.Second, turn{own: 1, behind: 4, longest: 4, workers: 1}, 4*time.Second - 250*time.Millisecond},
		"a group of four before one":           {20 * time.Second, turn{own: 4, behind: 1, longest: 1, workers: 1}, 16*time.Second - 250*time.Millisecond},
		"ten workers, ninety more":             {33 * time.Second, turn{own: 1, behind: 90, longest: 1, workers: 10}, 3*time.Second - 250*time.Millisecond},
		"the longest lane is taken last":       {33 * time.Second, turn{own: 1, behind: 20, longest: 10, workers: 10}, 33*time.Second/12 - 250*time.Millisecond},
		"a floor":                              {20 * time.Second, turn{own: 1, behind: 999, longest: 1, workers: 10}, 750 * time.Millisecond},
		"a floor, and less than that is left":  {700 * time.Millisecond, turn{own: 1, behind: 999, longest: 1, workers: 10}, 700 * time.Millisecond},
		"no time":                              {0, turn{own: 1, behind: 1, longest: 1, workers: 1}, 0},
		"less than no time, as after a freeze": {-time.Hour, turn{own: 1, behind: 1, longest: 1, workers: 1}, -time.Hour},
	} {
		if got := share(tc.left, tc.turn); got.Round(time.Microsecond) != tc.want.Round(time.Microsecond) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Whatever the lanes are, and if every one of them uses up all it may: each is begun
// with the floor's time at least, as long as there is a floor's time for each round.
func TestShareLeavesEachLaneItsTurn(t *testing.T) {
	t.Parallel()
	const floor = 2 * defaults.Reserve
	n := 0
	for workers := 1; workers <= 4; workers++ {
		for shape := range 1 << 12 { // six lanes of one to four records
			var lanes []int
			for i := range 6 {
				lanes = append(lanes, 1+shape>>(2*i)&3)
			}
			n++
			if len(lanes) < workers {
				continue
			}
			rounds := turn{behind: sum(lanes), longest: longest(lanes), workers: workers}.rounds()
			for _, left := range []time.Duration{time.Duration(rounds) * floor, time.Minute} {
				busy := make([]time.Duration, workers) // until when each worker is
				for i, own := range lanes {
					w := earliestOf(busy)
					rest := left - busy[w]
					got := share(rest, turn{own: own, behind: sum(lanes[i+1:]), longest: longest(lanes[i+1:]), workers: workers})
					if got < floor-grace {
						t.Fatalf("lanes %v, %d workers, %v: lane %d gets %v of %v", lanes, workers, left, i, got, rest)
					}
					busy[w] += got + grace
				}
			}
		}
	}
	if n != 4<<12 {
		t.Errorf("%d cases", n)
	}
}

func sum(lanes []int) (n int) {
	for _, l := range lanes {
		n += l
	}
	return n
}

func longest(lanes []int) (n int) {
	for _, l := range lanes {
		n = max(n, l)
	}
	return n
}

func earliestOf(busy []time.Duration) (at int) {
	for i, b := range busy {
		if b < busy[at] {
			at = i
		}
	}
	return at
}
