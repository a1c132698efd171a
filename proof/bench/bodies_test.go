package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The bytes and units of compressed bodies are as recorded. No size pays more units by
// the store's way than by gzip 6.
func TestBodiesAreAsRecorded(t *testing.T) {
	t.Parallel()
	recorded, err := load(folder)
	if err != nil {
		t.Fatal(err)
	}
	got, err := measureBodies(0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recorded.Bodies, got, cmpopts.IgnoreFields(Taken{}, "Write", "Read"), cmpopts.IgnoreUnexported(Taken{})); diff != "" {
		t.Errorf("proof/bench/results.json (-recorded +now), -only bodies writes it:\n%s", diff)
	}
	for _, b := range got {
		if b.Ways[1].Units > b.Ways[0].Units || b.Ways[1].Bytes > b.Ways[0].Bytes {
			t.Errorf("%d bytes of %s take %+v, by gzip %+v", b.Bytes, b.Kind, b.Ways[1], b.Ways[0])
		}
	}
	all, err := ways()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range bodiesBy {
		for n := 400; n < 64<<10; n += n/40 + 7 {
			body := kind.make(n)
			if by, gz := len(all[1].packer.pack(body)), len(all[0].packer.pack(body)); bodyUnits(by) > bodyUnits(gz) {
				t.Errorf("%d bytes of %s take %d bytes, by gzip %d", n, kind.name, by, gz)
			}
		}
	}
}
