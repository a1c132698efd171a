package lambda

import (
	"cmp"
	"context"
	"encoding/base64"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/retrysign"
)

const sqsKind = "an SQS event"

// SQS takes the messages of a queue. Don't change SQS: change a copy, as [Batch] shows.
//
// The event source mapping must have ReportBatchItemFailures among its
// FunctionResponseTypes. Otherwise Lambda ignores the reply that names the failed
// messages, and deletes these messages. If you can't set ReportBatchItemFailures, use a
// copy with a nil Reply. Then one failed message makes the whole invocation fail, and
// Lambda delivers all messages of the invocation again. The handler runs only for the
// messages that aren't done.
//
// The key of a message is the first of these that exists:
//
//   - the text of the attribute [KeyAttribute], whose name may be in upper or lower
//     case;
//   - if the body is a [JobEvent], or an envelope of SNS (without raw message delivery)
//     or EventBridge, the first of these in the body: the attribute [KeyAttribute], the
//     id of the job, the id of the notification or event;
//   - the message id.
//
// The message id is the same for every delivery of a message. But the id is new if a
// producer sends the message again, or an operator redrives the message from a
// dead-letter queue. The handler would then repeat its calls to other systems.
// Therefore, if the key is the message id, a phase refuses such calls
// ([idem.ErrDeliveryKey]), unless [Batch.CallsAgainAfterRedrive] is set.
//
// The deduplication id of a FIFO queue is never the key, because that id may be a hash
// of the content: two equal messages an hour apart would then be one operation.
//
// The scope is the queue. For a message in a dead-letter queue the scope is the source
// queue. Messages with the same key must have the same body, message group and
// attributes, except the attributes of tracing and the attribute replayed of SNS.
//
// SQS opens an envelope only if the message itself lacks [KeyAttribute]. It then
// compares the envelope's content, without times and signatures, instead of the
// message's body and attributes. Nobody verifies an envelope, so the author of the body
// chooses the key. If a body looks like an envelope but can't be read, the message
// fails ([idem.ErrKeyInvalid]). The handler gets the message with its envelope; [Inner]
// opens the envelope.
//
// In a FIFO queue a message group stops at its first failure: the failed message and all later
// messages of the group are reported as failed, and other groups continue. A message that can never
// be done, such as a message whose key was used for other work ([idem.ErrMismatch]), fails at each
// delivery until the queue's redrive policy moves it to the dead-letter queue. So configure a
// redrive policy.
var SQS = Batch[events.SQSEvent, events.SQSMessage, events.SQSEventResponse]{
	Records: sqsRecords,
	ID:      func(m events.SQSMessage) string { return m.MessageId },
	Key:     sqsKey,
	Request: sqsRequest,
	Keeps:   keepsSQS,
	Group:   sqsGroup,
	Reply:   sqsReply,
}

// keepsSQS is the longest MessageRetentionPeriod. In a standard dead-letter queue the period begins
// when the message is first sent; in a FIFO dead-letter queue, when the message is moved there. A
// redrive begins a new period.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
const keepsSQS = 14 * day

func sqsRecords(ev events.SQSEvent) ([]events.SQSMessage, error) {
	return ev.Records, checkOrigins(sqsKind, "aws:sqs", len(ev.Records), func(i int) origin {
		m := &ev.Records[i]
		return origin{m.EventSource, m.MessageId, m.EventSourceARN}
	})
}

func sqsKey(m events.SQSMessage) (string, error) {
	in, err := sqsContent(&m)
	return in.key, err
}

func sqsRequest(_ context.Context, m events.SQSMessage) (idem.Request, error) {
	queue := cmp.Or(m.Attributes["DeadLetterQueueSourceArn"], m.EventSourceARN)
	in, _ := sqsContent(&m) // the error matters only for the key, and sqsKey returns it
	if group := m.Attributes["MessageGroupId"]; group != "" {
		in.said.Set("@group", group) // no attribute can have this name
	}
	return idem.Request{
		Source: queue,
		Route:  "SQS " + resourceName(queue),
		Header: jsonHeader(),
		Query:  in.said.Encode(),
		Body:   []byte(in.body),
		Trace:  in.trace,

		DeliveryKey: true, // a redrive gives the message another id
		ReadFirst:   retrysign.Above(m.Attributes["ApproximateReceiveCount"], 1),
	}, nil
}

// sqsContent returns the content of a message. If the body is an envelope, the content doesn't
// include the message's own attributes.
func sqsContent(m *events.SQSMessage) (inner, error) {
	key, keyed, keyErr := attributeKey(func(yield func(name, value string) bool) {
		for name, a := range m.MessageAttributes {
			value := ""
			if a.StringValue != nil {
				value = *a.StringValue
			}
			if !yield(name, value) {
				return
			}
		}
	})
	in, opened, err := content(keyed, m.MessageId, m.Body)
	if keyed {
		in.key, err = key, keyErr
	}
	if opened {
		return in, nil
	}
	for name, a := range m.MessageAttributes {
		if a.StringValue != nil {
			in.traces(name, *a.StringValue)
		}
		if !identifies(name) {
			continue
		}
		value := base64.StdEncoding.EncodeToString(a.BinaryValue)
		if a.StringValue != nil {
			value = *a.StringValue
		}
		in.said.Set(name, a.DataType+":"+value)
	}
	return in, err
}

// sqsGroup returns a message's group in a FIFO queue. For a standard queue sqsGroup
// returns "", because groups there are for fairness and have no order.
func sqsGroup(m events.SQSMessage) string {
	if !strings.HasSuffix(m.EventSourceARN, ".fifo") {
		return ""
	}
	return "group " + m.Attributes["MessageGroupId"]
}

func sqsReply(failed []string) events.SQSEventResponse {
	re := events.SQSEventResponse{BatchItemFailures: make([]events.SQSBatchItemFailure, len(failed))}
	for i, id := range failed {
		re.BatchItemFailures[i].ItemIdentifier = id
	}
	return re
}
