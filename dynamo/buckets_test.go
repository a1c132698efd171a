package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// braked returns an engine whose callers share their buckets with other processes.
func (tab *table) braked(clock *idemtest.Clock, each quota.Limits, optFns ...func(*quota.Options)) *idem.Engine {
	return tab.Engine(func(o *idem.Options) {
		o.Now = clock.Now
		o.Quota = quota.New(each, append([]func(*quota.Options){func(o *quota.Options) {
			o.Shared, o.Now = patient{tab.Store.Buckets()}, clock.Now
		}}, optFns...)...)
	})
}

// patient waits for the table, however busy the machine is.
type patient struct{ quota.Shared }

func (p patient) Lease(ctx context.Context, l quota.Lot) (quota.Leased, error) {
	return p.Shared.Lease(context.WithoutCancel(ctx), l)
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

// Mallory sends random keys, to two processes. The bill has a limit: two writes for each operation and
// the leases of two processes, and a read for each refusal. Jane beside pays nothing for it.
func TestRandomKeysHaveALimitedPrice(t *testing.T) {
	t.Parallel()
	const limit, flood = 40, 300
	tab, clock := newTable(t), idemtest.NewClock()
	processes := []*idem.Engine{tab.braked(clock, quota.Limits{PerMinute: limit}), tab.braked(clock, quota.Limits{PerMinute: limit})}
	ran, bill := 0, calls{}
	for i := range flood {
		tab.Transport.Reset()
		if send(t, processes[i%2], "mallory") {
			ran++
		}
		for op, n := range tab.Transport.Calls() {
			bill[op] += n
		}
		if i%30 == 0 && !send(t, processes[0], "jane") {
			t.Error("jane is refused")
		}
	}
	t.Logf("%d of %d ran, by %v", ran, flood, bill)
	if writes := bill["PutItem"] + bill["UpdateItem"]; ran > limit || writes > 2*limit+24 || bill["GetItem"] > flood {
		t.Errorf("%d ran, by %v", ran, bill)
	}
}

func lotOf(name string, tokens int64, now time.Time) quota.Lot {
	return quota.Lot{Bucket: name, Need: 1, Tokens: tokens, Size: 100, Fill: time.Minute, Now: now}
}

// Nobody takes a bucket for a record, and it names nobody.
func TestBucketsAreNoRecords(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	send(t, tab.braked(clock, quota.Limits{PerMinute: 1, Bytes: 1 << 20}), "jane@example.com")
	buckets := 0
	for _, it := range tab.Items(t) {
		rec, err := item.Read(it)
		if err != nil {
			t.Error(err)
		}
		if rec != nil {
			continue
		}
		buckets++
		if len(it) != 4 || it["exp_s"] == nil || it["at_us"] == nil || it["full_us"] == nil || strings.Contains(fmt.Sprint(it["pk"]), "jane") {
			t.Errorf("a bucket is %v", it)
		}
	}
	if buckets != 2 {
		t.Errorf("%d items are no records, want two buckets", buckets)
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
						o.Shared, o.Now = patient{tab.Store.Buckets()}, now
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

// leasing is a table in memory that counts the updates, and may have others change an item
// before each.
type leasing struct {
	fakedynamo.DB
	updates int
	before  func(n int)
}

func (l *leasing) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if l.updates++; l.before != nil {
		l.before(l.updates)
	}
	return l.DB.UpdateItem(ctx, in, optFns...)
}

// put sets the times of the bucket b, in microseconds.
func (l *leasing) put(t *testing.T, full, at int64) {
	t.Helper()
	if _, err := l.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: map[string]types.AttributeValue{
		"pk": tabletest.Str("samekey#quota#b"), "full_us": tabletest.Num(full), "at_us": tabletest.Num(at),
	}}); err != nil {
		t.Fatal(err)
	}
}

func (l *leasing) buckets(t *testing.T) *dynamo.Buckets {
	t.Helper()
	st, err := dynamo.New(l, "records")
	if err != nil {
		t.Fatal(err)
	}
	return st.Buckets()
}

