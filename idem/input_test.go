package idem_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A request that can't be stored is refused before the claim: its key stays free,
// and no unreadable record remains.
func TestRequestThatCannotBeStoredIsRefused(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), store.MaxStoredRequest+1)
	post := func(change func(*idem.Request)) idem.Request {
		r := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Path: "/", Header: http.Header{idem.KeyHeader: {"k"}, "Content-Type": {"text/plain"}}}
		change(&r)
		return r
	}
	for name, tt := range map[string]struct {
		req    idem.Request
		status int
	}{
		"a body over the limit":    {post(func(r *idem.Request) { r.Body = large }), 413},
		"a body at the limit":      {post(func(r *idem.Request) { r.Body = large[1:] }), 201},
		"a query over the limit":   {post(func(r *idem.Request) { r.Query = strings.Repeat("x", 100<<10) }), 413},
		"a header over the limit":  {post(func(r *idem.Request) { r.Header["Content-Type"] = []string{strings.Repeat("x", 100<<10)} }), 413},
		"a header that isn't kept": {post(func(r *idem.Request) { r.Header["X-Other"] = []string{strings.Repeat("x", 100<<10)} }), 201},
		"an event over the limit":  {post(func(r *idem.Request) { r.Snapshot = make([]byte, 100<<10) }), 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var st idem.MemoryStore
			var refused error
			engine := idem.New(&st, callertest.Anybody, func(o *idem.Options) {
				o.Function, o.Resumable, o.MaxInput = "f", true, store.MaxStoredRequest
				o.Hooks.Refused = func(_ context.Context, ev idem.Event) { refused = ev.Err }
			})
			res, err := engine.Serve(t.Context(), tt.req, func(context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, nil
			})
			if err != nil || res.Status != tt.status || (res.Status == 413) == (len(st.Records()) == 1) {
				t.Errorf("got %d, %v, and %d records; want %d", res.Status, err, len(st.Records()), tt.status)
			}
			if (res.Status == 413) != errors.Is(refused, idem.ErrTooLarge) {
				t.Errorf("Hooks.Refused was told %v", refused)
			}
			// A request that isn't stored has no such limit.
			plain := idem.New(new(idem.MemoryStore), callertest.Anybody)
			if res, err := plain.Serve(t.Context(), tt.req, func(context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, nil
			}); err != nil || res.Status != 201 {
				t.Errorf("without Resumable: %d, %v", res.Status, err)
			}
		})
	}
}
