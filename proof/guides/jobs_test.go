package guides_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// mailer makes the consumer's handler.
func mailer(store *idem.MemoryStore, send func(ctx context.Context, m events.SQSMessage) error) *lambda.EachHandler[events.SQSEvent, events.SQSMessage, events.SQSEventResponse] {
	engine := idem.New(store, func(o *idem.Options) {
		o.Namespace = "mails"
		o.Retention = 30 * 24 * time.Hour // longer than queue and dead-letter queue keep a message
		o.Logger = slog.New(slog.DiscardHandler)
	})
	return lambda.WrapEach(engine, lambda.SQS, send)
}

// delivery is a job as the queue delivers it.
func delivery(messageID, jobID, body string) events.SQSEvent {
	value := func(s string) events.SQSMessageAttribute {
		return events.SQSMessageAttribute{DataType: "String", StringValue: &s}
	}
	return events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: messageID, Body: body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:mails",
		MessageAttributes: map[string]events.SQSMessageAttribute{"idempotency-key": value(jobID), "kind": value("send_mail")},
	}}}
}

// A job that is delivered twice, in two messages, sends one mail; a mail that fails
// comes again.
func TestMailer(t *testing.T) {
	t.Parallel()
	var sent []string
	down := true
	h := mailer(new(idem.MemoryStore), func(_ context.Context, m events.SQSMessage) error {
		if down {
			return errors.New("the mail server is down")
		}
		sent = append(sent, m.Body)
		return nil
	})
	for i, message := range []string{"m1", "m1", "m2"} {
		re, err := h.Handle(t.Context(), delivery(message, "OP1.2.0", "order 1"))
		// A batch of which every message failed is an error of the invocation.
		if failed := err != nil || len(re.BatchItemFailures) > 0; failed != down || len(sent) != min(i, 1) {
			t.Errorf("delivery %d: %v, %+v, %d mails", i+1, err, re, len(sent))
		}
		down = false
	}
	if re, err := h.Handle(t.Context(), delivery("m3", "OP1.2.1", "order 1 again")); err != nil || len(re.BatchItemFailures) > 0 || len(sent) != 2 {
		t.Errorf("another job: %v, %d mails", err, len(sent))
	}
}
