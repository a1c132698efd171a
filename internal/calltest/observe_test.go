package calltest_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
)

// What watching costs (docs/retrofit.md): as much as the real thing.
//
//nolint:tparallel // the steps are one story on one table
func TestCallsPerObservedRequest(t *testing.T) {
	t.Parallel()
	store, tr := newStore(t)
	e := idem.New(store, func(o *idem.Options) { o.Key = idem.KeyObserve })
	for _, tt := range []struct {
		name, key, body string
		want            calls
	}{
		{"without a key", "", "{}", calls{}},
		{"a new key", "8e03978e-40d5", "{}", calls{"PutItem": 1, "UpdateItem": 1}},
		{"the same again", "8e03978e-40d5", "{}", calls{"PutItem": 1}},
		{"the key with another body", "8e03978e-40d5", "[]", calls{"PutItem": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			tr.Reset()
			req := idem.Request{Method: "POST", Path: "/orders", Scope: "jane", Body: []byte(tt.body), Header: http.Header{}}
			if tt.key != "" {
				req.Header.Set(idem.KeyHeader, tt.key)
			}
			ran := false
			res, err := e.Serve(ctx, req, func(context.Context) (idem.Response, error) {
				ran = true
				return idem.Response{Status: http.StatusCreated}, nil
			})
			if err != nil || !ran || res.Status != http.StatusCreated {
				t.Errorf("got %+v, %v, ran %t", res, err, ran)
			}
			if diff := cmp.Diff(tt.want, tr.Calls()); diff != "" {
				t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
			}
		})
	}
}
