package quota

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// Shared stores buckets for all processes; see [Options.Shared]. Package dynamo has an
// implementation. A Shared must be safe for concurrent use.
type Shared interface {
	// Lease takes l.Tokens from the bucket. If the bucket has fewer, Lease may take what
	// there is, if that is at least l.Need. If the bucket has fewer than l.Need tokens,
	// Lease takes nothing, and returns the time until the bucket has l.Need. Lease must
	// return promptly when ctx ends. If Lease returns an error, the tokens may have been
	// taken.
	Lease(ctx context.Context, l Lot) (Leased, error)
}

// Lot is a request for tokens of a shared bucket. To save calls, a process takes the
// tokens for several operations at once.
type Lot struct {
	Bucket string        // the bucket's name: a hash in base64url, 43 bytes
	Need   int64         // fewest tokens to take: at least 1, at most Size
	Tokens int64         // tokens to take: at least Need, at most Size
	Size   int64         // size of the bucket
	Fill   time.Duration // the time in which an empty bucket fills up
	Now    time.Time     // the current time, by the process's clock
	Full   time.Time     // Leased.Full of this process's previous lease; outdated if others have leased since
	Ahead  time.Duration // Leased.Ahead of this process's previous lease
}

// Leased is the outcome of [Shared].Lease.
type Leased struct {
	Tokens int64         // tokens taken; 0 if the bucket had fewer than Need
	Wait   time.Duration // if Tokens is 0: the time until the bucket has Need tokens; otherwise 0
	Full   time.Time     // when the bucket will be full, by the bucket's own time
	Ahead  time.Duration // the bucket's own time, which all processes share, minus Lot.Now
}

// supply holds the tokens that this process has leased from a shared bucket.
type supply struct {
	left   int64         // below 0 is a debt
	ends   time.Time     // when unspent tokens are lost, so that a caller can't save them beyond its limit
	next   int64         // size of the next lot
	full   time.Time     // Leased.Full of the latest lease
	ahead  time.Duration // Leased.Ahead of the latest lease
	closed time.Time     // until this time the shared bucket has too few tokens
	alone  time.Time     // until this time the process uses its own bucket, because a lease has failed
	busy   chan struct{} // closed when the running call of Lease has ended; nil if none runs
}

const (
	// lotLasts is how long the tokens of a lot may be spent.
	lotLasts = time.Minute
	// lotShare limits a lot to an eighth of a bucket, unless one operation needs more.
	lotShare = 8
	// aloneFor is how long a process uses its own bucket after a failed lease.
	aloneFor = 10 * time.Second
)

// supply.lot returns the lot to lease for an operation that needs n tokens.
func (s *supply) lot(bucket string, r rate, now time.Time, n int64) Lot {
	if now.After(s.ends) {
		s.left = min(s.left, 0)
		s.next = 0 // the latest lot has expired, so the caller begins few operations: begin with small lots
	}
	need := min(n-s.left, r.size)
	return Lot{
		Bucket: bucket, Need: need, Tokens: min(max(need, min(s.next, r.size/lotShare)), r.size), Size: r.size, Fill: r.fill, Now: now, Full: s.full, Ahead: s.ahead,
	}
}

// supply.got updates the supply after the lot l was requested. The parameter got is
// the lease's outcome.
func (s *supply) got(now time.Time, l Lot, got Leased) {
	s.full, s.ahead = got.Full, got.Ahead
	if got.Wait > 0 {
		s.closed = now.Add(got.Wait)
		return
	}
	s.left += got.Tokens
	s.ends = now.Add(lotLasts)
	s.next = 2 * l.Tokens
}

// bucketName returns the name of a shared bucket. The name doesn't show the caller.
func bucketName(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(p))), p...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
