package idem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A client gets the handler's answer even if it can't be stored, and learns that
// a retry would repeat the effect. Only then does an answer say so.
func TestUnstoredAnswerSaysSo(t *testing.T) {
	t.Parallel()
	own := func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Header: http.Header{"Idempotency-Status": {"unstored"}}}, nil
	}
	for name, tc := range map[string]struct {
		handler  func(context.Context) (idem.Response, error)
		denied   bool // the finish is denied
		replay   bool // check the answer to a second request
		unstored bool
	}{
		"stored":                               {handler: answers(201)},
		"a replay":                             {handler: answers(201), replay: true},
		"can't be stored":                      {handler: answers(201), denied: true, unstored: true},
		"not kept, by its status":              {handler: answers(500)},
		"not kept, and the key can't be freed": {handler: answers(500), denied: true},
		"the handler's own word":               {handler: own},
		"a Finish that can't be stored":        {handler: finishes, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := idemtest.Faulty(new(idem.MemoryStore), nil)
			if tc.denied {
				store.Reset(idemtest.At(idemtest.Commit, 0, idemtest.Fault{Err: errors.New("access denied")}))
			}
			e := idem.New(store, callertest.Anybody)
			res, err := e.Serve(t.Context(), keyed("k"), tc.handler)
			if tc.replay {
				res, err = e.Serve(t.Context(), keyed("k"), tc.handler)
			}
			want := []string(nil)
			if tc.unstored {
				want = []string{"unstored"}
			}
			if got := res.Header["Idempotency-Status"]; err != nil || len(got) != len(want) || res.Unstored != tc.unstored {
				t.Errorf("%+v, %v; want %s: %q", res, err, "Idempotency-Status", want)
			}
			if tc.unstored && (res.Header.Get("Idempotency-Status") != "unstored" || res.Status != 201 || !res.Expires.IsZero()) {
				t.Errorf("%+v", res)
			}
		})
	}
}

func finishes(ctx context.Context) (idem.Response, error) {
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
}
