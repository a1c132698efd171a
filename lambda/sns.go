package lambda

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const snsKind = "an SNS event"

// SNS takes the messages of a topic that the function itself is subscribed to.
// It must not be changed; see [Batch] for how to vary it. For a queue that is
// subscribed to the topic use [SQS], with or without raw message delivery.
//
// SNS invokes asynchronously and takes no report of single messages: a failure
// fails the invocation, and Lambda runs it again, by default twice, then hands it
// to the function's failure destination. There should be one.
//
// Published again, a message has another id: phases don't call others under it
// ([idem.ErrDeliveryKey], [Batch.CallsAgainAfterRedrive]).
//
// A message's key is its attribute [KeyAttribute], or else the id of the [JobEvent] or of
// EventBridge's event that it is, or else its message id. The
// scope is the topic and the function, since each subscriber does its own work.
// What must be the same under one key is the message, its subject and its
// attributes, but for those of tracing.
var SNS = Batch[events.SNSEvent, events.SNSEventRecord, struct{}]{
	Records: snsRecords,
	ID:      func(r events.SNSEventRecord) string { return r.SNS.MessageID },
	Key:     snsKey,
	Request: snsRequest,
	Keeps:   keepsSNS,
	shared:  true,
}

// keepsSNS: SNS tries to hand a message to Lambda for 23 days.
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
	in, _ := snsContent(r.SNS.MessageID, r.SNS.Message, r.SNS.Subject, r.SNS.MessageAttributes) // snsKey returns its error; a key from Batch.WithKey does without
	return idem.Request{
		Scope:  consumerScope(ctx, r.SNS.TopicArn),
		Route:  "SNS " + resourceName(r.SNS.TopicArn),
		Header: jsonHeader(),
		Query:  in.said.Encode(),
		Body:   []byte(in.body),

		DeliveryKey: true, // published again, it has another id
	}, nil
}
