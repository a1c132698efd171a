package main

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Body is what a body takes by a way to compress it.
type Body struct {
	Kind  string  `json:"kind"`
	Bytes int     `json:"bytes"`
	Ways  []Taken `json:"ways"`
}

// Taken is what one way takes: bytes, write units of an item with 600 bytes beside the
// body, and the shortest time of several in ns.
type Taken struct {
	Way    string  `json:"way"`
	Bytes  int     `json:"bytes"`
	Units  int     `json:"units"`
	Write  float64 `json:"write_ns"`
	Read   float64 `json:"read_ns"`
	packer packer
}

// packer is a way to compress.
type packer struct {
	pack   func([]byte) []byte
	unpack func([]byte) error
}

// bodiesBy are the kinds of bodies.
var bodiesBy = []struct {
	name string
	make func(n int) []byte
}{
	{"JSON", func(n int) []byte { return []byte(orderLines(n)) }},
	{"HTML", func(n int) []byte { return []byte(htmlPage(n)) }},
	{"base64", func(n int) []byte {
		return []byte(`{"pdf":"` + base64.StdEncoding.EncodeToString([]byte(noise(n))))[:n]
	}},
	{"incompressible", func(n int) []byte { return []byte(noise(n)) }},
}

var bodySizes = []int{300, 600, 1 << 10, 2 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 6 << 20}

// bodyWords are those of orders and pages: text repeats its words.
var bodyWords = strings.Fields("order shipment blue red customer street number invoice payment refund total small large box paper wood metal garden chair " +
	"table lamp desk light express standard northern southern west east price tax net gross account holder name city country postal code and the of")

// orderLines is an order as shops answer with it.
func orderLines(n int) string {
	r, b := mathrand.New(mathrand.NewPCG(1, 2)), new(strings.Builder)
	b.WriteString(`{"id":"order_1","currency":"usd","lines":[`)
	for b.Len() < n {
		fmt.Fprintf(b, `{"id":"li_%012x","sku":"SKU-%05d","quantity":%d,"price":{"amount":%d,"currency":"usd"},"name":"%s %s","shipped":%t,"at":"2026-11-%02dT%02d:%02d:%02dZ"},`,
			r.Uint64()>>16, r.IntN(100000), 1+r.IntN(5), r.IntN(100000), bodyWords[r.IntN(len(bodyWords))], bodyWords[r.IntN(len(bodyWords))], r.IntN(2) == 0, 1+r.IntN(30), r.IntN(24), r.IntN(60), r.IntN(60))
	}
	return b.String()[:n]
}

func htmlPage(n int) string {
	r, b := mathrand.New(mathrand.NewPCG(3, 4)), new(strings.Builder)
	b.WriteString("<!doctype html><html><head><title>Order</title></head><body>")
	for b.Len() < n {
		fmt.Fprintf(b, `<div class="row item-%d"><p class="text">`, r.IntN(1000))
		for range 5 + r.IntN(15) {
			b.WriteString(bodyWords[r.IntN(len(bodyWords))] + " ")
		}
		b.WriteString("</p></div>\n")
	}
	return b.String()[:n]
}

// ways are the ways to compress that are compared. The store's is the second.
func ways() ([]Taken, error) {
	all := []Taken{{Way: "gzip 6", packer: packer{pack: packed(gzip.NewWriter(nil)), unpack: func(b []byte) error {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err == nil {
			_, err = io.Copy(io.Discard, r) //nolint:gosec // a body of this program
		}
		return err
	}}}}
	w, err := flate.NewWriter(nil, storeLevel)
	if err != nil {
		return nil, err
	}
	inflater := flate.NewReader(nil)
	all = append(all, Taken{Way: "DEFLATE 7", packer: packer{pack: packed(w), unpack: func(b []byte) error {
		if err := inflater.(flate.Resetter).Reset(bytes.NewReader(b), nil); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, inflater) //nolint:gosec // a body of this program
		return err
	}}})
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	for _, level := range []zstd.EncoderLevel{zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression} {
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
		if err != nil {
			return nil, err
		}
		all = append(all, Taken{Way: "zstd " + level.String(), packer: packer{
			pack:   func(b []byte) []byte { return enc.EncodeAll(b, nil) },
			unpack: func(b []byte) error { _, err := dec.DecodeAll(b, nil); return err },
		}})
	}
	return all, nil
}

// storeLevel is that of dynamo/internal/item.Deflate.
const storeLevel = 7

// packed packs by a writer of the standard library.
func packed(w interface {
	io.WriteCloser
	Reset(io.Writer)
},
) func([]byte) []byte {
	return func(b []byte) []byte {
		var out bytes.Buffer // whose writes don't fail
		w.Reset(&out)
		_, _ = w.Write(b)
		_ = w.Close()
		return out.Bytes()
	}
}

const besideBody = 600

func bodyUnits(n int) int { return (besideBody + n + 1023) / 1024 }

// measureBodies compresses bodies of each kind and size in each way. took is how long a
// time is measured; 0 takes none.
func measureBodies(took time.Duration) (all []Body, _ error) {
	for _, kind := range bodiesBy {
		for _, n := range bodySizes {
			taken, err := ways()
			if err != nil {
				return nil, err
			}
			body := kind.make(n)
			for i := range taken {
				w := &taken[i]
				small := w.packer.pack(body)
				if err := w.packer.unpack(small); err != nil {
					return nil, fmt.Errorf("%s, %d bytes of %s: %w", w.Way, n, kind.name, err)
				}
				w.Bytes, w.Units = len(small), bodyUnits(min(len(small), n))
				w.Write = shortest(took, func() { w.packer.pack(body) })
				w.Read = shortest(took, func() { _ = w.packer.unpack(small) })
			}
			all = append(all, Body{kind.name, n, taken})
		}
	}
	return all, nil
}

// shortest returns the shortest time of fn in ns: what else the machine does only adds.
func shortest(took time.Duration, fn func()) (ns float64) {
	for begun := time.Now(); time.Since(begun) < took; {
		at := time.Now()
		fn()
		if t := float64(time.Since(at)); ns == 0 || t < ns {
			ns = t
		}
	}
	return ns
}

func (r *Results) bodies() table {
	t := table{
		title: "Costs: Bodies, compressed",
		text: "The store compresses by DEFLATE, level 7, if that saves a write unit. Each way has: bytes; write units of an item with 600 bytes more; the shortest time to " +
			"write and to read. [Decision 72](../../docs/inside/decisions/0072-deflate.md) has the reasons. `go run -C proof ./bench -only bodies` measures the table.",
		head: []string{"body", "bytes"},
	}
	for i, b := range r.Bodies {
		row := []string{b.Kind, strconv.Itoa(b.Bytes)}
		for _, w := range b.Ways {
			if i == 0 {
				t.head = append(t.head, w.Way)
			}
			row = append(row, fmt.Sprintf("%d; %d; %s, %s", w.Bytes, w.Units, micro(w.Write), micro(w.Read)))
		}
		t.rows = append(t.rows, row)
	}
	return t
}
