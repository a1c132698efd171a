package quota

import "time"

// rate is the size of a bucket, and the time in which the empty bucket fills up.
type rate struct {
	size int64
	fill time.Duration
}

// perMinute returns the rate of a bucket that has the given size and gets n tokens a
// minute.
func perMinute(n, size int) rate {
	return rate{size: int64(size), fill: time.Duration(float64(size) / float64(n) * float64(time.Minute))}
}

// atRest returns a rate that limits a caller's stored bytes to n. Each byte costs a
// token, and is stored for the time kept. In that time a caller can take at most n
// tokens: n/2 from the full bucket, and n/2 that flow in.
func atRest(n int64, kept time.Duration) rate { return rate{size: max(n/2, 1), fill: kept} }

// rate.cost returns the time in which a bucket gets n tokens. The result is at most
// four times r.fill, to limit the debt of one operation.
func (r rate) cost(n int64) time.Duration {
	return time.Duration(float64(r.fill) * min(float64(n)/float64(r.size), 4))
}

// bucket is a bucket of tokens, described by the time at which it will be full. The
// zero bucket is full.
type bucket struct{ full time.Time }

// bucket.wait returns the time until the bucket has n tokens. If n is larger than the
// bucket's size, wait returns the time until the bucket is full.
func (b *bucket) wait(r rate, now time.Time, n int64) time.Duration {
	return max(0, max(0, b.full.Sub(now))+r.cost(min(n, r.size))-r.fill)
}

// bucket.take takes n tokens. A bucket with fewer tokens goes into debt.
func (b *bucket) take(r rate, now time.Time, n int64) {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(r.cost(n))
}

func (b *bucket) putBack(r rate, n int64) { b.full = b.full.Add(-r.cost(n)) }
