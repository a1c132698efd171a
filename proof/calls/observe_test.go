package calls_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// What watching costs (docs/use/retrofit.md): as much as the real thing.
func TestCallsPerObservedRequest(t *testing.T) {
	t.Parallel()
	store, tr := newStore(t)
	e := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
	steps := []struct {
		name  string
		keyed bool
		body  string
		want  calls
	}{
		{"without a key", false, "{}", calls{}},
		{"a new key", true, "{}", calls{"PutItem": 1, "UpdateItem": 1}},
		{"the same again", true, "{}", calls{"PutItem": 1}},
		{"the key with another body", true, "[]", calls{"PutItem": 1}},
	}
	// A call that takes a second is given up: then the story says nothing, and is told
	// again with another key.
story:
	for {
		key := rand.Text()
		for _, step := range steps {
			tr.Reset()
			req := idem.Request{Method: "POST", Path: "/orders", Scope: "jane", Body: []byte(step.body), Header: http.Header{}}
			if step.keyed {
				req.Header.Set(idem.KeyHeader, key)
			}
			ran := false
			begun := time.Now()
			res, err := e.Serve(t.Context(), req, func(context.Context) (idem.Response, error) {
				ran = true
				return idem.Response{Status: http.StatusCreated}, nil
			})
			if err != nil || !ran || res.Status != http.StatusCreated {
				t.Fatalf("%s: got %+v, %v, ran %t", step.name, res, err, ran)
			}
			if time.Since(begun) >= time.Second {
				continue story
			}
			if diff := cmp.Diff(step.want, tr.Calls()); diff != "" {
				t.Errorf("%s: DynamoDB calls (-want +got):\n%s", step.name, diff)
			}
		}
		return
	}
}
