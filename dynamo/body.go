package dynamo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

const (
	chunkSize = 390 << 10 // an item may have at most 400 KB, including the names of attributes

	// companionsOutlive is how long companions remain after their record has expired. Without this
	// time, TTL could delete a companion before its record, since TTL deletes late and in any
	// order.
	companionsOutlive = 7 * 24 * time.Hour
)

// encodeBody makes the resp attribute of r; r must have a Response. If the body is over
// the inline limit, encodeBody first writes the body to companions, and notes in
// r.Overflow where they are. If the write of the record fails after that, the caller calls
// encodeBody with the same r, so that encodeBody doesn't write the companions again.
func (s *Store) encodeBody(ctx context.Context, v *item.Values, r *store.Record) (item.Value, error) {
	if n := len(r.Response.Body); n > item.MaxStored {
		return nil, tooLarge("body", n)
	}
	var body []byte
	var zipped bool
	if r.Overflow == nil || r.Overflow.Missing > 0 {
		body, zipped = s.pack(r.Response.Body, r, v.Box, item.AttrResp, func(v *item.Values) item.Value {
			return v.Response(r.Response, nil, nil, false)
		})
	}
	if r.Overflow == nil && len(body) > s.inline {
		r.Overflow = s.overflow(r.Owner, r.Response.Body, body, zipped, v.Box)
	}
	if r.Overflow != nil {
		if err := s.putCompanions(ctx, r, body, v.Box); err != nil {
			return nil, err
		}
	}
	return v.Response(r.Response, r.Overflow, body, zipped), nil
}

func tooLarge(what string, n int) error {
	return fmt.Errorf("dynamo: write %s: %w: %d bytes, at most %d", what, store.ErrTooLarge, n, item.MaxStored)
}

// putCompanions writes body in chunks. The chunks' keys contain the owner's nonce, so an attempt
// that lost its lease can't change the new owner's body. Each key also contains a number that this
// process uses only once, so a late write of an earlier try can't change the body either.
func (s *Store) putCompanions(ctx context.Context, r *store.Record, body []byte, box *item.Box) error {
	if err := s.putChunks(ctx, r.PK, r.Overflow, body, state.Lifetime(r).Add(companionsOutlive), box); err != nil {
		// The record is unchanged, even if some chunks were written.
		return fmt.Errorf("dynamo: write body: %w", err)
	}
	return nil
}

// Store.overflow returns a description of the companions that will hold body. packed is the
// stored form of body.
func (s *Store) overflow(owner string, body, packed []byte, zipped bool, box *item.Box) *store.Overflow {
	count := (len(packed) + chunkSize - 1) / chunkSize
	return &store.Overflow{
		Owner: owner, First: s.companions.Add(int64(count)) - int64(count), Count: count, Missing: count,
		Length: len(body), Zipped: zipped, SHA256: sha256.Sum256(body), Sealed: box != nil,
	}
}

// LoadBody implements [store.BodyLoader]. LoadBody makes one strongly consistent read for every 3
// MiB of the body as stored, or for every 390 KiB if the role doesn't allow BatchGetItem.
func (s *Store) LoadBody(ctx context.Context, r *store.Record) (err error) {
	if r.Overflow != nil && r.Response != nil {
		r.Response.Body, err = s.readBody(ctx, r, r.Overflow)
	}
	if err == nil && r.Input != nil && r.Input.Overflow != nil {
		r.Input.Body, err = s.readBody(ctx, r, r.Input.Overflow)
	}
	return err
}

func (s *Store) readBody(ctx context.Context, r *store.Record, o *store.Overflow) ([]byte, error) {
	box := item.NewBox(item.SealOf(r).Key(), r)
	if o.Sealed && box == nil {
		return nil, fmt.Errorf("dynamo: read body: %w", store.ErrSealed)
	}
	body := make([]byte, 0, min(o.Length, o.Count*chunkSize))
	for from := 0; from < o.Count; from += atOnce {
		to := min(from+atOnce, o.Count)
		chunks, err := s.getChunks(ctx, r.PK, o, from, to)
		if err != nil {
			return nil, item.ReadError("read body", err)
		}
		for i := from; i < to; i++ {
			chunk, ok := item.Chunk(chunks[companionKey(r.PK, o, i)])
			if !ok {
				return nil, fmt.Errorf("dynamo: %w: part %d of %d is missing", store.ErrNotKept, i+1, o.Count)
			}
			if o.Sealed {
				if chunk, err = box.OpenChunk(chunk, o, i); err != nil {
					return nil, fmt.Errorf("dynamo: %w: part %d of %d of a sealed body: %w", store.ErrCorrupt, i+1, o.Count, err)
				}
			}
			body = append(body, chunk...)
		}
	}
	if o.Zipped {
		var err error
		if body, err = item.Inflate(body, o.Length); err != nil {
			return nil, fmt.Errorf("dynamo: %w: %w", store.ErrNotKept, err)
		}
	}
	if o.Count == 0 || len(body) != o.Length || sha256.Sum256(body) != o.SHA256 {
		return nil, fmt.Errorf("dynamo: %w: the body is not the one that was stored", store.ErrNotKept)
	}
	return body, nil
}

const (
	unit     = 1024 // bytes of a write unit
	packFrom = 400  // a smaller body isn't compressed, since it and the rest of the record (about 600 bytes) fit one unit

	bodyMore   = 2   // bytes that a body adds to an item, without the body's own bytes
	zippedMore = 3   // bytes that mark a body as compressed
	sealedMore = 256 // the most bytes that encryption adds
)

// Store.pack returns the stored form of body. The body belongs to an attribute of r's
// item: name is the attribute's name, and head returns the attribute without the body.
// pack compresses the body only if that saves a write unit, since compression makes
// each answer and each replay slower.
func (s *Store) pack(body []byte, r *store.Record, box *item.Box, name string, head func(*item.Values) item.Value) (packed []byte, zipped bool) {
	if len(body) < packFrom {
		return body, false
	}
	size, more := 0, 0 // both remain 0 for a body in companions, because companions contain no other part of the record
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

// Store.around returns the size of r's item without the body, before encryption.
func (s *Store) around(r *store.Record, name string, head func(*item.Values) item.Value) int {
	var v item.Values // no box: encryption would cost too much just to learn the size
	it := v.Encode(r, nil)
	it[name] = head(&v)
	return itemsize.Of(it)
}
