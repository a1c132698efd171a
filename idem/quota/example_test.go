package quota_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/quota"
)

func Example() {
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.Quota = quota.New(quota.Limits{PerMinute: 300, Burst: 60}, func(o *quota.Options) {
			o.Routes = map[string]quota.Limits{"POST /exports": {PerMinute: 1}}
		})
	})

	for _, key := range []string{"k1", "k2", "k1"} {
		answer, _ := engine.Serve(context.Background(), idem.Request{
			Method: "POST", Path: "/exports", Route: "POST /exports", Scope: "jane", Header: http.Header{"Idempotency-Key": {key}},
		}, func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil })
		fmt.Printf("%s: %d, replayed %t\n", key, answer.Status, answer.Replayed)
	}
	// Output:
	// k1: 201, replayed false
	// k2: 429, replayed false
	// k1: 201, replayed true
}
