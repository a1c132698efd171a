package stream_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	layout "github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
)

// crowded fills a table with finished records, of which some wait.
func crowded(t testing.TB, tab *tabletest.Table, waiting, total int) {
	t.Helper()
	whys := []stream.Reason{stream.ReasonStuck, stream.ReasonUnknown, stream.ReasonBlocked, stream.ReasonParked}
	const loaders = 8
	var wg sync.WaitGroup
	for loader := range loaders {
		wg.Go(func() {
			var items []layout.Map
			flush := func() {
				if err := load(t.Context(), tab, items...); err != nil {
					t.Error(err)
				}
				items = items[:0]
			}
			for i := loader; i < total && !t.Failed(); i += loaders {
				pk := fmt.Sprintf("v1#shop#%040d", i)
				it := layout.Map{"pk": tabletest.Str(pk)}
				if i < waiting {
					it = entryItem(whys[i%len(whys)], pk, int64(1_000_000+i))
				}
				it["st"], it["fp"] = tabletest.Str("done"), tabletest.Str(pk+pk)
				if items = append(items, it); len(items) == 25 {
					flush()
				}
			}
			flush()
		})
	}
	wg.Wait()
}

// measured lists and counts what waits, and returns the figures.
func measured(t testing.TB, waiting, total int) (first, all, counted *meter) {
	t.Helper()
	tab := tabletest.New(t)
	began := time.Now()
	crowded(t, tab, waiting, total)
	t.Logf("%d records, of which %d wait; loaded in %v", total, waiting, time.Since(began).Round(time.Millisecond))
	did := func(what string, do func(api stream.QueryAPI)) *meter {
		api := &meter{QueryAPI: tab.Client}
		began := time.Now()
		do(api)
		t.Logf("%-28s %8v  %4d queries  %8.1f read units", what, time.Since(began).Round(time.Millisecond), api.calls, api.units)
		return api
	}
	first = did("the first 25 entries", func(api stream.QueryAPI) {
		if n := len(list(t, stream.NewWaiting(api, tab.Store), 25)); n != 25 {
			t.Errorf("%d entries, want 25", n)
		}
	})
	counted = did("the count", func(api stream.QueryAPI) {
		if c, err := stream.NewWaiting(api, tab.Store).Count(t.Context()); err != nil || c.Count != waiting {
			t.Errorf("counted %+v, %v", c, err)
		}
	})
	all = did("the whole list", func(api stream.QueryAPI) {
		if n := len(list(t, stream.NewWaiting(api, tab.Store), 0)); n != waiting {
			t.Errorf("%d entries, want %d", n, waiting)
		}
	})
	return first, all, counted
}

// The list's price is that of what waits, however large the table is.
func TestWaitingAmongMany(t *testing.T) {
	t.Parallel()
	first, all, _ := measured(t, 2000, 3000)
	if first.units > 60 || first.calls > 60 {
		t.Errorf("the first page took %v units in %d queries", first.units, first.calls)
	}
	if all.items != 2000 {
		t.Errorf("a list of 2000 read %d items", all.items)
	}
}

// BenchmarkWaiting lists b.N waiting records among ten times as many: make bench-waiting.
func BenchmarkWaiting(b *testing.B) {
	if b.N > 1 { // the framework's own first try
		measured(b, b.N, 10*b.N)
	}
}
