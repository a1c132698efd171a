package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/quota"
)

// braked returns an engine whose callers share their buckets with other processes.
func (tab *table) braked(clock *idemtest.Clock, each quota.Limits, optFns ...func(*quota.Options)) *idem.Engine {
	return tab.Engine(func(o *idem.Options) {
		o.Now = clock.Now
		o.Quota = quota.New(each, append([]func(*quota.Options){func(o *quota.Options) {
			o.Shared, o.Now, o.Patience = tab.Store.Buckets(), clock.Now, 10*time.Minute
		}}, optFns...)...)
	})
}

// send sends a new key for a caller; it reports whether the operation ran.
func send(t *testing.T, engine *idem.Engine, caller string) bool {
	t.Helper()
	r := tabletest.Post(tabletest.NewKey(), `{"amount":2000}`)
	r.Scope = caller
	_, err := engine.Do(t.Context(), r, tabletest.Created(`{"id":"order-1"}`))
	if err != nil && !errors.Is(err, idem.ErrQuota) {
		t.Fatal(err)
	}
	return err == nil
}

// Two processes give a caller one quota, and its price is a part of a call.
func TestSharedBuckets(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	one, two := tab.braked(clock, quota.Limits{PerMinute: 64}), tab.braked(clock, quota.Limits{PerMinute: 64})
	if !send(t, one, "jane") {
		t.Error("the first was refused")
	}
	if diff := cmp.Diff(calls{"PutItem": 1, "UpdateItem": 2}, tab.Transport.Calls()); diff != "" {
		t.Errorf("the first of a caller takes one call more (-want +got):\n%s", diff)
	}
	for range 31 {
		if !send(t, one, "jane") {
			t.Fatal("refused below the limit")
		}
	}
	// Lots of 1, 2, 4, 8, 8, 8 and 8 tokens: 7 left.
	if diff := cmp.Diff(calls{"PutItem": 32, "UpdateItem": 32 + 7}, tab.Transport.Calls()); diff != "" {
		t.Errorf("32 of a caller take 7 calls more (-want +got):\n%s", diff)
	}
	allowed := 32
	for range 64 {
		for _, engine := range []*idem.Engine{two, one} {
			if send(t, engine, "jane") {
				allowed++
			}
		}
	}
	if allowed > 64 || allowed < 64-8 {
		t.Errorf("%d were allowed in all, want 64, or a lot less", allowed)
	}
	tab.Transport.Reset()
	for range 20 {
		send(t, one, "jane")
	}
	if diff := cmp.Diff(calls{"GetItem": 20}, tab.Transport.Calls()); diff != "" {
		t.Errorf("a refused request takes one read (-want +got):\n%s", diff)
	}
	tab.Transport.Reset()
	if !send(t, one, "omar") {
		t.Error("another caller was refused")
	}
	clock.Advance(time.Minute)
	if !send(t, one, "jane") || !send(t, two, "jane") {
		t.Error("refused after a minute")
	}
}

// A known key gives its token back, and its replay costs nothing more.
func TestSharedBucketsAndReplays(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	engine := tab.braked(clock, quota.Limits{PerMinute: 2})
	req := tabletest.Post(tabletest.NewKey(), `{"amount":2000}`)
	if _, err := engine.Do(t.Context(), req, tabletest.Created("x")); err != nil {
		t.Fatal(err)
	}
	tab.Transport.Reset()
	for range 10 {
		tabletest.Replays(t, engine, req, "x")
	}
	if diff := cmp.Diff(calls{"PutItem": 10, "UpdateItem": 1}, tab.Transport.Calls()); diff != "" {
		t.Errorf("10 replays lease one token (-want +got):\n%s", diff)
	}
	if !send(t, engine, "") {
		t.Error("the token of the replays is lost")
	}
}

