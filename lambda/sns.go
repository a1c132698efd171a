package lambda

import (
	"context"
	"fmt"
	"net/url"
	"strings"

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
// A message's key is its attribute [KeyAttribute], or else the id of the [Job] or of
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

func snsRecords(ev events.SNSEvent) ([]events.SNSEventRecord, error) {
	return ev.Records, checkOrigins(snsKind, "aws:sns", len(ev.Records), func(i int) origin {
		r := &ev.Records[i]
		return origin{r.EventSource, r.SNS.MessageID, r.SNS.TopicArn}
	})
}

func snsKey(r events.SNSEventRecord) (string, error) {
	if _, there := r.SNS.MessageAttributes[KeyAttribute]; !there {
		if in, ok, err := openBody(r.SNS.Message); ok || err != nil {
			return in.key, err
		}
	}
	return snsAttributeKey(r.SNS.MessageAttributes, r.SNS.MessageID)
}

func snsAttributeKey(attributes map[string]any, id string) (string, error) {
	a, there := attributes[KeyAttribute]
	dataType, value := snsAttribute(a)
	if strings.HasPrefix(dataType, "Binary") {
		value = ""
	}
	return attributeKey(value, there, id)
}

func snsRequest(ctx context.Context, r events.SNSEventRecord) (idem.Request, error) {
	body, said := r.SNS.Message, make(url.Values)
	if _, there := r.SNS.MessageAttributes[KeyAttribute]; !there {
		if in, ok, err := openBody(body); ok && err == nil {
			body, said = in.body, in.said
		}
	}
	snsSaid(said, r.SNS.MessageAttributes, r.SNS.Subject)
	return idem.Request{
		Scope:  consumerScope(ctx, r.SNS.TopicArn),
		Route:  "SNS " + resourceName(r.SNS.TopicArn),
		Header: jsonHeader(),
		Query:  said.Encode(),
		Body:   []byte(body),

		DeliveryKey: true, // published again, it has another id
	}, nil
}

// snsSaid puts into said what a publisher has said beside the message.
func snsSaid(said url.Values, attributes map[string]any, subject string) {
	for name, a := range attributes {
		if identifies(name) {
			dataType, value := snsAttribute(a)
			said.Set(name, dataType+":"+value)
		}
	}
	if subject != "" {
		said.Set("@subject", subject) // no attribute can have this name
	}
}

// snsAttribute is a message attribute's type and value; binary ones come in
// base64.
func snsAttribute(a any) (dataType, value string) {
	m, _ := a.(map[string]any)
	dataType, _ = m["Type"].(string)
	switch v := m["Value"].(type) {
	case nil:
	case string:
		value = v
	default:
		value = fmt.Sprint(v)
	}
	return dataType, value
}
