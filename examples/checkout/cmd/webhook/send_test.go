package main

import (
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

// Without a secret anybody could sign an event: none is sent.
func TestAnEventIsNotSentUnsigned(t *testing.T) {
	t.Parallel()
	provider := new(idemtest.Provider)
	w := webhook{url: "https://platform.example/events", http: http.Client{Transport: provider}}
	if err := w.post(t.Context(), "k", "{}"); err == nil || len(provider.Effects("/events")) > 0 {
		t.Errorf("%v, sent %+v", err, provider.Effects("/events"))
	}
}

// Whatever call the process dies at, a job sends one event.
func TestAnEventIsSentOnce(t *testing.T) {
	t.Parallel()
	id := "job-1"
	job := events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: "1", Body: `{"id":"order_1"}`, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders",
		MessageAttributes: map[string]events.SQSMessageAttribute{lambda.KeyAttribute: {StringValue: &id, DataType: "String"}},
	}}}
	lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.EachHandler[events.SQSEvent, events.SQSMessage, events.SQSEventResponse] {
		return lambda.WrapEach(w.Engine(), lambda.SQS, webhook{url: "https://platform.example/events", secret: []byte("s"), http: *w.Client()}.send)
	}, job, func(t testing.TB, w *idemtest.World, _ events.SQSEventResponse) {
		if sent := w.Provider.Effects("/events"); len(sent) != 1 || string(sent[0].Body) != `{"type":"order_create","data":{"id":"order_1"}}` {
			t.Errorf("sent %+v", sent)
		}
	})
}
