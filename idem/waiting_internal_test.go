package idem

import (
	"math"
	"testing"
	"time"
)

func TestNextLook(t *testing.T) {
	t.Parallel()
	const ms, never = time.Millisecond, math.MaxInt64
	for name, tc := range map[string]struct{ waited, age, lease, least, most time.Duration }{
		"the first":                            {0, 0, time.Minute, 105 * ms, 120 * ms},
		"as long as it has waited":             {360 * ms, 360 * ms, time.Minute, 420 * ms, 480 * ms},
		"after a long wait":                    {9 * time.Second, 9 * time.Second, time.Minute, longestRead - longestRead/8, longestRead},
		"who comes late begins slower":         {0, 2 * time.Second, time.Minute, 280 * ms, 320 * ms},
		"the lease ends before":                {time.Second, time.Second, 40 * ms, 40 * ms, 160 * ms},
		"the lease has ended":                  {time.Second, time.Second, 0, longestRead - longestRead/8, longestRead},
		"it ended long ago":                    {0, 0, -never, 105 * ms, 120 * ms},
		"the holder's clock is ahead":          {0, -time.Hour, time.Hour, 105 * ms, 120 * ms},
		"ahead by all of time":                 {0, -never, never, 105 * ms, 120 * ms},
		"it is behind, or the time is unknown": {0, never, time.Minute, longestRead - longestRead/8, longestRead},
	} {
		if least, most := nextRead(tc.waited, tc.age, tc.lease, longestRead); least != tc.least || most != tc.most {
			t.Errorf("%s: from %v to %v, want from %v to %v", name, least, most, tc.least, tc.most)
		}
	}
}
