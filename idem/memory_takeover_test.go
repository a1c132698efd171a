package idem_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// A take-over, by a client or a completer, is conditional on the owner and the
// version it saw.
func TestMemoryTakeOverIsConditional(t *testing.T) {
	t.Parallel()
	for name, saw := range map[string]func(*store.Record){
		"another owner":  func(r *store.Record) { r.Owner = "earlier" },
		"an old version": func(r *store.Record) { r.Ver-- },
	} {
		for by, tries := range map[string]int{"a client": 0, "a completer": 1} {
			t.Run(name+" seen by "+by, func(t *testing.T) {
				t.Parallel()
				var mem idem.MemoryStore
				now := time.Now()
				r := &store.Record{PK: "p", State: store.Open, Owner: "holder", Ver: 2, Expires: now.Add(time.Hour).Truncate(time.Second)}
				if held, err := mem.Claim(t.Context(), store.Claim{Next: r, Now: now}); held != nil || err != nil {
					t.Fatal(held, err)
				}
				prev := r.Clone()
				saw(prev)
				next := prev.Clone()
				next.Owner, next.Ver, next.Tries = "robber", prev.Ver+1, prev.Tries+tries
				held, err := mem.Commit(t.Context(), store.Commit{Prev: prev, Next: next})
				if err != nil || cmp.Diff(r, held) != "" {
					t.Errorf("got %+v, %v; want it refused with the record", held, err)
				}
				if diff := cmp.Diff(r, mem.Records()["p"]); diff != "" {
					t.Errorf("the record was written (-want +got):\n%s", diff)
				}
			})
		}
	}
}
