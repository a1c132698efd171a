package idem

import (
	"fmt"
	"testing"
	"time"
)

func doneRecord(pk string, size int) *Record {
	return &Record{PK: pk, State: Done, Response: &Response{Body: make([]byte, size)}, Expires: time.Unix(1<<31, 0)}
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
	if n := len(c.byKey); n < 40 || n > 100 {
		t.Errorf("holds %d records of about 1.8 kB in 100 kB", n)
	}
	if c.get("0") != nil || c.get("999") == nil {
		t.Error("the oldest must go first")
	}
	c.put(doneRecord("large", 200_000))
	if c.get("large") != nil || c.get("999") == nil {
		t.Error("what doesn't fit must not push everything else out")
	}
}

func TestCacheKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	c := newCache(10_000)
	c.put(doneRecord("used", 1000))
	for i := range 100 {
		c.put(doneRecord(fmt.Sprint(i), 1000))
		if c.get("used") == nil {
			t.Fatalf("gone after %d others", i+1)
		}
	}
}

// Only what can never change may be answered from here.
func TestCacheTakesFinishedRecordsOnly(t *testing.T) {
	t.Parallel()
	c := newCache(1 << 20)
	for name, r := range map[string]*Record{
		"open":            {PK: "open", State: Open},
		"stuck":           {PK: "stuck", State: Stuck},
		"body not loaded": {PK: "body not loaded", State: Done, Response: &Response{}, Overflow: &Overflow{Count: 1}},
	} {
		if c.put(r); c.get(name) != nil {
			t.Errorf("%s is cached", name)
		}
	}
	var none *cache
	if none.put(doneRecord("a", 1)); none.get("a") != nil || newCache(0) != nil {
		t.Error("off must be off")
	}
}

func TestCacheSharesNothing(t *testing.T) {
	t.Parallel()
	c := newCache(1 << 20)
	r := doneRecord("a", 1)
	c.put(r)
	r.Response.Body[0] = 'x'
	if got := c.get("a").Response.Body[0]; got != 0 {
		t.Error("a caller's change reached the cache")
	}
	c.put(doneRecord("a", 2))
	if len(c.get("a").Response.Body) != 2 || c.size != weight(c.get("a")) {
		t.Error("a second put must replace the first")
	}
}
