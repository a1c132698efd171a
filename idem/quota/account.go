package quota

import (
	"time"

	"github.com/samekey/samekey/idem"
)

type caller struct {
	limit             Limits
	open, keys, bytes account
	all               []*account
}

// caller.accounts returns the caller's accounts that have a limit. kept is how long a
// record lasts.
func (c *caller) accounts(kept time.Duration) []*account {
	c.bytes.rate = atRest(c.limit.Bytes, kept)
	if c.all == nil {
		if n := c.limit.Open; n > 0 {
			c.open.kind, c.open.places = ofOpen, n
			c.all = append(c.all, &c.open)
		}
		if n := c.limit.PerMinute; n > 0 {
			size := c.limit.Burst
			if size == 0 {
				size = n
			}
			c.keys.rate = perMinute(n, size)
			c.all = append(c.all, &c.keys)
		}
		if c.limit.Bytes > 0 {
			c.bytes.kind = ofBytes
			c.all = append(c.all, &c.bytes)
		}
	}
	return c.all
}

// kind is what an account counts.
type kind int

const (
	ofKeys kind = iota
	ofBytes
	ofOpen
)

// account is what a caller has left of one limit: free places, or tokens. The tokens
// are in a bucket of this process, or were leased from a shared bucket.
type account struct {
	kind   kind
	places int // free places; only for ofOpen
	rate   rate
	own    bucket
	bucket string // name of the shared bucket; "" if there is none
	shared supply
}

// openWait is the wait for a caller with too many open operations. It is a guess,
// because nobody knows when an operation ends.
const openWait = time.Second

// account.price returns how many tokens an operation of n bytes takes.
func (a *account) price(n int64) int64 {
	if a.kind == ofBytes {
		return min(n, a.rate.size) // so that a full bucket is enough for any request
	}
	return 1
}

// [account.has] reports whether the account has n tokens, and if not, how long to wait
// for them. If ok is false and wait is 0, the process must first ask the shared bucket
// for tokens.
func (a *account) has(now time.Time, n int64) (ok bool, wait time.Duration) {
	switch s := &a.shared; {
	case a.kind == ofOpen:
		if a.places < 1 {
			wait = openWait
		}
	case a.bucket == "" || now.Before(s.alone):
		wait = a.own.wait(a.rate, now, n)
	case s.left >= n && !now.After(s.ends):
	case now.Before(s.closed):
		wait = s.closed.Sub(now)
	default:
		return false, 0
	}
	return wait == 0, wait
}

func (a *account) take(now time.Time, n int64) {
	switch {
	case a.kind == ofOpen:
		a.places--
	case a.bucket == "" || now.Before(a.shared.alone):
		a.own.take(a.rate, now, n)
	default:
		a.shared.left = max(a.shared.left-n, -4*a.rate.size) // the debt is at most four full buckets
	}
}

func (a *account) putBack(now time.Time, n int64) {
	switch {
	case a.kind == ofOpen:
		a.places++
	case a.bucket == "" || now.Before(a.shared.alone):
		a.own.putBack(a.rate, n)
	default:
		a.shared.left += n
	}
}

// account.settle corrects the account when an attempt gives its place back. n is the
// number of bytes that was estimated when the attempt began.
func (a *account) settle(now time.Time, n int64, use idem.QuotaUse) {
	switch {
	case a.kind == ofBytes && use.New:
		a.putBack(now, a.price(n))
		a.take(now, use.Bytes)
	case a.kind == ofOpen || !use.New:
		a.putBack(now, a.price(n))
	}
}
