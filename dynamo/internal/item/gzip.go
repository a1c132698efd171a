package item

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	gzipFrom = 150 // bytes from which compression is tried
	gzipGain = 64  // the least gain for which compression is used
)

var zippers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }} // each holds ~800 KB

// Compress returns body compressed if that saves enough.
func Compress(body []byte) (out []byte, zipped bool) {
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

// Gunzip returns at most limit bytes; more is an error, since no larger body is
// stored.
func Gunzip(b []byte, limit int) ([]byte, error) {
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
