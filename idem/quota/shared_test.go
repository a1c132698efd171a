package quota_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/quota"
)

// table is shared buckets that note what is asked of them. They give all that is asked for,
// or answer as answer says.
type table struct {
	lots   []quota.Lot
	answer func(context.Context, quota.Lot) (quota.Leased, error)
}

func (s *table) Lease(ctx context.Context, l quota.Lot) (quota.Leased, error) {
	s.lots = append(s.lots, l)
	if s.answer != nil {
		return s.answer(ctx, l)
	}
	return quota.Leased{Tokens: l.Tokens, Full: l.Now.Add(time.Second), Ahead: time.Millisecond}, nil
}

func sharedBy(s quota.Shared) func(*quota.Options) { return func(o *quota.Options) { o.Shared = s } }

// tokens returns the sizes of the lots, and forgets the lots.
func (s *table) tokens() (all []int64) {
	for _, l := range s.lots {
		all = append(all, l.Tokens)
	}
	s.lots = nil
	return all
}

func (d *desk) runsTimes(n int) (allowed int) {
	d.Helper()
	for range n {
		if d.runs() {
			allowed++
		}
	}
	return allowed
}

// Lots double while they are used, up to an eighth of the bucket. What isn't used within a
// minute is lost: it may be missing elsewhere.
func TestLots(t *testing.T) {
	t.Parallel()
	var s table
	d := newDesk(t, quota.Limits{PerMinute: 30, Burst: 64}, sharedBy(&s))
	d.runs()
	first := s.lots[0]
	if len(first.Bucket) != 43 || strings.Contains(first.Bucket, "jane") {
		t.Errorf("the bucket's name is %q", first.Bucket)
	}
	d.runs()
	want := []quota.Lot{
		{Bucket: first.Bucket, Need: 1, Tokens: 1, Size: 64, Fill: 128 * time.Second, Now: d.now},
		{Bucket: first.Bucket, Need: 1, Tokens: 2, Size: 64, Fill: 128 * time.Second, Now: d.now, Full: d.now.Add(time.Second), Ahead: time.Millisecond},
	}
	if diff := cmp.Diff(want, s.lots); diff != "" {
		t.Errorf("lots (-want +got):\n%s", diff)
	}
	d.runsTimes(29)
	if diff := cmp.Diff([]int64{1, 2, 4, 8, 8, 8}, s.tokens()); diff != "" {
		t.Errorf("31 operations (-want +got):\n%s", diff)
	}
	d.runs() // of a new lot of eight
	d.now = d.now.Add(time.Minute)
	d.runsTimes(7)
	if diff := cmp.Diff([]int64{8}, s.tokens()); diff != "" {
		t.Errorf("within its minute (-want +got):\n%s", diff)
	}
	d.runs()
	d.now = d.now.Add(time.Minute + 1)
	d.runsTimes(3)
	if diff := cmp.Diff([]int64{8, 1, 2}, s.tokens()); diff != "" {
		t.Errorf("after it (-want +got):\n%s", diff)
	}
}

