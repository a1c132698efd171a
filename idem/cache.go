package idem

import (
	"container/list"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// cache holds finished records of this process, least recently used last, limited
// in bytes. Only finished records may be in a cache: they don't change until they
// expire, but for an operator who forgets one. So a copy is good for cachedFor, after
// which its key is looked up again. A nil cache is empty.
type cache struct {
	mu    sync.Mutex
	limit int64
	size  int64
	order *list.List // elements are cached
	byKey map[string]*list.Element
}

// cachedFor is how long a cached answer outlives its record that an operator forgets in
// another process.
const cachedFor = time.Minute

type cached struct {
	record *store.Record
	until  time.Time
}

func newCache(limit int64) *cache {
	if limit <= 0 {
		return nil
	}
	return &cache{limit: limit, order: list.New(), byKey: make(map[string]*list.Element)}
}

// get returns the record of pk or nil. The record must not be changed. Its answer is
// replayable.
func (c *cache) get(pk []byte) *store.Record {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byKey[string(pk)]
	if el == nil {
		return nil
	}
	one := el.Value.(cached)
	if time.Now().After(one.until) {
		return nil
	}
	c.order.MoveToFront(el)
	return one.record
}

// drop forgets the record of pk.
func (c *cache) drop(pk string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byKey[pk]; el != nil {
		c.remove(el)
	}
}

// put caches the parts of a finished record with a complete body that an answer
// needs.
func (c *cache) put(r *store.Record) {
	if c == nil || r.State != store.Done || r.Overflow != nil {
		return
	}
	answer := *r
	answer.Phases, answer.Jobs, answer.Input, answer.LastErr, answer.Seal = nil, nil, nil, "", nil
	if answer.Expires.IsZero() {
		answer.Expires = r.Until // kept for its jobs; this copy can't learn when they are delivered
	}
	if weight(&answer) > c.limit {
		return
	}
	r = answer.Clone()
	replayable(r.Response)
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byKey[r.PK]; el != nil {
		c.remove(el)
	}
	c.byKey[r.PK] = c.order.PushFront(cached{r, time.Now().Add(cachedFor)})
	c.size += weight(r)
	for c.size > c.limit {
		c.remove(c.order.Back())
	}
}

func (c *cache) remove(el *list.Element) {
	r := c.order.Remove(el).(cached).record
	delete(c.byKey, r.PK)
	c.size -= weight(r)
}

// weight estimates the memory of a record in the cache in bytes, rather too high: an
// underestimate would exceed the limit.
func weight(r *store.Record) int64 {
	const overhead = 1600 // the structs, the share of map and list, a map of up to 8 headers, the unused rest of a block
	n := overhead + len(r.PK) + len(r.Owner) + len(r.ID) + len(r.Fingerprint) + len(r.Secret) + len(r.Scheme) +
		len(r.Scope) + len(r.Route) + len(r.LastErr)
	if r.Response != nil {
		n += cap(r.Response.Body) + cap(r.Response.Body)/8
		for name, values := range r.Response.Header {
			n += len(name) + 64
			for _, v := range values {
				n += len(v) + 16
			}
		}
	}
	return int64(n)
}
