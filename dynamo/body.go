package dynamo

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

const (
	gzipFrom = 150 // bytes from which compression is tried
	gzipGain = 64  // and what it must gain to be used

	chunkSize     = 390 << 10 // an item holds 400 KB, names included
	maxCompanions = 28        // 10 MB, even if compression made it larger

	// maxStored is of a body, and more than Lambda takes or gives.
	maxStored = store.MaxStoredRequest

	// companionsOutlive is for how long companions stay after their record has
	// expired: TTL deletes both late and in no order.
	companionsOutlive = 7 * 24 * time.Hour
)

// encodeBody makes the resp attribute of r, which must have a Response. A body
// over the inline limit goes to companions, which are written here, before the
// write that refers to them, and once: where they are is noted in r, and the
// same record comes again if that write fails.
func (s *Store) encodeBody(ctx context.Context, v *values, r *store.Record) (value, error) {
	if n := len(r.Response.Body); n > maxStored {
		return nil, tooLarge("body", n)
	}
	resp := item{respStatus: v.num(int64(r.Response.Status))}
	if len(r.Response.Header) > 0 {
		resp[respHeader] = v.header(r.Response.Header)
	}
	var body []byte
	var zipped bool
	if r.Overflow == nil || r.Overflow.Missing > 0 {
		body, zipped = compress(r.Response.Body)
	}
	if r.Overflow == nil && len(body) > s.inline {
		r.Overflow = s.overflow(r.Owner, r.Response.Body, body, zipped)
	}
	switch {
	case r.Overflow != nil:
		if err := s.putCompanions(ctx, r, body); err != nil {
			return nil, err
		}
		resp[respOverflow] = v.overflow(r.Overflow)
	case len(body) > 0: // an empty binary is refused by the service
		resp[respBody] = &types.AttributeValueMemberB{Value: body}
		if zipped {
			resp[respGzip] = &types.AttributeValueMemberBOOL{Value: true}
		}
	}
	return &types.AttributeValueMemberM{Value: resp}, nil
}

// tooLarge refuses what no reader would take for a body.
func tooLarge(what string, n int) error {
	return fmt.Errorf("dynamo: write %s: %w: %d bytes, at most %d", what, idem.ErrTooLarge, n, maxStored)
}

func (v *values) overflow(o *store.Overflow) value {
	m := item{
		overCount:  v.num(int64(o.Count)),
		overLength: v.num(int64(o.Length)),
		overSum:    &types.AttributeValueMemberB{Value: o.SHA256[:]},
	}
	if o.Count > 0 {
		m[overOwner], m[overFirst] = v.str(o.Owner), v.num(o.First)
		m[respGzip] = &types.AttributeValueMemberBOOL{Value: o.Gzip}
	}
	return &types.AttributeValueMemberM{Value: m}
}

// putCompanions writes body in chunks under the owner's nonce, so a worker that
// lost its lease can't touch the winner's body, and under numbers this process
// never uses again, so a late write of an earlier try can't either.
func (s *Store) putCompanions(ctx context.Context, r *store.Record, body []byte) error {
	end := r.Expires
	if end.Before(r.Until) {
		end = r.Until
	}
	if err := s.putChunks(ctx, r.PK, r.Overflow, body, end.Add(companionsOutlive)); err != nil {
		// Whatever became of the chunks, the record was not touched.
		return fmt.Errorf("dynamo: write body: %w", err)
	}
	return nil
}

// overflow describes companions for body, which is to be stored as packed.
func (s *Store) overflow(owner string, body, packed []byte, zipped bool) *store.Overflow {
	count := (len(packed) + chunkSize - 1) / chunkSize
	return &store.Overflow{
		Owner: owner, First: s.companions.Add(int64(count)) - int64(count), Count: count, Missing: count,
		Length: len(body), Gzip: zipped, SHA256: sha256.Sum256(body),
	}
}

func companionKey(pk string, o *store.Overflow, i int) string {
	return pk + "#" + o.Owner + "#" + strconv.FormatInt(o.First+int64(i), 10)
}

// LoadBody implements [store.BodyLoader] by one strongly consistent read; where
// the role doesn't allow BatchGetItem, by one for every 390 KiB.
func (s *Store) LoadBody(ctx context.Context, r *store.Record) (err error) {
	if r.Overflow != nil && r.Response != nil {
		r.Response.Body, err = s.readBody(ctx, r.PK, r.Overflow)
	}
	if err == nil && r.Input != nil && r.Input.Overflow != nil {
		r.Input.Body, err = s.readBody(ctx, r.PK, r.Input.Overflow)
	}
	return err
}

func (s *Store) readBody(ctx context.Context, pk string, o *store.Overflow) ([]byte, error) {
	chunks, err := s.getChunks(ctx, pk, o)
	if err != nil {
		return nil, readError("read body", err)
	}
	body := make([]byte, 0, o.Length)
	for i := range o.Count {
		chunk, ok := chunks[companionKey(pk, o, i)][respBody].(*types.AttributeValueMemberB)
		if !ok {
			return nil, fmt.Errorf("dynamo: %w: part %d of %d is missing", store.ErrNotKept, i+1, o.Count)
		}
		body = append(body, chunk.Value...)
	}
	if o.Gzip {
		var err error
		if body, err = gunzip(body, o.Length); err != nil {
			return nil, fmt.Errorf("dynamo: %w: %w", store.ErrNotKept, err)
		}
	}
	if o.Count == 0 || len(body) != o.Length || sha256.Sum256(body) != o.SHA256 {
		return nil, fmt.Errorf("dynamo: %w: the body is not the one that was stored", store.ErrNotKept)
	}
	return body, nil
}

var zippers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }} // each holds ~800 KB

// compress returns body compressed where that is worth it.
func compress(body []byte) (out []byte, zipped bool) {
	if len(body) < gzipFrom {
		return body, false
	}
	var buf bytes.Buffer
	buf.Grow(len(body))
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(&buf)
	_, err := z.Write(body)
	if err = errors.Join(err, z.Close()); err != nil || buf.Len() > len(body)-gzipGain {
		return body, false
	}
	return buf.Bytes(), true
}

// gunzip returns at most limit bytes; more is an error, since nobody stored that.
func gunzip(b []byte, limit int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, int64(limit)+1))
	if err == nil && len(out) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return out, err
}
