package idem

import (
	"container/list"
	"sync"

	"github.com/samekey/samekey/idem/store"
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
func (c *cache) get(pk string) *store.Record {
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
	return el.Value.(*store.Record)
}

// put remembers a finished record whose body is whole, as far as an answer needs
// it.
func (c *cache) put(r *store.Record) {
	if c == nil || r.State != store.Done || r.Overflow != nil || c.get(r.PK) == r {
		return
	}
	answer := *r
	answer.Phases, answer.Jobs, answer.Input, answer.LastErr = nil, nil, nil, ""
	if answer.Expires.IsZero() {
		answer.Expires = r.Until // kept for its jobs, and nobody tells this copy when they are delivered
	}
	if weight(&answer) > c.limit {
		return
	}
	r = answer.Clone()
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
	r := c.order.Remove(el).(*store.Record)
	delete(c.byKey, r.PK)
	c.size -= weight(r)
}

// weight estimates what a record takes in memory, in bytes, and rather too much:
// what it isn't told of, it would let in.
func weight(r *store.Record) int64 {
	const overhead = 1200 // the structs, the map's and the list's share, what is left of a block
	n := overhead + len(r.PK) + len(r.Owner) + len(r.ID) + len(r.Fingerprint) + len(r.Secret) + len(r.Cred) +
		len(r.Scope) + len(r.Route) + len(r.LastErr)
	if r.Response != nil {
		n += cap(r.Response.Body) + cap(r.Response.Body)/8
		if len(r.Response.Header) > 0 {
			n += 400 // of a map, up to 8 names
		}
		for name, values := range r.Response.Header {
			n += len(name) + 64
			for _, v := range values {
				n += len(v) + 16
			}
		}
	}
	for _, p := range r.Phases {
		n += len(p.Name) + cap(p.Result) + 64
	}
	for name, j := range r.Jobs {
		n += len(name) + len(j.Kind) + cap(j.Args) + len(j.Group) + len(j.Failed) + 160
	}
	return int64(n)
}
