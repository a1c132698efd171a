package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	layout "github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
)

// entryItem is as much of a waiting record as its entry shows.
func entryItem(why stream.Reason, pk string, since int64) layout.Map {
	return layout.Map{
		"pk": tabletest.Str(pk), "waits": tabletest.Str(layout.WaitKey(why, pk)), "wait_ms": tabletest.Num(since),
		"id": tabletest.Str("id-" + pk), "route": tabletest.Str("POST /rides"), "last_err": tabletest.Str("down"), "tries": tabletest.Num(3),
		"secret": tabletest.Str("not in the index"),
	}
}

// load puts items into the table, 25 at a time.
func load(ctx context.Context, tab *tabletest.Table, items ...layout.Map) error {
	for chunk := range slices.Chunk(items, 25) {
		var puts []types.WriteRequest
		for _, it := range chunk {
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		}
		out, err := tab.Direct.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{tab.Name: puts}})
		if err != nil || len(out.UnprocessedItems) > 0 {
			return fmt.Errorf("%w; %d are left", err, len(out.UnprocessedItems))
		}
	}
	return nil
}

func list(t testing.TB, w *stream.Waiting, most int) (pks []string) {
	t.Helper()
	for e, err := range w.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if pks = append(pks, e.PK); len(pks) == most {
			break
		}
	}
	return pks
}

// The list has everything that waits, once and the oldest first, however it lies in the
// partitions and pages of the index, and goes on behind any of its entries.
func TestWaitingInOrder(t *testing.T) {
	t.Parallel()
	tab := tabletest.New(t)
	now := time.Now().Truncate(time.Millisecond)
	var items []layout.Map
	var want []stream.Entry
	for i := range 600 {
		why := []stream.Reason{stream.ReasonStuck, stream.ReasonStuck, stream.ReasonStuck, stream.ReasonParked, stream.ReasonUnknown}[rand.N(5)]
		since := now.Add(-time.Duration(rand.N(40)) * time.Minute) // many at the same time
		pk := fmt.Sprintf("v1##%04d", i)
		items = append(items, entryItem(why, pk, since.UnixMilli()))
		want = append(want, stream.Entry{Reason: why, PK: pk, Since: since})
	}
	slices.SortFunc(want, func(a, b stream.Entry) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.PK, b.PK)
	})
	expired := entryItem(stream.ReasonBlocked, "v1##expired", now.Add(-time.Hour).UnixMilli())
	expired["exp_s"] = tabletest.Num(now.Add(-time.Minute).Unix())
	items = append(items, expired, layout.Map{"pk": tabletest.Str("v1##good"), "st": tabletest.Str("done")})
	if err := load(t.Context(), tab, items...); err != nil {
		t.Fatal(err)
	}
	pks := func(keep func(stream.Entry) bool) (pks []string) {
		for _, e := range want {
			if keep(e) {
				pks = append(pks, e.PK)
			}
		}
		return pks
	}
	all := pks(func(stream.Entry) bool { return true })
	if diff := cmp.Diff(all, list(t, stream.NewWaiting(tab.Client, tab.Store), 0)); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
	parked := stream.NewWaiting(tab.Client, tab.Store, func(o *stream.WaitingOptions) { o.Only = []stream.Reason{stream.ReasonParked} })
	if diff := cmp.Diff(pks(func(e stream.Entry) bool { return e.Reason == stream.ReasonParked }), list(t, parked, 0)); diff != "" {
		t.Errorf("only parked (-want +got):\n%s", diff)
	}
	for _, at := range []int{0, 1, 300, 598, 599} {
		on := stream.NewWaiting(tab.Client, tab.Store, func(o *stream.WaitingOptions) { o.After = want[at] })
		if diff := cmp.Diff(all[at+1:], list(t, on, 0)); diff != "" && at < 599 {
			t.Errorf("behind entry %d (-want +got):\n%s", at, diff)
		}
	}
	got, err := stream.NewWaiting(tab.Client, tab.Store, func(o *stream.WaitingOptions) { o.Now = func() time.Time { return now } }).Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counted := stream.Counted{ByReason: map[stream.Reason]stream.Tally{
		stream.ReasonUnknown: {}, stream.ReasonStuck: {}, stream.ReasonBlocked: {}, stream.ReasonParked: {}, stream.ReasonUnreadable: {},
	}}
	for _, e := range want {
		tally := counted.ByReason[e.Reason]
		tally.Count++
		tally.Oldest = max(tally.Oldest, int64(now.Sub(e.Since)/time.Second))
		counted.ByReason[e.Reason] = tally
		counted.Count++
		counted.Oldest = max(counted.Oldest, tally.Oldest)
	}
	if diff := cmp.Diff(counted, *got); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// The first entries of a long list come from small pages.
func TestWaitingReadsNoMoreThanItShows(t *testing.T) {
	t.Parallel()
	tab := tabletest.New(t)
	var items []layout.Map
	for i := range 1000 {
		items = append(items, entryItem(stream.ReasonStuck, fmt.Sprintf("v1##%04d", i), int64(1000+i)))
	}
	if err := load(t.Context(), tab, items...); err != nil {
		t.Fatal(err)
	}
	api := &meter{QueryAPI: tab.Client}
	if got := list(t, stream.NewWaiting(api, tab.Store), 25); len(got) != 25 {
		t.Errorf("%d entries", len(got))
	}
	if api.calls > 50 || api.items > 400 {
		t.Errorf("%d calls read %d entries to show 25", api.calls, api.items)
	}
}

// meter counts what queries read.
type meter struct {
	stream.QueryAPI
	mu           sync.Mutex
	calls, items int
	units        float64
}

func (m *meter) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.QueryAPI.Query(ctx, in, opts...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.calls++
		m.items += int(out.ScannedCount)
		m.units += aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
	}
	return out, err
}

// A table of an earlier version has no index: callers must be able to tell.
func TestWaitingWithoutIndex(t *testing.T) {
	t.Parallel()
	tab := tabletest.New(t)
	in := dynamo.CreateTableInput("old-" + tab.Name)
	in.GlobalSecondaryIndexes, in.AttributeDefinitions = nil, in.AttributeDefinitions[:1]
	if _, err := tab.Direct.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	old, err := dynamo.New(tab.Client, *in.TableName)
	if err != nil {
		t.Fatal(err)
	}
	waiting := stream.NewWaiting(tab.Client, old)
	if _, err := waiting.Count(t.Context()); !errors.Is(err, stream.ErrNoIndex) {
		t.Errorf("Count: %v", err)
	}
	for _, err := range waiting.All(t.Context()) {
		if !errors.Is(err, stream.ErrNoIndex) {
			t.Errorf("All: %v", err)
		}
	}
	none, err := dynamo.New(tab.Client, "nothing")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.NewWaiting(tab.Client, none).Count(t.Context()); err == nil || errors.Is(err, stream.ErrNoIndex) {
		t.Errorf("Count without a table: %v", err)
	}
}
