package dynamo_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// cancelling is a table that cancels transactions for reasons, and counts them.
type cancelling struct {
	*fakedynamo.DB
	reasons []string // nil: as the items are
	n       int
}

func (c *cancelling) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.n++
	if c.reasons == nil {
		return c.DB.TransactWriteItems(ctx, in, opts...)
	}
	e := &types.TransactionCanceledException{}
	for _, code := range c.reasons {
		e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
	}
	return nil, e
}

// told serves a POST with a key within 20 s, and returns the answer's status and code.
func told(t *testing.T, api dynamo.API, key string, fn func(context.Context) (idem.Response, error)) (status int, code string) {
	t.Helper()
	st, err := dynamo.New(api, "records")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req := idem.Request{Method: "POST", Path: "/", Header: http.Header{idem.KeyHeader: {key}}}
	res, err := idem.New(st, callertest.Anybody).Serve(ctx, req, fn)
	if err != nil {
		t.Fatal(err)
	}
	var problem struct{ Code string }
	_ = json.Unmarshal(res.Body, &problem) // an answer of the handler has no code
	return res.Status, problem.Code
}

// A client hears of a commit that is refused for now whether another request was in the way,
// or the table.
func TestCommitIsRefusedForNow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reasons []string
		status  int
		code    string
	}{
		"the record is throttled":     {[]string{"ThrottlingError", "None"}, 503, "store_unavailable"},
		"the item is throttled":       {[]string{"None", "ThrottlingError"}, 503, "store_unavailable"},
		"the item has no units":       {[]string{"None", "ProvisionedThroughputExceeded"}, 503, "store_unavailable"},
		"another write of the item":   {[]string{"None", "TransactionConflict"}, 409, "conflict"},
		"another write of the record": {[]string{"TransactionConflict", "None"}, 409, "conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				status, code := told(t, &cancelling{DB: &fakedynamo.DB{}, reasons: tt.reasons}, "k", func(ctx context.Context) (idem.Response, error) {
					return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(dynamo.Put("app", counter{ID: "c", N: 1}))
						return idem.Response{Status: 201}, nil
					})
				})
				if status != tt.status || code != tt.code {
					t.Errorf("got %d %s, want %d %s", status, code, tt.status, tt.code)
				}
			})
		})
	}
}

// A commit that can never be applied is sent once: after a call, the next attempt repeats the
// call under its key, and commits what it reads then.
func TestCommitOfACallIsRefusedForGood(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		write  func(stock, bool) idem.Write
		status int
		code   string
	}{
		"what was read has changed": {func(s stock, _ bool) idem.Write { return dynamo.Put("app", stock{PK: "1", N: s.N - 1}) }, 409, "conflict"},
		"a condition is false": {func(_ stock, again bool) idem.Write {
			if again {
				return dynamo.Put("app", stock{PK: "2", N: 1})
			}
			return dynamo.Put("app", stock{PK: "2", N: 1}).If("attribute_exists(pk)")
		}, 500, "internal_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &cancelling{DB: &fakedynamo.DB{}}
				put := func(n string) {
					it := attributes{"pk": &types.AttributeValueMemberS{Value: "1"}, "n": &types.AttributeValueMemberN{Value: n}}
					if _, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: it}); err != nil {
						t.Fatal(err)
					}
				}
				put("5")
				charges := make(map[string]bool)
				runs := 0
				handler := func(ctx context.Context) (idem.Response, error) {
					_, err := idem.Foreign(ctx, "charge", func(ctx context.Context, tx *idem.Tx) (int, error) {
						runs++
						var s stock
						if _, err := dynamo.Get(ctx, tx, api, "app", map[string]string{"pk": "1"}, &s); err != nil {
							return 0, err
						}
						charges[tx.Key("pay")] = true
						if runs == 1 && tt.code == "conflict" {
							put("4")
						}
						tx.Write(tt.write(s, runs > 1))
						return 1, nil
					})
					return idem.Response{Status: 201}, err
				}
				begun := time.Now()
				if status, code := told(t, api, "k", handler); status != tt.status || code != tt.code || api.n != 1 || time.Since(begun) > time.Second {
					t.Errorf("got %d %s, %d transactions in %v; want %d %s, one at once", status, code, api.n, time.Since(begun), tt.status, tt.code)
				}
				if status, code := told(t, api, "k", handler); status != 201 || runs != 2 || len(charges) != 1 {
					t.Errorf("a retry got %d %s, %d runs, charges %v; want 201, two runs, one charge", status, code, runs, charges)
				}
			})
		})
	}
}
