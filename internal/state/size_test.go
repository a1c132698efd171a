package state

import (
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem/store"
)

// Each text of a record's contents counts once, and bodies don't.
func TestSizeOf(t *testing.T) {
	t.Parallel()
	ten := strings.Repeat("x", 10)
	for name, tt := range map[string]struct {
		r    store.Record
		want int
	}{
		"nothing":      {},
		"phases":       {store.Record{Phases: []store.Phase{{Name: ten, Result: []byte("100")}, {Name: "b"}}}, 14},
		"a job":        {store.Record{Jobs: map[string]store.Job{"0.0": {Kind: "mail", Args: []byte("{}"), Group: "g", Failed: ten}}}, 20},
		"calls":        {store.Record{Calls: map[string]int{ten: 1}, Doubts: []string{ten}, Sent: map[string]string{ten: "h"}}, 36},
		"a request":    {store.Record{Input: &store.Input{Path: "/a", Query: "b=1", Snapshot: []byte("{}"), Header: http.Header{"A": {"1", "22"}}, Body: []byte(ten)}}, 12},
		"an answer":    {store.Record{Response: &store.Response{Header: http.Header{"A": {ten}, "B": {"1", ""}}, Body: []byte(ten)}}, 14},
		"all together": {store.Record{Phases: []store.Phase{{Name: "a"}}, Input: &store.Input{Path: "/a"}, Response: &store.Response{Header: http.Header{"B": {"1"}}}}, 5},
	} {
		if got := SizeOf(&tt.r); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", name, got, tt.want)
		}
	}
}
