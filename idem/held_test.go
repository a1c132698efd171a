package idem

import (
	"net/http"
	"testing"

	"github.com/samekey/samekey/idem/store"
)

// An answer that was read back is this attempt's own only if all of it is the same.
func TestSamePayload(t *testing.T) {
	t.Parallel()
	record := func() *store.Record {
		return &store.Record{Response: &Response{Status: 201, Header: http.Header{"Location": {"/1"}}, Body: []byte("a")}}
	}
	for name, tt := range map[string]struct {
		change func(*store.Record)
		want   bool
	}{
		"the same":         {func(*store.Record) {}, true},
		"another status":   {func(r *store.Record) { r.Response.Status = 202 }, false},
		"another body":     {func(r *store.Record) { r.Response.Body = []byte("b") }, false},
		"another header":   {func(r *store.Record) { r.Response.Header.Set("Location", "/2") }, false},
		"no answer":        {func(r *store.Record) { r.Response = nil }, false},
		"another overflow": {func(r *store.Record) { r.Overflow = &store.Overflow{} }, false},
	} {
		rec := record()
		if tt.change(rec); samePayload(rec, record()) != tt.want {
			t.Errorf("%s: got %t, want %t", name, !tt.want, tt.want)
		}
	}
}
