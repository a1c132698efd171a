package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/examples/shop/provider"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

// Whatever call the process dies at, a job sends one mail.
func TestAMailIsSentOnce(t *testing.T) {
	t.Parallel()
	id := "job-1"
	job := events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: "1", Body: `{"to":"jane@example.com","text":"Thank you"}`, EventSource: "aws:sqs",
		EventSourceARN:    "arn:aws:sqs:eu-central-1:123456789012:mails",
		MessageAttributes: map[string]events.SQSMessageAttribute{lambda.KeyAttribute: {StringValue: &id, DataType: "String"}},
	}}}
	lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.EachHandler[events.SQSEvent, events.SQSMessage, events.SQSEventResponse] {
		m := mailer{provider.Client{URL: "https://mails.example", HTTP: *w.Client()}}
		return lambda.WrapEach(w.Engine(), lambda.SQS, m.send)
	}, job, func(t testing.TB, w *idemtest.World, _ events.SQSEventResponse) {
		if mails := w.Provider.Effects("/mails"); len(mails) != 1 || !strings.Contains(string(mails[0].Body), "jane@example.com") {
			t.Errorf("mails %+v", mails)
		}
	})
}