// A bucket of a few tokens is leased token by token.
func TestLotsOfASmallBucket(t *testing.T) {
	t.Parallel()
	var s table
	d := newDesk(t, quota.Limits{PerMinute: 7}, sharedBy(&s))
	d.runsTimes(4)
	if diff := cmp.Diff([]int64{1, 1, 1, 1}, s.tokens()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A known key gives its tokens back, and its replays lease no more of them.
func TestKnownKeysLeaseNothing(t *testing.T) {
	t.Parallel()
	var s table
	d := newDesk(t, quota.Limits{PerMinute: 60, Bytes: 80_000}, sharedBy(&s))
	for range 10 {
		end, _ := d.begin()
		end(idem.QuotaUse{})
	}
	if diff := cmp.Diff([]int64{500, 1}, s.tokens()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Bytes are leased by an estimate, and settled by what was written. A large answer is a debt
// of four buckets at most, which is leased before the next operation begins.
func TestLeasedBytes(t *testing.T) {
	t.Parallel()
	var s table
	d := newDesk(t, quota.Limits{Bytes: 10_000}, sharedBy(&s))
	write := func(bytes int64) {
		t.Helper()
		end, wait := d.begin(func(r *idem.QuotaRequest) { r.Bytes = 100 })
		if wait > 0 {
			t.Fatalf("a wait of %v", wait)
		}
		end(idem.QuotaUse{New: true, Bytes: bytes})
	}
	write(1000) // of an estimate of 600
	if l := s.lots[0]; l.Size != 5000 || l.Fill != 24*time.Hour || l.Need != 600 {
		t.Errorf("leased %+v", l)
	}
	s.lots = nil
	write(1 << 40) // 600, and the 400 of the first one
	if diff := cmp.Diff([]int64{1000}, s.tokens()); diff != "" {
		t.Errorf("lots of the second one (-want +got):\n%s", diff)
	}
	write(600) // and 4 buckets of 5000
	if diff := cmp.Diff([]int64{5000, 5000, 5000, 5000, 625}, s.tokens()); diff != "" {
		t.Errorf("lots of the third one (-want +got):\n%s", diff)
	}
	d = newDesk(t, quota.Limits{Bytes: 1}, sharedBy(&s))
	if d.begin(); len(s.lots) != 1 || s.lots[0].Size != 1 {
		t.Errorf("of the smallest bucket: %+v", s.lots)
	}
}

// While a shared bucket is empty, nobody asks for it. The wait is its own.
func TestEmptySharedBucketIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	s := table{answer: func(context.Context, quota.Lot) (quota.Leased, error) {
		return quota.Leased{Wait: 7 * time.Second}, nil
	}}
	d := newDesk(t, quota.Limits{PerMinute: 60}, sharedBy(&s))
	for passed, want := range []time.Duration{7 * time.Second, 6 * time.Second} {
		if passed > 0 {
			d.now = d.now.Add(time.Second)
		}
		if _, wait := d.begin(); wait != want || len(s.lots) != 1 {
			t.Errorf("after %d s: a wait of %v, %d leases", passed, wait, len(s.lots))
		}
	}
	d.now = d.now.Add(6 * time.Second)
	s.answer = nil
	d.runs()
	if diff := cmp.Diff([]int64{1, 1}, s.tokens()); diff != "" {
		t.Errorf("lots, with that after the wait (-want +got):\n%s", diff)
	}
}

// A bucket that is full again at once is not asked twice for a request.
func TestARequestLeasesOnce(t *testing.T) {
	t.Parallel()
	s := table{answer: func(context.Context, quota.Lot) (quota.Leased, error) {
		return quota.Leased{Wait: 1}, nil
	}}
	now := time.Now()
	d := newDesk(t, quota.Limits{PerMinute: 60}, sharedBy(&s), func(o *quota.Options) {
		o.Now = func() time.Time { now = now.Add(time.Second); return now }
	})
	if _, wait := d.begin(); wait != 1 || len(s.lots) != 1 {
		t.Errorf("a wait of %v, %d leases", wait, len(s.lots))
	}
}

// Without its shared buckets a process uses its own for ten seconds, or refuses.
func TestSharedBucketsFail(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	fails := func(context.Context, quota.Lot) (quota.Leased, error) { return quota.Leased{}, down }
	s := table{answer: fails}
	d := newDesk(t, quota.Limits{PerMinute: 2}, sharedBy(&s))
	known, _ := d.begin()
	known(idem.QuotaUse{}) // gives its place back, to the process's own bucket
	if got := d.runsTimes(4); got != 2 || len(s.lots) != 1 {
		t.Errorf("%d ran, %d leases; want two of its own bucket", got, len(s.lots))
	}
	d.now = d.now.Add(10*time.Second - 1)
	if d.runs() || len(s.lots) != 1 {
		t.Errorf("within ten seconds: %d leases, and a third ran", len(s.lots))
	}
	d.now = d.now.Add(1)
	s.answer = nil
	if !d.runs() || len(s.lots) != 2 {
		t.Errorf("after ten seconds: %d leases", len(s.lots))
	}
}

// Many requests at once lease one after the other, each within a second. One whose
// caller is gone waits for nobody.
func TestOneLeaseAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		var atOnce atomic.Int64
		const patience = time.Second
		s := table{answer: func(ctx context.Context, l quota.Lot) (quota.Leased, error) {
			if n := atOnce.Add(1); n != 1 {
				t.Errorf("%d leases at once", n)
			}
			if at, limited := ctx.Deadline(); !limited || time.Until(at) != patience {
				t.Errorf("a deadline in %v", time.Until(at))
			}
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // virtual
			atOnce.Add(-1)
			return quota.Leased{Tokens: l.Tokens}, nil
		}}
		b := quota.New(quota.Limits{PerMinute: 640}, sharedBy(&s))
		begun, ends := time.Now(), make(chan time.Duration, 10)
		for range 7 {
			go func() {
				if _, wait, err := b.Begin(t.Context(), idem.QuotaRequest{Caller: "jane"}); err != nil || wait > 0 {
					t.Errorf("a wait of %v, %v", wait, err)
				}
				ends <- time.Since(begun)
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if _, _, err := b.Begin(ctx, idem.QuotaRequest{Caller: "jane"}); !errors.Is(err, gone) || time.Since(begun) != 0 {
			t.Errorf("a caller who is gone: %v after %v", err, time.Since(begun))
		}
		var last time.Duration
		for range 7 {
			last = <-ends
		}
		if diff := cmp.Diff([]int64{1, 2, 4}, s.tokens()); diff != "" || last != 300*time.Millisecond {
			t.Errorf("after %v; lots (-want +got):\n%s", last, diff)
		}
	})
}

// Each caller has buckets of its own, for keys and for bytes, for each route with limits,
// and for each program's name.
func TestNamesOfSharedBuckets(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	n := 0
	for _, name := range []string{"", "a"} {
		var s table
		d := newDesk(t, quota.Limits{PerMinute: 60, Bytes: 80_000}, sharedBy(&s), func(o *quota.Options) {
			o.Name, o.Routes = name, map[string]quota.Limits{"r": {PerMinute: 60, Bytes: 80_000}}
		})
		for _, caller := range []string{"jane", "omar"} {
			if !d.runs(as(caller), on("r")) {
				t.Error("refused")
			}
			n += 4
		}
		for _, l := range s.lots {
			names[l.Bucket] = true
		}
	}
	if len(names) != n {
		t.Errorf("%d buckets, want %d", len(names), n)
	}
}
