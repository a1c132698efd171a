package idem

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

func doneRecord(pk string, size int) *store.Record {
	return &store.Record{PK: pk, State: store.Done, Response: &Response{Body: make([]byte, size)}, Expires: time.Unix(1<<31, 0)}
}

func holds(c *cache, r *store.Record) bool {
	c.put(r)
	return c.get([]byte(r.PK)) != nil
}

func TestCacheIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	c := newCache(100_000)
	for i := range 1000 {
		c.put(doneRecord(fmt.Sprint(i), 1000))
		if c.size > c.limit || c.order.Len() != len(c.byKey) {
			t.Fatalf("after %d: %d bytes, %d in order, %d by key", i, c.size, c.order.Len(), len(c.byKey))
		}
	}
	if n := len(c.byKey); n < 35 || n > 100 {
		t.Errorf("holds %d records of about 2.3 kB in 100 kB", n)
	}
	if c.get([]byte("0")) != nil || c.get([]byte("999")) == nil {
		t.Error("the oldest must go first")
	}
	one := doneRecord("one", 0)
	if exact := newCache(weight(one)); !holds(exact, one) {
		t.Error("a record that just fits is not kept")
	}
	c.put(doneRecord("large", 200_000))
	if c.get([]byte("large")) != nil || c.get([]byte("999")) == nil {
		t.Error("what doesn't fit must not push everything else out")
	}
}

func TestCacheKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	c := newCache(10_000)
	c.put(doneRecord("used", 1000))
	for i := range 100 {
		c.put(doneRecord(fmt.Sprint(i), 1000))
		if c.get([]byte("used")) == nil {
			t.Fatalf("gone after %d others", i+1)
		}
	}
}

// The cache may answer only with records that can never change.
func TestCacheTakesFinishedRecordsOnly(t *testing.T) {
	t.Parallel()
	c := newCache(1 << 20)
	for name, r := range map[string]*store.Record{
		"open":            {PK: "open", State: store.Open},
		"stuck":           {PK: "stuck", State: store.Stuck},
		"body not loaded": {PK: "body not loaded", State: store.Done, Response: &Response{}, Overflow: &store.Overflow{Count: 1}},
	} {
		if c.put(r); c.get([]byte(name)) != nil {
			t.Errorf("%s is cached", name)
		}
	}
	if c.drop("open"); len(c.byKey) != 0 {
		t.Error("what isn't there can't be dropped")
	}
	var none *cache
	if none.put(doneRecord("a", 1)); none.get([]byte("a")) != nil || newCache(0) != nil {
		t.Error("off must be off")
	}
}

func TestCacheSharesNothing(t *testing.T) {
	t.Parallel()
	c := newCache(1 << 20)
	r := doneRecord("a", 1)
	c.put(r)
	r.Response.Body[0] = 'x'
	if got := c.get([]byte("a")); got.Response.Body[0] != 0 || !got.Expires.Equal(r.Expires) {
		t.Errorf("a caller's change reached the cache: %v, until %v", got.Response, got.Expires)
	}
	c.put(doneRecord("a", 2))
	if len(c.get([]byte("a")).Response.Body) != 2 || c.size != weight(c.get([]byte("a"))) {
		t.Error("a second put must replace the first")
	}
}

// The limit is a limit of memory, whatever a record contains.
//
//nolint:paralleltest // it measures this process's memory
func TestCacheBoundsMemory(t *testing.T) {
	const limit = 4 << 20
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, fill := range map[string]func(*store.Record){
		"jobs": func(r *store.Record) {
			r.Jobs = make(map[string]Job)
			for i := range 50 {
				r.Jobs[fmt.Sprintf("0.%d", i)] = Job{Kind: text(20), Args: []byte(text(500))}
			}
		},
		"phases": func(r *store.Record) {
			for range 20 {
				r.Phases = append(r.Phases, store.Phase{Name: text(100), Result: []byte(text(2000))})
			}
		},
		"headers": func(r *store.Record) {
			r.Response.Header = http.Header{"Content-Type": {text(30)}, "Link": {text(200), text(200)}}
		},
		"many headers": func(r *store.Record) {
			r.Response.Header = make(http.Header)
			for i := range 20 {
				r.Response.Header[fmt.Sprint("X-", i, text(40))] = []string{text(60), text(60)}
			}
		},
		"names": func(r *store.Record) {
			r.Scope, r.Route, r.Owner, r.ID, r.Secret = text(300), text(300), text(26), text(26), text(50)
		},
		"an error": func(r *store.Record) { r.LastErr = text(256) },
		"nothing":  func(*store.Record) {},
		"a body":   func(r *store.Record) { r.Response.Body = []byte(text(1025)) },
	} {
		heap := func() int64 {
			runtime.GC()
			runtime.GC() // pools keep what is in them for one
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		c := newCache(limit)
		for i := range 6000 {
			r := doneRecord(strings.Clone(fmt.Sprint("v1##", i, text(40))), 0)
			r.Fingerprint = text(64)
			fill(r)
			c.put(r)
		}
		// By what goes with the cache: what other tests have left may go while it fills.
		with, records := heap(), len(c.byKey)
		runtime.KeepAlive(c)
		got := with - heap()
		if got > limit+limit/8 || got < limit/2 {
			t.Errorf("%s: %d KB in a cache of %d KB, %d records", name, got>>10, limit>>10, records)
		}
		if records < 500 {
			t.Errorf("%s: only %d records in %d KB", name, records, limit>>10)
		}
	}
}
