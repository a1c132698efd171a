package eventsource_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// A topic without raw message delivery, and a bus, in front of a queue: the same job
// comes twice, in two messages that have nothing but the job in common.
func queueDoesJobsInEnvelopesOnce(t *testing.T, c *sqs.Client) {
	const done = `{"last":true}`
	q, got := newLocalQueue(t, c, "envelopes", map[string]string{"VisibilityTimeout": "60"}), make(chan string, 100)
	for _, n := range []string{"1", "2"} {
		job := map[string]any{"idempotency_key": "OP.2.1", "operation": "OP", "kind": "receipt", "args": map[string]string{"ride": "ride-2"}}
		for _, envelope := range []map[string]any{
			{
				"Type": "Notification", "MessageId": "63a3f6b6-d533-4a47-aef9-" + n, "TopicArn": "arn:aws:sns:us-east-1:123456789012:rides",
				"Message": `{"ride":"ride-1"}`, "Timestamp": "2026-11-21T09:30:0" + n + ".123Z", "Signature": "EXAMPLE" + n,
				"MessageAttributes": map[string]any{lambda.KeyAttribute: map[string]string{"Type": "String", "Value": "OP.2.0"}},
			},
			{
				"version": "0", "id": "6a7e8feb-b491-" + n, "detail-type": "receipt", "source": "rides", "account": "123456789012",
				"time": "2026-11-21T09:30:0" + n + "Z", "region": "us-east-1", "resources": []string{}, "detail": job,
			},
		} {
			body, err := json.Marshal(envelope)
			if err != nil {
				t.Fatal(err)
			}
			q.send(t, string(body), nil)
		}
	}
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.SQS, func(_ context.Context, m events.SQSMessage) error {
		inner, err := lambda.Inner(m)
		got <- inner
		return err
	})
	q.start(t, h.Handle, nil)
	q.empty(t)
	q.send(t, done, nil) // after all the others: what was run is in got by now
	ran := make(map[string]int)
	for ran[done] == 0 {
		select {
		case body := <-got:
			ran[body]++
		case <-time.After(patience):
			t.Fatal("nothing was delivered")
		}
	}
	if len(ran) != 3 || ran[`{"ride":"ride-1"}`] != 1 {
		t.Errorf("ran %v, want each once", ran)
	}
	for body, n := range ran {
		if n != 1 {
			t.Errorf("%s ran %d times", body, n)
		}
	}
}
