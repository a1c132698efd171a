package lambda

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const snsKind = "an SNS event"

// SNS takes the messages of a topic to which the function itself is subscribed. Don't change SNS:
// change a copy, as [Batch] shows. For a queue that is subscribed to a topic use [SQS], with or
// without raw message delivery.
//
// SNS invokes the function asynchronously, and takes no report of which messages failed. So if one
// message fails, the whole invocation fails. Lambda runs a failed invocation again, by default
// twice, and then hands the event to the function's failure destination. So configure a failure
// destination.
//
// The key of a message is the first of these that exists:
//
//   - the attribute [KeyAttribute], with its name in upper or lower case;
//   - the id of the [JobEvent] or EventBridge event, if the message is one;
//   - the message id.
//
// A message that is published again has a new message id, so its phases would repeat their calls.
// Therefore, if the key is the message id, a phase refuses to call other systems
// ([idem.ErrDeliveryKey]), unless [Batch.CallsAgainAfterRedrive] is set.
//
// The scope is the topic and the function, since each subscriber does its own work. Messages with
// the same key must have the same text, subject and attributes, except the attributes of tracing.
var SNS = Batch[events.SNSEvent, events.SNSEventRecord, struct{}]{
	Records: snsRecords,
	ID:      func(r events.SNSEventRecord) string { return r.SNS.MessageID },
	Key:     snsKey,
	Request: snsRequest,
	Keeps:   keepsSNS,
	shared:  true,
}

// keepsSNS is the 23 days for which SNS tries to hand a message to Lambda, and the time for which
// the invocation may then wait in Lambda.
// https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html
const keepsSNS = 23*day + keepsAsync

func snsRecords(ev events.SNSEvent) ([]events.SNSEventRecord, error) {
	return ev.Records, checkOrigins(snsKind, "aws:sns", len(ev.Records), func(i int) origin {
		r := &ev.Records[i]
		return origin{r.EventSource, r.SNS.MessageID, r.SNS.TopicArn}
	})
}

func snsKey(r events.SNSEventRecord) (string, error) {
	in, err := snsContent(r.SNS.MessageID, r.SNS.Message, r.SNS.Subject, r.SNS.MessageAttributes)
	return in.key, err
}

func snsRequest(ctx context.Context, r events.SNSEventRecord) (idem.Request, error) {
	in, _ := snsContent(r.SNS.MessageID, r.SNS.Message, r.SNS.Subject, r.SNS.MessageAttributes) // ignores the error: snsKey returns it, and with Batch.WithKey the key doesn't depend on the envelope
	return idem.Request{
		Source: consumerScope(ctx, r.SNS.TopicArn),
		Route:  "SNS " + resourceName(r.SNS.TopicArn),
		Header: jsonHeader(),
		Query:  in.said.Encode(),
		Body:   []byte(in.body),
		Trace:  in.trace,

		DeliveryKey:  true, // a message that is published again has another id
		Asynchronous: true,
	}, nil
}
