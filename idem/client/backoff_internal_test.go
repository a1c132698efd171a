package client

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// R93: sleep = min(initial*2^(n-1), max); jitter in [sleep/2, sleep]; actual = max(jitter, initial).
func TestBackoffKeepsToTheFormula(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		initial := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "initial"))
		most := initial + time.Duration(rapid.Int64Range(0, math.MaxInt64-int64(initial)).Draw(t, "more"))
		n := rapid.IntRange(1, 200).Draw(t, "n")
		sleep := min(float64(initial)*math.Pow(2, float64(n-1)), float64(most))
		low := max(sleep/2, float64(initial))
		for range 20 {
			got := float64(backoff(n, initial, most))
			if got < low-1 || got > sleep*(1+1e-9) {
				t.Fatalf("backoff(%d, %v, %v) = %v, want %v to %v", n, initial, most, time.Duration(got), time.Duration(low), time.Duration(sleep))
			}
		}
	})
}

func TestBackoffUsesItsRange(t *testing.T) {
	t.Parallel()
	const n = 10_000
	var low, high int
	for range n {
		switch d := backoff(4, time.Second, time.Minute); { // 4 s to 8 s
		case d < 5*time.Second:
			low++
		case d > 7*time.Second:
			high++
		}
	}
	if low < n/5 || high < n/5 {
		t.Errorf("%d waits in the lowest quarter, %d in the highest, of %d", low, high, n)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 100 {
		d := spread(time.Second, time.Second)
		if d < time.Second || d >= 2*time.Second {
			t.Fatalf("%v", d)
		}
		seen[d] = true
	}
	if len(seen) < 90 {
		t.Errorf("%d different waits of 100", len(seen))
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(0.1, 2)
		spend := func() (n int) {
			for b.retry() {
				n++
			}
			return n
		}
		if got := spend(); got != 20 {
			t.Errorf("%d retries saved up at the start, want ten seconds' worth, 20", got)
		}
		for range 55 {
			b.request()
		}
		if got := spend(); got != 5 {
			t.Errorf("%d retries for 55 requests, want 5", got)
		}
		time.Sleep(3 * time.Second) //nolint:forbidigo // virtual
		if got := spend(); got != 6 {
			t.Errorf("%d retries after 3 s, want 6", got)
		}
		time.Sleep(time.Hour) //nolint:forbidigo // virtual
		if got := spend(); got != 20 {
			t.Errorf("%d retries after an hour, want 20", got)
		}
		small := newBudget(0.1, 0.001)
		if !small.retry() || small.retry() {
			t.Error("a small budget must allow one retry")
		}
		var none *budget
		none.request()
		if !none.retry() {
			t.Error("no budget must allow all")
		}
	})
}

func FuzzHeaders(f *testing.F) {
	for _, v := range []string{"", "1", "-1", "1.5", "99999999999999999999", "soon", " 7\t", "٣", "Wed, 21 Oct 2015 07:28:00 GMT", "Sun Nov  6 08:49:37 1994"} {
		f.Add(v, "Wed, 21 Oct 2015 07:27:00 GMT")
		f.Add("Fri, 31 Dec 9999 23:59:59 GMT", v)
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		h := map[string][]string{"Retry-After": {value}, "Idempotency-Expires": {value}, "Date": {date}, "Stripe-Should-Retry": {value}}
		wait, ok := retryAfter(h, now)
		if wait < 0 || !ok && wait != 0 {
			t.Errorf("Retry-After %q: %v, %t", value, wait, ok)
		}
		if until, ok := expires(h, now); ok == until.IsZero() && ok {
			t.Errorf("Idempotency-Expires %q: %v, %t", value, until, ok)
		}
		if yes, no := shouldRetry(h); yes && no {
			t.Errorf("should-retry %q: %t, %t", value, yes, no)
		}
	})
}