// Mallory sends random keys, to two processes. The bill has a limit, and jane beside
// pays nothing for it.
func TestRandomKeysHaveALimitedPrice(t *testing.T) {
	t.Parallel()
	const limit, flood = 40, 300
	tab, clock := newTable(t, func(o *dynamo.Options) { o.Units = true }), idemtest.NewClock()
	var mu sync.Mutex
	bill := make(map[string]*idem.Summary) // by scope's route
	processes := make([]*idem.Engine, 2)
	for i := range processes {
		b := quota.New(quota.Limits{PerMinute: limit}, func(o *quota.Options) {
			o.Shared, o.Now, o.Patience = tab.Store.Buckets(), clock.Now, 10*time.Minute
		})
		processes[i] = tab.Engine(func(o *idem.Options) {
			o.Quota, o.Now = b, clock.Now
			o.Hooks.Ended = func(_ context.Context, s idem.Summary) {
				mu.Lock()
				defer mu.Unlock()
				if bill[s.Route] == nil {
					bill[s.Route] = &idem.Summary{}
				}
				sum := &bill[s.Route].Cost
				sum.Calls += s.Cost.Calls
				sum.ReadUnits += s.Cost.ReadUnits
				sum.WriteUnits += s.Cost.WriteUnits
			}
		})
	}
	ran := map[string]int{}
	for i := range flood {
		r := tabletest.Post(tabletest.NewKey(), "{}")
		r.Scope, r.Route = "mallory", "mallory"
		if _, err := processes[i%2].Do(t.Context(), r, tabletest.Created("{}")); err == nil {
			ran["mallory"]++
		} else if !errors.Is(err, idem.ErrQuota) {
			t.Fatal(err)
		}
		if i%30 == 0 {
			r := tabletest.Post(tabletest.NewKey(), "{}")
			r.Scope, r.Route = "jane", "jane"
			if _, err := processes[0].Do(t.Context(), r, tabletest.Created("{}")); err != nil {
				t.Errorf("jane: %v", err)
			}
			ran["jane"]++
		}
	}
	m, j := bill["mallory"].Cost, bill["jane"].Cost
	t.Logf("mallory: %d of %d ran, %v write units, %v read units; jane: %d ran, %v write units, %v read units",
		ran["mallory"], flood, m.WriteUnits, m.ReadUnits, ran["jane"], j.WriteUnits, j.ReadUnits)
	// Two writes for each operation, and the leases of two processes.
	if ran["mallory"] > limit || m.WriteUnits > 2*limit+24 || m.ReadUnits > float64(flood) {
		t.Errorf("mallory: %d ran, %v write units, %v read units", ran["mallory"], m.WriteUnits, m.ReadUnits)
	}
	if j.WriteUnits > float64(3*ran["jane"]) || j.ReadUnits != 0 {
		t.Errorf("jane's %d operations: %v write units, %v read units", ran["jane"], j.WriteUnits, j.ReadUnits)
	}
}

func lotOf(name string, tokens int64, now time.Time) quota.Lot {
	return quota.Lot{Bucket: name, Need: 1, Tokens: tokens, Size: 100, Fill: time.Minute, Now: now}
}

// At any number of processes at once, a bucket gives what it holds and no more.
func TestSharedBucketAtOnce(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	now := time.Now()
	var got, refused atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			b := tab.Store.Buckets()
			var full time.Time
			for range 12 {
				l := lotOf("b", 3, now)
				l.Full = full
				leased, err := b.Lease(t.Context(), l)
				switch {
				case errors.Is(err, idem.ErrConflict):
				case err != nil:
					t.Error(err)
				case (leased.Tokens == 0) != (leased.Wait > 0):
					t.Errorf("leased %+v", leased)
				case leased.Tokens == 0:
					refused.Add(1)
				}
				got.Add(leased.Tokens)
				full = leased.Full
			}
		})
	}
	wg.Wait()
	if got.Load() != 100 || refused.Load() == 0 {
		t.Errorf("%d tokens were given and %d leases refused, want the bucket's 100, and some", got.Load(), refused.Load())
	}
}

