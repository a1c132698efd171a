package lambda

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const snsKind = "an SNS event"

// SNS takes the messages of a topic to which the function itself is subscribed. Don't
// change SNS: change a copy, as [Batch] shows. If a queue is subscribed to the topic,
// use [SQS] for the queue; raw message delivery may be on or off.
//
// The service SNS invokes the function asynchronously, and takes no report of which
// messages failed. So if one message fails, the whole invocation fails. Lambda runs a
// failed invocation again, by default twice, and then hands the event to the function's
// failure destination. So configure a failure destination.
//
// The key of a message is the first of these that exists:
//
//   - the text of the attribute [KeyAttribute], whose name may be in upper or lower
//     case;
//   - if the message is a [JobEvent] or an EventBridge event, the id of the job or
//     event;
//   - the message id.
//
// If a message is published again, its message id is new, and the handler would repeat
// its calls to other systems. Therefore, if the key is the message id, a phase refuses
// such calls ([idem.ErrDeliveryKey]), unless [Batch.CallsAgainAfterRedrive] is set.
//
// The scope is the topic and the function, since each subscriber does its own work.
// Messages with the same key must have the same text, subject and attributes, except
// the attributes of tracing and the attribute replayed of SNS. If a message without
// [KeyAttribute] is an EventBridge event, the event's detail, detail-type, source and
// resources are compared instead of the text.
var SNS = Batch[events.SNSEvent, events.SNSEventRecord, struct{}]{
	Records: snsRecords,
	ID:      func(r events.SNSEventRecord) string { return r.SNS.MessageID },
	Key:     snsKey,
	Request: snsRequest,
	Keeps:   keepsSNS,
	shared:  true,
}

// keepsSNS is the sum of two times. For 23 days SNS tries to hand a message to Lambda,
// and for keepsAsync the invocation may then wait in Lambda.
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
	in, _ := snsContent(r.SNS.MessageID, r.SNS.Message, r.SNS.Subject, r.SNS.MessageAttributes) // the error matters only for the key, and snsKey returns it
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
