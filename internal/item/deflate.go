package item

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Above this level, the time to save a byte costs more than storing the byte. The figures are in
// docs/inside/decisions/0072-deflate.md.
const level = 7

// The pools keep writers (about 800 KB each) and readers (about 40 KB each) for reuse, until the
// garbage collector drops them.
var (
	deflaters = sync.Pool{New: func() any {
		d := new(deflater)
		d.w, _ = flate.NewWriter(d, level) // fails only for unknown levels
		return d
	}}
	inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}
)

// deflater is an element of the pool deflaters. While it is in the pool, it has no buffer.
type deflater struct {
	*bytes.Buffer

	w *flate.Writer
}

// Deflate compresses body (RFC 1951), without the 18 bytes of gzip around it.
func Deflate(body []byte) []byte {
	const stored = 64                                                       // a body that can't be compressed grows by at most these 64 bytes, plus 5 bytes for each block of 64 KB
	buf := bytes.NewBuffer(make([]byte, 0, len(body)+len(body)>>12+stored)) // room for any result, since growing the buffer would need twice the memory
	d := deflaters.Get().(*deflater)
	d.Buffer = buf
	d.w.Reset(d)
	_, _ = d.w.Write(body)
	_ = d.w.Close()
	d.Buffer = nil
	deflaters.Put(d)
	if buf.Len() < buf.Cap()/2 {
		return bytes.Clone(buf.Bytes())
	}
	return buf.Bytes()
}

// Inflate decompresses b. A result of more than limit bytes is an error: such a body
// was never stored. Inflate's buffer has at most about twice limit bytes, whatever b
// holds.
func Inflate(b []byte, limit int) ([]byte, error) {
	from := bytes.NewReader(b) // from is an io.ByteReader, so flate reads nothing after the end of the compressed data
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	if err := r.(flate.Resetter).Reset(from, nil); err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(make([]byte, 0, min(limit, 3*len(b))+bytes.MinRead)) // enough for most
	_, err := out.ReadFrom(io.LimitReader(r, int64(limit)+1))
	switch {
	case err != nil:
		return nil, err
	case out.Len() > limit:
		return nil, fmt.Errorf("more than %d bytes", limit)
	case from.Len() > 0:
		return nil, errors.New("bytes after the end")
	}
	return out.Bytes(), nil
}
