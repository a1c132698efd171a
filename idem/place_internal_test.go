package idem

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// A quota of bytes counts all that a record keeps, wherever it is kept.
func TestStoredCountsAllThatIsKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for name, r := range map[string]*store.Record{
		"key":                      {PK: long},
		"caller":                   {Scope: long},
		"error":                    {LastErr: long},
		"answer":                   {Response: &store.Response{Body: []byte(long)}},
		"header":                   {Response: &store.Response{Header: http.Header{long[:400]: {long[:300], long[:300]}}}},
		"answer beside the record": {Response: &store.Response{}, Overflow: &store.Overflow{Count: 1, Length: 1000}},
		"request":                  {Input: &store.Input{Path: long[:250], Query: long[:250], Body: []byte(long[:250]), Snapshot: []byte(long[:250])}},
		"phase":                    {Phases: []store.Phase{{Name: long[:500], Result: []byte(long[:500])}}},
		"job":                      {Jobs: map[string]store.Job{long[:250]: {Kind: long[:250], Args: []byte(long[:250]), Group: long[:250]}}},
	} {
		if n := stored(r) - stored(&store.Record{}); n != 1000 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
	if n := stored(&store.Record{Overflow: &store.Overflow{Length: 1000}}) - stored(&store.Record{}); n != 0 {
		t.Errorf("%d bytes of an answer that is not kept", n)
	}
}

// Only a new operation takes a place: that of another claim is free at once. A claim that
// failed or is to be made again has its place until the attempt ends.
func TestPlaceOfAClaim(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		v    state.Verdict
		err  error
		left []QuotaUse // at once, and when the attempt ends
	}{
		"new":       {state.Own, nil, []QuotaUse{{New: true, Bytes: stored(&store.Record{})}}},
		"failed":    {state.Own, errors.New("down"), []QuotaUse{{}}},
		"again":     {state.Again, nil, []QuotaUse{{}}},
		"in flight": {state.InFlight, nil, []QuotaUse{{}}},
		"taken":     {state.TakeOver, nil, []QuotaUse{{}}},
	} {
		var left []QuotaUse
		p := &place{end: func(use QuotaUse) { left = append(left, use) }}
		p.settle(tt.v, tt.err)
		if atOnce := len(left) == 1; atOnce != (tt.err == nil && (tt.v == state.InFlight || tt.v == state.TakeOver)) {
			t.Errorf("%s: left at once: %t", name, atOnce)
		}
		p.holds(&store.Record{})
		p.holds(nil)
		p.leave()
		p.leave()
		if diff := cmp.Diff(tt.left, left); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
