package calls_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

type calls = map[string]int

// What a queue's messages cost: two calls for a new one, two for one that fails (claim and
// release), none where there is no time left. One that was received before is read first:
// a read unit for a replay, and no write that is refused.
//
//nolint:tparallel // the steps are one story on one table
func TestCallsPerMessage(t *testing.T) {
	t.Parallel()
	store, tr := newStore(t)
	var runs atomic.Int64
	failing := ""
	b := lambda.SQS
	b.Failed = func(context.Context, events.SQSMessage, error) {}
	h := lambda.WrapEach(idem.New(store, callertest.Anybody), b, func(_ context.Context, m events.SQSMessage) error {
		runs.Add(1)
		if m.MessageId == failing {
			return errors.New("bad message")
		}
		return nil
	})
	var ev events.SQSEvent
	for i := range 10 {
		ev.Records = append(ev.Records, events.SQSMessage{
			MessageId: fmt.Sprint("m-", i), Body: "{}", EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:jobs",
		})
	}
	deliver := func(t *testing.T, received int, left time.Duration, wantFailures int, wantRuns int64, want calls) {
		t.Helper()
		for i := range ev.Records {
			ev.Records[i].Attributes = map[string]string{"ApproximateReceiveCount": strconv.Itoa(received)}
		}
		ctx, cancel := context.WithTimeout(t.Context(), left)
		defer cancel()
		runs.Store(0)
		tr.Reset()
		re, err := h.Handle(ctx, ev)
		if len(re.BatchItemFailures) != wantFailures || (err != nil) != (left < time.Second) || runs.Load() != wantRuns {
			t.Errorf("%d failures, %v, %d runs, want %d and %d", len(re.BatchItemFailures), err, runs.Load(), wantFailures, wantRuns)
		}
		if diff := cmp.Diff(want, tr.Calls()); diff != "" {
			t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
		}
	}
	t.Run("no time left", func(t *testing.T) {
		deliver(t, 1, 100*time.Millisecond, 0, 0, calls{})
	})
	t.Run("ten new ones, of which one fails", func(t *testing.T) {
		failing = "m-3"
		deliver(t, 1, 10*time.Minute, 1, 10, calls{"PutItem": 10, "UpdateItem": 10})
	})
	t.Run("delivered again", func(t *testing.T) {
		failing = ""
		deliver(t, 2, 10*time.Minute, 0, 1, calls{"GetItem": 10, "PutItem": 1, "UpdateItem": 1}) // the failed one was freed
	})
	t.Run("and again, without a count", func(t *testing.T) {
		deliver(t, 0, 10*time.Minute, 0, 0, calls{"PutItem": 10})
	})
	t.Run("new ones that lie", func(t *testing.T) {
		for i := range ev.Records {
			ev.Records[i].MessageId += "-new"
		}
		deliver(t, 3, 10*time.Minute, 0, 10, calls{"GetItem": 10, "PutItem": 10, "UpdateItem": 10})
	})
}

// newStore is a store on a table of its own, and the transport that counts.
func newStore(t *testing.T) (*dynamo.Store, *dynamotest.Transport) {
	t.Helper()
	store, _, tr := newTable(t)
	return store, tr
}

func newTable(t *testing.T, optFns ...func(*dynamo.Options)) (*dynamo.Store, *dynamodb.Client, *dynamotest.Transport) {
	t.Helper()
	db := dynamotest.Start(t)
	table := "t-" + rand.Text()
	direct := db.Client()
	if _, err := direct.CreateTable(t.Context(), dynamo.CreateTableInput(table)); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(direct, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond }).
		Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	tr := &dynamotest.Transport{}
	client := db.Client(dynamo.Tune, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: tr, Timeout: 10 * time.Minute}
	})
	store, err := dynamo.New(client, table, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return store, client, tr
}
