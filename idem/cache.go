package idem

import (
	"container/list"
	"sync"
)

// cache holds finished records of this process, least recently used last,
// bounded in bytes. Only a finished record may be in it: it never changes until
// it expires, so an old copy is as good as the stored one. A nil cache is empty.
type cache struct {
	mu    sync.Mutex
	limit int64
	size  int64
	order *list.List // of *Record
	byKey map[string]*list.Element
}

func newCache(limit int64) *cache {
	if limit <= 0 {
		return nil
	}
	return &cache{limit: limit, order: list.New(), byKey: make(map[string]*list.Element)}
}

// get returns the record of pk or nil. It must not be changed.
func (c *cache) get(pk string) *Record {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byKey[pk]
	if el == nil {
		return nil
	}
	c.order.MoveToFront(el)
	return el.Value.(*Record)
}

// put remembers a finished record whose body is whole.
func (c *cache) put(r *Record) {
	if c == nil || r.State != Done || r.Overflow != nil || weight(r) > c.limit || c.get(r.PK) == r {
		return
	}
	r = r.clone()
	if r.Expires.IsZero() {
		r.Expires = r.Until // kept for its jobs, and nobody tells this copy when they are delivered
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byKey[r.PK]; el != nil {
		c.remove(el)
	}
	c.byKey[r.PK] = c.order.PushFront(r)
	c.size += weight(r)
	for c.size > c.limit {
		c.remove(c.order.Back())
	}
}

func (c *cache) remove(el *list.Element) {
	r := c.order.Remove(el).(*Record)
	delete(c.byKey, r.PK)
	c.size -= weight(r)
}

// weight estimates what a record takes in memory, in bytes.
func weight(r *Record) int64 {
	const overhead = 768 // the structs, the map's and the list's share
	n := overhead + len(r.PK) + len(r.Fingerprint) + len(r.Cred) + len(r.Scope) + len(r.Route)
	if r.Response != nil {
		n += len(r.Response.Body)
		for name, values := range r.Response.Header {
			n += len(name) + 64
			for _, v := range values {
				n += len(v) + 16
			}
		}
	}
	return int64(n)
}
