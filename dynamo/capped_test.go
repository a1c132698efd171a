package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
)

// The table's write cap is reached, in each form in which DynamoDB says so. Before the
// handler runs, the answer is 503 and the key is free; after that, the write waits.
func TestWriteCapIsReached(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			once := dynamodb.New(tab.Client.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
			var err error
			if tab.Store, err = dynamo.New(once, tab.Name); err != nil {
				t.Fatal(err)
			}
			engine, throttle := tab.Engine(), dynamotest.AnswerError(http.StatusBadRequest, code, "injected")
			// on throttles some requests of an operation.
			on := func(op string, which func(n int) bool) {
				tab.Transport.Reset()
				tab.Transport.Fault = func(o string, n int) dynamotest.Fault {
					if o == op && which(n) {
						return throttle
					}
					return nil
				}
			}
			serve := func(key string, fn func(context.Context) (idem.Response, error)) idem.Result {
				t.Helper()
				r := tabletest.Post("", "{}")
				r.Header = http.Header{"Idempotency-Key": {key}}
				res, err := engine.Serve(t.Context(), r, fn)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}

			on("PutItem", func(int) bool { return true })
			if res := serve("claim", tabletest.NeverRuns(t)); res.Status != 503 || res.Header.Get("Retry-After") != "1" {
				t.Errorf("the claim: %d %v %s", res.Status, res.Header, res.Body)
			}
			if items := tab.Items(t); len(items) != 0 {
				t.Errorf("the refused claim left %v", items)
			}
			tab.Transport.Fault = nil
			if res := serve("claim", tabletest.Created("{}")); res.Status != 201 || res.Replayed {
				t.Errorf("the claim, below the cap: %+v", res)
			}

			// The phase is number 1 after its throttled tries, then comes the finish.
			on("UpdateItem", func(n int) bool { return n <= 3 || n > 4 && n <= 7 })
			runs := 0
			phased := func(ctx context.Context) (idem.Response, error) {
				if _, err := idem.Atomic(ctx, "made", func(context.Context, *idem.Tx) (int, error) { runs++; return 1, nil }); err != nil {
					return idem.Response{}, err
				}
				return tabletest.Created("{}")(ctx)
			}
			if res := serve("phase", phased); res.Status != 201 || res.Unstored || runs != 1 {
				t.Errorf("phase and finish: %+v after %d runs", res, runs)
			}
			if n := tab.Transport.Calls()["UpdateItem"]; n != 8 {
				t.Errorf("%d updates, want 6 throttled ones and 2", n)
			}
			if res := serve("phase", tabletest.NeverRuns(t)); !res.Replayed {
				t.Errorf("its retry: %+v", res)
			}

			on("UpdateItem", func(n int) bool { return n <= 3 })
			if res := serve("release", func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }); res.Status != 500 {
				t.Errorf("release: %+v", res)
			}
			if res := serve("release", tabletest.Created("{}")); res.Status != 201 || res.Replayed {
				t.Errorf("the freed key: %+v", res)
			}
		})
	}
}