// A clock that is wrong by days shuts nobody out, and a process that is behind or
// ahead by seconds counts in the same bucket.
func TestSharedBucketsAndClocks(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	b, now := tab.Store.Buckets(), time.Now()
	lease := func(l quota.Lot) quota.Leased {
		t.Helper()
		got, err := b.Lease(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := lease(lotOf("far", 100, now.AddDate(0, 0, 9))); got.Tokens != 100 {
		t.Errorf("a full bucket gave %+v", got)
	}
	if got := lease(lotOf("far", 60, now)); got.Tokens != 60 {
		t.Errorf("after a wrong clock: %+v", got)
	}
	if got := lease(lotOf("far", 60, now)); got.Tokens != 40 {
		t.Errorf("the mended bucket gave %+v, want its rest", got)
	}

	long := lotOf("shrunk", 100, now)
	long.Fill *= 100
	lease(long)
	if got := lease(lotOf("shrunk", 60, now)); got.Tokens != 60 {
		t.Errorf("after a limit that took longer to fill: %+v", got)
	}

	lease(lotOf("near", 50, now))
	if got := lease(lotOf("near", 100, now.Add(3*time.Second))); got.Tokens != 55 {
		t.Errorf("3 s ahead got %d, want 50 and the 5 of 3 s", got.Tokens)
	}
	got := lease(lotOf("near", 1, now))
	if got.Tokens != 0 || got.Wait <= 0 || got.Wait > time.Second || got.Ahead != 3*time.Second {
		t.Errorf("got %+v, want a wait of a token's time", got)
	}
	next := lotOf("near", 1, now.Add(got.Wait))
	next.Ahead = got.Ahead
	if got := lease(next); got.Tokens != 1 || got.Ahead != 3*time.Second {
		t.Errorf("after the wait: %+v", got)
	}
	need := lotOf("near", 50, now.Add(30*time.Second))
	need.Need = 50
	need.Ahead = got.Ahead
	if got := lease(need); got.Tokens != 0 || got.Wait <= 0 {
		t.Errorf("got %+v: fewer than needed", got)
	}
}

// A whole bucket takes the time in which it fills up, and not a microsecond more, whatever its
// size: otherwise a lease of all of a bucket in use is a condition that DynamoDB refuses.
func TestAllOfASharedBucketInUse(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	b, now := tab.Store.Buckets(), time.Now()
	for _, size := range []int64{7, 14, 15, 28, 40_000} {
		l := quota.Lot{Bucket: fmt.Sprint(size), Need: 1, Tokens: 1, Size: size, Fill: time.Second, Now: now}
		got, err := b.Lease(t.Context(), l)
		if err != nil || got.Tokens != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		l.Need, l.Tokens, l.Full = size, size, got.Full
		if got, err := b.Lease(t.Context(), l); err != nil || got.Tokens != 0 || got.Wait <= 0 {
			t.Errorf("all %d: %+v, %v; want a wait", size, got, err)
		}
		if l.Now = now.Add(2 * time.Second); size == 7 {
			l.Full = time.Time{}
		}
		if got, err := b.Lease(t.Context(), l); err != nil || got.Tokens != size || !got.Full.Equal(time.UnixMicro(l.Now.Add(time.Second).UnixMicro())) {
			t.Errorf("all %d when it is full: %+v, %v; want it to take a second", size, got, err)
		}
	}
}

// Without the table of buckets each process uses its own, or refuses; either way the
// known keys are served.
func TestSharedBucketsAreDown(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprint("closed ", closed), func(t *testing.T) {
			t.Parallel()
			tab, clock := newTable(t), idemtest.NewClock()
			engine := tab.braked(clock, quota.Limits{PerMinute: 3}, func(o *quota.Options) {
				o.Shared, o.Closed = brokenBuckets{}, closed
			})
			known := tabletest.Post(tabletest.NewKey(), "{}")
			if _, err := tab.Engine(func(o *idem.Options) { o.Now = clock.Now }).Do(t.Context(), known, tabletest.Created("x")); err != nil {
				t.Fatal(err)
			}
			tabletest.Replays(t, engine, known, "x")
			for i := range 5 {
				_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), tabletest.Created("x"))
				want := error(nil)
				switch {
				case closed:
					want = idem.ErrUnavailable
				case i >= 3:
					want = idem.ErrQuota
				}
				if !errors.Is(err, want) {
					t.Errorf("number %d: got %v, want %v", i, err, want)
				}
			}
		})
	}
}

