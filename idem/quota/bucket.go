package quota

import "time"

// rate is the size of a bucket, and the time in which an empty bucket fills up.
type rate struct {
	size int64
	fill time.Duration
}

// perMinute returns a rate for buckets of the given size, which get n tokens a minute.
func perMinute(n, size int) rate {
	return rate{size: int64(size), fill: time.Duration(float64(size) / float64(n) * float64(time.Minute))}
}

// atRest returns a rate that limits the stored bytes to n if each byte is stored for the
// time kept. In this time, a caller can take at most n tokens, one for each byte: n/2
// from a full bucket, and n/2 from its refill.
func atRest(n int64, kept time.Duration) rate { return rate{size: max(n/2, 1), fill: kept} }

// cost returns the time in which a bucket gets n tokens. To limit a debt, the result is at
// most the time in which the bucket fills up four times.
func (r rate) cost(n int64) time.Duration {
	return time.Duration(float64(r.fill) * min(float64(n)/float64(r.size), 4))
}

// bucket stores a bucket of tokens as the time at which the bucket will be full. The zero
// bucket is full.
type bucket struct{ full time.Time }

// wait returns the time until the bucket has n tokens. If n is larger than the bucket's
// size, wait returns the time until the bucket is full.
func (b *bucket) wait(r rate, now time.Time, n int64) time.Duration {
	return max(0, max(0, b.full.Sub(now))+r.cost(min(n, r.size))-r.fill)
}

// take takes n tokens. If the bucket has fewer tokens, it goes into debt.
func (b *bucket) take(r rate, now time.Time, n int64) {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(r.cost(n))
}

func (b *bucket) putBack(r rate, n int64) { b.full = b.full.Add(-r.cost(n)) }
