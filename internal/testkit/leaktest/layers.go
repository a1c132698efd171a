package leaktest

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"io"
	"strings"
	"sync"
)

// layer is a text that another text contains in compressed or encoded form.
type layer struct {
	form string
	text []byte
}

var gzipMagic = []byte{0x1f, 0x8b, 8}

// The function layers decompresses each compressed part of text, and decodes each
// encoded part. It removes one layer only. The function looks for gzip and base64 at
// any place. It skips base64 that contains neither gzip nor DEFLATE. It looks for
// DEFLATE only at the beginning of text, since DEFLATE has no signature.
func layers(text []byte) (all []layer) {
	for at := bytes.Index(text, gzipMagic); at >= 0; {
		if z, err := gzip.NewReader(bytes.NewReader(text[at:])); err == nil {
			all = append(all, layer{"gzip, ", upTo(z)})
		}
		next := bytes.Index(text[at+1:], gzipMagic)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	if plain := inflated(text); len(plain) > 0 {
		all = append(all, layer{"deflate, ", plain})
	}
	for _, run := range base64Run.FindAll(text, -1) {
		std := strings.NewReplacer("-", "+", "_", "/").Replace(string(run))
		plain, err := base64.RawStdEncoding.DecodeString(std[:len(std)/4*4])
		if err == nil && (bytes.Contains(plain, gzipMagic) || len(inflated(plain)) > 0) {
			all = append(all, layer{"base64, ", plain})
		}
	}
	return all
}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

func inflated(text []byte) []byte {
	if len(text) == 0 || text[0]&6 == 6 { // DEFLATE has no such block type
		return nil
	}
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	_ = r.(flate.Resetter).Reset(bytes.NewReader(text), nil)
	return upTo(r)
}

// upTo reads at most 16 MB. It stops at an error and ignores the error, because other
// bytes may follow the compressed text.
func upTo(r io.Reader) []byte {
	plain, _ := io.ReadAll(io.LimitReader(r, 16<<20))
	return plain
}
