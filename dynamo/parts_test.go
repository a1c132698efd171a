package dynamo_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// strongly refuses reads that aren't strongly consistent.
type strongly struct {
	dynamo.API
	t     *testing.T
	reads int
}

func (s *strongly) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if s.reads++; !aws.ToBool(in.ConsistentRead) {
		s.t.Error("an item is read weakly")
	}
	return s.API.GetItem(ctx, in, opts...)
}

func (s *strongly) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	for _, of := range in.RequestItems {
		if s.reads++; !aws.ToBool(of.ConsistentRead) {
			s.t.Error("items are read weakly")
		}
	}
	return s.API.BatchGetItem(ctx, in, opts...)
}

// The parts of a body are read strongly, as a batch and alone, and outlive an answer that
// has no expiry of its own yet, because its jobs wait.
func TestPartsOfABody(t *testing.T) {
	t.Parallel()
	for _, kib := range []int{20, 1000} {
		t.Run(fmt.Sprint(kib, " KiB"), func(t *testing.T) {
			t.Parallel()
			var db fakedynamo.DB
			api := &strongly{API: &db, t: t}
			st, err := dynamo.New(api, "records")
			if err != nil {
				t.Fatal(err)
			}
			engine := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })
			req := idem.Request{Key: "k", Method: "POST", Path: "/"}
			body := storetest.Noise(kib << 10)
			if _, err := engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
				return idem.Response{Status: 201, Body: body}, idem.Stage(ctx, idem.NewJob("mail", 1))
			}); err != nil {
				t.Fatal(err)
			}
			for _, it := range db.Items("records") {
				if it["st"] != nil {
					continue
				}
				secs, _ := strconv.ParseInt(it["exp_s"].(*types.AttributeValueMemberN).Value, 10, 64)
				if left := time.Until(time.Unix(secs, 0)); left < defaults.Retention+24*time.Hour {
					t.Errorf("a part is kept for %v", left)
				}
			}
			res, err := engine.Do(t.Context(), req, nil)
			if err != nil || !bytes.Equal(res.Body, body) || api.reads == 0 {
				t.Errorf("%d bytes after %d reads, %v", len(res.Body), api.reads, err)
			}
		})
	}
}
