package eventsource_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// A message charges a card, and then fails until its queue gives it up. Read in the
// dead-letter queue, and moved back under another id, it goes on behind the charge.
func queueRedrivesOneOperation(t *testing.T, c *sqs.Client) {
	dead := newLocalQueue(t, c, "operation-dead", map[string]string{"VisibilityTimeout": seconds})
	policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": dead.arn(), "maxReceiveCount": 1})
	q := newLocalQueue(t, c, "operation", map[string]string{"VisibilityTimeout": seconds, "RedrivePolicy": string(policy)})

	var keys []string // that the provider was called with
	ids := make(map[string]bool)
	failing, done := errors.New("the ledger is down"), make(chan struct{}, 1)
	store := &idem.MemoryStore{}
	engine := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Retention = 30 * 24 * time.Hour })
	byBody := lambda.SQS.WithKey(func(m events.SQSMessage) (string, error) { return m.Body, nil })
	byBody.Failed = func(context.Context, events.SQSMessage, error) {}
	h := lambda.WrapEach(engine, byBody, func(ctx context.Context, m events.SQSMessage) error {
		ids[m.MessageId] = true
		if _, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) {
			keys = append(keys, tx.Key("payments"))
			return len(keys), nil
		}); err != nil {
			return err
		}
		if failing != nil {
			return failing
		}
		done <- struct{}{}
		return nil
	})
	q.send(t, "order-7", nil)
	first := q.start(t, h.Handle, nil)
	m := dead.receive(t)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	// A function reads the dead letters, and fails as well.
	atDead := make(chan events.SQSMessage, 100)
	second := dead.start(t, func(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
		re, err := h.Handle(ctx, ev)
		atDead <- ev.Records[0]
		return re, err
	}, nil)
	there := <-atDead
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if there.Attributes["DeadLetterQueueSourceArn"] != q.arn() {
		t.Errorf("the attributes are %v", there.Attributes)
	}
	if there.MessageId != aws.ToString(m.MessageId) {
		t.Errorf("its id was %s, and is %s", *m.MessageId, there.MessageId)
	}

	failing = nil
	q.send(t, there.Body, nil) // as StartMessageMoveTask of AWS does it: with another id, which ElasticMQ's keeps
	q.start(t, h.Handle, nil)
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the message wasn't moved back")
	}
	if len(keys) != 1 || len(ids) != 2 || len(store.Records()) != 1 {
		t.Errorf("calls with the keys %v, under the ids %v, %d operations; want one call and operation", keys, ids, len(store.Records()))
	}
}
