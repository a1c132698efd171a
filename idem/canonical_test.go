package idem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// nestedJSON has objects of depth levels, each with its members in the wrong
// order, around a string that makes it n bytes long.
func nestedJSON(depth, n int) []byte {
	before, after := strings.Repeat(`{"z":1,"b":`, depth), strings.Repeat(`,"a":2}`, depth)
	return []byte(before + `"` + strings.Repeat("x", n-len(before)-len(after)) + `"` + after)
}

// The cost of a body's canonical form doesn't grow with depth: allocations are
// proportional to the length alone.
//
//nolint:paralleltest // it measures this process's allocations
func TestCanonicalJSONOfDeepBodies(t *testing.T) {
	const size = 1 << 19
	allocated := func(body []byte) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, ok := CanonicalJSON(body)
		runtime.ReadMemStats(&after)
		if !ok || len(out) > len(body) || len(out) < size-20000 {
			t.Fatalf("%d bytes became %d, %t", len(body), len(out), ok)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	flat, deep := allocated(nestedJSON(1, size)), allocated(nestedJSON(maxDepth-1, size))
	t.Logf("a body of %d KB allocates %d KB flat, %d KB deep", size>>10, flat>>10, deep>>10)
	if deep > 2*flat {
		t.Errorf("a deep body allocates %d KB, a flat one %d KB: want at most twice that", deep>>10, flat>>10)
	}
}

// Members change places whatever they contain, as in encoding/json, which sorts
// the keys of a map.
func TestCanonicalJSONSortsAtEveryDepth(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) string
	value = func(depth int) string {
		kind := r.IntN(6)
		if depth > 6 {
			kind %= 3
		}
		n := r.IntN(4)
		var parts []string
		switch kind {
		case 0:
			return fmt.Sprint(r.IntN(100))
		case 1:
			return fmt.Sprintf(`"%d<é"`, r.IntN(100))
		case 2:
			return []string{"null", "true", "1.50", "{}", "[ ]"}[r.IntN(5)]
		case 3:
			for range n {
				parts = append(parts, value(depth+1))
			}
			return "[" + strings.Join(parts, " , ") + "]"
		default:
			for i, k := range r.Perm(n) {
				parts = append(parts, fmt.Sprintf(`"%c%d" : %s`, 'a'+k, i, value(depth+1)))
			}
			return "{ " + strings.Join(parts, ",") + "}"
		}
	}
	for range 5000 {
		body := value(0)
		dec := json.NewDecoder(strings.NewReader(body))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := CanonicalJSON([]byte(body)); !ok || !bytes.Equal(got, want) {
			t.Fatalf("%s\nbecame %s\nwant   %s", body, got, want)
		}
	}
}
