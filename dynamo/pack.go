package dynamo

import (
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/item"
)

const (
	unit     = 1024 // bytes of a write unit
	packFrom = 400  // bytes from which compression is tried: a record has about 600 others

	bodyMore   = 2   // bytes of a body's name and entry
	zippedMore = 3   // bytes of the mark of a compressed body
	sealedMore = 256 // at most so much is added by encryption
)

// pack returns the body of r's attribute name as it is stored: compressed only if that
// saves a write unit, since compression takes time at each answer and at each replay.
// head makes the attribute without its body.
func (s *Store) pack(body []byte, r *store.Record, box *item.Box, name string, head func(*item.Values) item.Value) (packed []byte, zipped bool) {
	if len(body) < packFrom {
		return body, false
	}
	size, more := 0, 0 // companions hold nothing else
	if len(body) <= s.inline {
		size = bodyMore + s.around(r, name, head)
		if units(size+len(body)) <= 1 {
			return body, false
		}
		if box != nil {
			more = sealedMore
		}
	}
	if small := item.Deflate(body); units(size+more+zippedMore+len(small)) < units(size+len(body)) {
		return small, true
	}
	return body, false
}

func units(size int) int { return (size + unit - 1) / unit }

// around returns how much of r's item is not the body, before encryption.
func (s *Store) around(r *store.Record, name string, head func(*item.Values) item.Value) int {
	var v item.Values // without a box: the size doesn't justify encryption
	it := v.Encode(r, nil)
	it[name] = head(&v)
	return itemsize.Of(it)
}
