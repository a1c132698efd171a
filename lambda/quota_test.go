package lambda_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// A message over the quota comes back, and a message that was done is not refused.
func TestMessageOverTheQuotaComesBack(t *testing.T) {
	t.Parallel()
	ran, now := make(map[string]int), time.Now()
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
		o.Quota = quota.New(quota.Limits{PerMinute: 1}, func(o *quota.Options) { o.Now = func() time.Time { return now } })
	})
	h := lambda.WrapEach(engine, quiet(lambda.SQS), func(_ context.Context, m events.SQSMessage) error {
		ran[m.MessageId]++
		return nil
	})
	failed := func(ids ...string) int {
		t.Helper()
		var ev events.SQSEvent
		for _, id := range ids {
			ev.Records = append(ev.Records, events.SQSMessage{MessageId: id, Body: id, EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders", EventSource: "aws:sqs"})
		}
		out, err := h.Handle(t.Context(), ev)
		if err != nil {
			t.Fatal(err)
		}
		return len(out.BatchItemFailures)
	}
	if n := failed("m1"); n != 0 || ran["m1"] != 1 {
		t.Errorf("the first message: %d failed, ran %v", n, ran)
	}
	if n := failed("m1", "m2"); n != 1 || ran["m1"] != 1 || ran["m2"] != 0 {
		t.Errorf("with a message over the quota: %d failed, ran %v", n, ran)
	}
}