type brokenBuckets struct{}

func (brokenBuckets) Lease(context.Context, quota.Lot) (quota.Leased, error) {
	return quota.Leased{}, errors.New("ThrottlingException")
}

// A throttled or damaged bucket is an error, and not a lease.
func TestLeaseErrors(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	b := tab.Store.Buckets()
	if _, err := b.Lease(t.Context(), lotOf("b", 1, time.Now())); err != nil {
		t.Fatal(err)
	}
	tab.Transport.Fault = tabletest.On("UpdateItem", 1, dynamotest.AnswerError(400, "AccessDeniedException", "injected"))
	tab.Transport.Reset()
	if got, err := b.Lease(t.Context(), lotOf("b", 1, time.Now())); err == nil || got.Tokens != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	tab.Transport.Fault = nil
	tab.Put(t, map[string]types.AttributeValue{"pk": tabletest.Str("samekey#quota#b"), "full_us": tabletest.Str("late")})
	if got, err := b.Lease(t.Context(), lotOf("b", 1, time.Now())); !errors.Is(err, idem.ErrCorrupt) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Nobody takes a bucket for a record, and it names nobody.
func TestBucketsAreNoRecords(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	send(t, tab.braked(clock, quota.Limits{PerMinute: 1, Bytes: 1 << 20}), "jane@example.com")
	buckets := 0
	all, err := tab.Direct.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tab.Name})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range all.Items {
		if rec, err := dynamo.Decode(it); err != nil {
			t.Error(err)
		} else if rec == nil {
			buckets++
		}
	}
	if buckets != 2 {
		t.Errorf("%d items are no records, want two buckets", buckets)
	}
	out, err := tab.Direct.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tab.Name, FilterExpression: aws.String("attribute_not_exists(st)")})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range out.Items {
		if len(it) != 4 || it["exp_s"] == nil || it["at_us"] == nil || it["full_us"] == nil || strings.Contains(fmt.Sprint(it["pk"]), "jane") {
			t.Errorf("a bucket is %v", it)
		}
	}
}

// A process that runs two minutes ahead moves the bucket's time once, and shares it with
// the others from then on, whoever asks first.
func TestClockAheadStarvesNobody(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]int{"the clock ahead asks first": 0, "the other asks first": 1} { // and then in turn
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab, clock := newTable(t), idemtest.NewClock()
			var engines []*idem.Engine
			for _, ahead := range []time.Duration{2 * time.Minute, 0} {
				now := func() time.Time { return clock.Now().Add(ahead) }
				engines = append(engines, tab.Engine(func(o *idem.Options) {
					o.Now = clock.Now
					o.Quota = quota.New(quota.Limits{PerMinute: 60}, func(o *quota.Options) {
						o.Shared, o.Now, o.Patience = tab.Store.Buckets(), now, 10*time.Minute
					})
				}))
			}
			var got [2]int
			for step := range 150 {
				for i := range engines {
					if who := (first + i + step) % 2; send(t, engines[who], "jane") {
						got[who]++
					}
				}
				clock.Advance(time.Second)
			}
			t.Logf("of 150 each: %d ahead, %d with a correct clock", got[0], got[1])
			const most = 60 + 150 + 60 // a bucket, its time, and the bucket of the two minutes, once
			if min(got[0], got[1]) < 50 || got[0]+got[1] > most {
				t.Errorf("allowed are %v", got)
			}
		})
	}
}
