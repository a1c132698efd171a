package item

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"
)

// A writer holds about 800 KB, a reader about 40 KB.
var (
	zippers   = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}
	unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}
)

// Gzip returns body compressed.
func Gzip(body []byte) []byte {
	var buf bytes.Buffer // whose writes don't fail
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(&buf)
	_, _ = z.Write(body)
	_ = z.Close()
	return buf.Bytes()
}

// Gunzip returns at most limit bytes; more is an error, since no larger body is
// stored.
func Gunzip(b []byte, limit int) ([]byte, error) {
	z := unzippers.Get().(*gzip.Reader)
	defer unzippers.Put(z)
	if err := z.Reset(bytes.NewReader(b)); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err := out.ReadFrom(io.LimitReader(z, int64(limit)+1))
	if err == nil && out.Len() > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return out.Bytes(), err
}