// A lease by the numbers, to the microsecond: the bucket has 60 tokens a minute, so that
// each costs a second.
func TestLeaseOfABucket(t *testing.T) {
	t.Parallel()
	const second, minute = int64(1e6), int64(60e6)
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		full, at     int64 // of the bucket, from now; at 0: there is none yet
		need, tokens int64
		seen         int64 // Lot.Full, from now; 0: nothing is known
		ahead        time.Duration
		want         quota.Leased // Full is not compared
		fullThen     int64
		updates      int
	}{
		"a new bucket":                   {need: 1, tokens: 60, want: quota.Leased{Tokens: 60}, fullThen: minute, updates: 1},
		"a full one":                     {full: -1, at: -1, need: 1, tokens: 2, want: quota.Leased{Tokens: 2}, fullThen: 2 * second, updates: 1},
		"full at this moment":            {full: 0, at: -1, need: 1, tokens: 2, want: quota.Leased{Tokens: 2}, fullThen: 2 * second, updates: 1},
		"in use, as is known":            {full: 10 * second, at: -1, seen: 10 * second, need: 1, tokens: 50, want: quota.Leased{Tokens: 50}, fullThen: minute, updates: 1},
		"in use, as is not known":        {full: 10 * second, at: -1, need: 1, tokens: 50, want: quota.Leased{Tokens: 50}, fullThen: minute, updates: 2},
		"fewer than asked for":           {full: 10 * second, at: -1, need: 1, tokens: 60, want: quota.Leased{Tokens: 50}, fullThen: minute, updates: 2},
		"the last one":                   {full: 59 * second, at: -1, need: 1, tokens: 9, want: quota.Leased{Tokens: 1}, fullThen: minute, updates: 2},
		"a microsecond short of it":      {full: 59*second + 1, at: -1, need: 1, tokens: 9, want: quota.Leased{Wait: time.Microsecond}, fullThen: 59*second + 1, updates: 1},
		"empty":                          {full: minute, at: -1, need: 3, tokens: 9, want: quota.Leased{Wait: 3 * time.Second}, fullThen: minute, updates: 1},
		"fewer than needed":              {full: 58 * second, at: -1, need: 3, tokens: 9, want: quota.Leased{Wait: time.Second}, fullThen: 58 * second, updates: 1},
		"in debt, by clocks that differ": {full: 6 * minute, at: -1, need: 1, tokens: 9, want: quota.Leased{Wait: 301 * time.Second}, fullThen: 6 * minute, updates: 1},
		"beyond what clocks differ":      {full: 6*minute + 1, at: -1, need: 1, tokens: 9, want: quota.Leased{Tokens: 9}, fullThen: 9 * second, updates: 2},
		"gone, though it was in use":     {seen: 10 * second, need: 1, tokens: 9, want: quota.Leased{Tokens: 9}, fullThen: 9 * second, updates: 2},
		"so, as is known":                {full: 6*minute + 1, at: -1, seen: 6*minute + 1, need: 1, tokens: 9, want: quota.Leased{Tokens: 9}, fullThen: 9 * second, updates: 1},
		"its time is ahead":              {full: 5 * minute, at: 5 * minute, need: 1, tokens: 9, want: quota.Leased{Tokens: 9, Ahead: 5 * time.Minute}, fullThen: 5*minute + 9*second, updates: 2},
		"too far ahead":                  {full: 5 * minute, at: 5*minute + 1, need: 1, tokens: 9, want: quota.Leased{Tokens: 9}, fullThen: 9 * second, updates: 2},
		"ahead, as is known":             {full: minute, at: minute, ahead: time.Minute, need: 1, tokens: 9, want: quota.Leased{Tokens: 9, Ahead: time.Minute}, fullThen: minute + 9*second, updates: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, own := &leasing{}, now.UnixMicro()
			if tt.at != 0 {
				l.put(t, own+tt.full, own+tt.at)
			}
			lot := quota.Lot{Bucket: "b", Need: tt.need, Tokens: tt.tokens, Size: 60, Fill: time.Minute, Now: now, Ahead: tt.ahead}
			if tt.seen != 0 {
				lot.Full = time.UnixMicro(own + tt.seen)
			}
			got, err := l.buckets(t).Lease(t.Context(), lot)
			if err != nil {
				t.Fatal(err)
			}
			if full := got.Full.UnixMicro() - own; full != tt.fullThen || l.updates != tt.updates {
				t.Errorf("full after %d µs and %d updates, want %d and %d", full, l.updates, tt.fullThen, tt.updates)
			}
			got.Full = time.Time{}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.want.Tokens == 0 {
				return
			}
			// The item goes an hour after the bucket is full by all clocks.
			exp := l.Items("records")[0]["exp_s"].(*types.AttributeValueMemberN).Value
			if want := now.Add(tt.want.Ahead + time.Minute + time.Hour).Unix(); exp != strconv.FormatInt(want, 10) {
				t.Errorf("it expires at %s, want %d", exp, want)
			}
		})
	}
}

