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

// The function layers decompresses or decodes those parts of text that are compressed or encoded, by
// one layer. It looks for gzip at any place, and for base64 that contains gzip or DEFLATE. It looks
// for DEFLATE at the beginning only, since DEFLATE has no signature.
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
	if len(text) == 0 || text[0]&6 == 6 { // not a DEFLATE block
		return nil
	}
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	_ = r.(flate.Resetter).Reset(bytes.NewReader(text), nil)
	return upTo(r)
}

// upTo reads until an error, and ignores the error, since other bytes may follow the compressed
// text. It reads at most 16 MB.
func upTo(r io.Reader) []byte {
	plain, _ := io.ReadAll(io.LimitReader(r, 16<<20))
	return plain
}