// Tokens that don't divide the time evenly cost a microsecond more, never less: what a bucket has room
// for, and what a lease takes. A bucket whose item is gone is a full one, whatever its size.
func TestPriceOfATokenIsRoundedUp(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	lot := quota.Lot{Bucket: "b", Need: 1, Tokens: 3, Size: 3, Fill: 10 * time.Second, Now: now}
	for room, want := range map[int64]int64{3_333_333: 0, 3_333_334: 1, 6_666_666: 1, 6_666_667: 2, 9_999_999: 2, 10_000_000: 3} {
		l := &leasing{}
		l.put(t, now.UnixMicro()+10_000_000-room, now.UnixMicro()-1)
		if got, err := l.buckets(t).Lease(t.Context(), lot); err != nil || got.Tokens != want {
			t.Errorf("room of %d µs: %+v, %v; want %d tokens", room, got, err, want)
		}
	}
	for tokens, want := range map[int64]int64{1: 3_333_334, 2: 6_666_667, 3: 10_000_000} {
		lot.Tokens = tokens
		got, err := (&leasing{}).buckets(t).Lease(t.Context(), lot)
		if err != nil || got.Full.UnixMicro()-now.UnixMicro() != want {
			t.Errorf("%d tokens: full after %d µs, %v; want %d", tokens, got.Full.UnixMicro()-now.UnixMicro(), err, want)
		}
	}
	const large = 1 << 50
	got, err := (&leasing{}).buckets(t).Lease(t.Context(), quota.Lot{Bucket: "b", Need: large, Tokens: large, Size: large, Fill: time.Second, Now: now, Full: now.Add(time.Second)})
	if err != nil || got.Tokens != large {
		t.Errorf("a large one: %+v, %v", got, err)
	}
}

// Others that are always faster end a lease after four tries.
func TestLeaseIsGivenUp(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for tries, want := range map[int]error{3: nil, 4: idem.ErrConflict} {
		l := &leasing{}
		l.before = func(n int) {
			if n <= tries { // the bucket's time goes on
				l.put(t, now.UnixMicro()+int64(n)*1000, now.UnixMicro()+int64(n)*1000)
			}
		}
		got, err := l.buckets(t).Lease(t.Context(), quota.Lot{Bucket: "b", Need: 1, Tokens: 9, Size: 60, Fill: time.Minute, Now: now})
		if !errors.Is(err, want) || (err == nil) != (want == nil) || l.updates != 4 {
			t.Errorf("%d faster ones: %+v, %v after %d updates", tries, got, err, l.updates)
		}
	}
}

// A bucket that has few tokens at first, and whose time is then found to be wrong, gives all
// that is asked for.
func TestLeaseOfABucketThatIsMended(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	l := &leasing{}
	l.before = func(n int) {
		switch n {
		case 1:
			l.put(t, now.Add(55*time.Second).UnixMicro(), now.UnixMicro()-1)
		case 2:
			l.put(t, now.AddDate(0, 0, 9).UnixMicro(), now.UnixMicro()-1)
		}
	}
	got, err := l.buckets(t).Lease(t.Context(), quota.Lot{Bucket: "b", Need: 1, Tokens: 9, Size: 60, Fill: time.Minute, Now: now})
	if err != nil || got.Tokens != 9 || l.updates != 3 {
		t.Errorf("%+v, %v after %d updates", got, err, l.updates)
	}
}

// answering answers each update the same way.
type answering struct {
	dynamo.API
	full types.AttributeValue
	err  error
}

func (a answering) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return &dynamodb.UpdateItemOutput{Attributes: map[string]types.AttributeValue{"full_us": a.full}}, a.err
}

// Without an answer, and with one that can't be read, nothing is leased.
func TestLeaseWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for want, api := range map[error]answering{
		idem.ErrCorrupt:  {full: tabletest.Str("soon")},
		store.ErrUnknown: {full: tabletest.Num(1), err: errors.New("connection reset")},
	} {
		st, err := dynamo.New(api, "records")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := st.Buckets().Lease(t.Context(), lotOf("b", 1, time.Now())); !errors.Is(err, want) || got != (quota.Leased{}) {
			t.Errorf("%+v, %v, want %v", got, err, want)
		}
	}
}

// A bucket whose times are no numbers is an error: it gives nothing away.
func TestLeaseOfADamagedBucket(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, spoil := range map[string]map[string]types.AttributeValue{
		"full is a text":     {"full_us": tabletest.Str("late"), "at_us": tabletest.Num(now.UnixMicro())},
		"full is no int":     {"full_us": &types.AttributeValueMemberN{Value: "1.5"}, "at_us": tabletest.Num(now.Add(time.Hour).UnixMicro())},
		"its time is a text": {"full_us": tabletest.Num(now.Add(time.Second).UnixMicro()), "at_us": tabletest.Str("late")},
	} {
		l := &leasing{}
		spoil["pk"] = tabletest.Str("samekey#quota#b")
		if _, err := l.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: spoil}); err != nil {
			t.Fatal(err)
		}
		if got, err := l.buckets(t).Lease(t.Context(), lotOf("b", 1, now)); !errors.Is(err, idem.ErrCorrupt) || got != (quota.Leased{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
