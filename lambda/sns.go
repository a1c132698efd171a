package lambda

import (
	"context"
	"fmt"
	"net/url"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const snsKind = "an SNS event"

// SNS takes the messages of a topic that the function itself is subscribed to.
// It must not be changed; see [Batch] for how to vary it. For a queue that is
// subscribed to the topic use [SQS], best with raw message delivery, which hands
// the attributes through.
//
// SNS invokes asynchronously and takes no report of single messages: a failure
// fails the invocation, and Lambda runs it again, by default twice, then hands it
// to the function's failure destination. There should be one.
//
// A message's key is its attribute [KeyAttribute], or else its message id. The
// scope is the topic and the function, since each subscriber does its own work.
// What must be the same under one key is the message, its subject and its
// attributes, but for those of tracing.
var SNS = Batch[events.SNSEvent, events.SNSEventRecord, struct{}]{
	Records: snsRecords,
	ID:      func(r events.SNSEventRecord) string { return r.SNS.MessageID },
	Key:     snsKey,
	Request: snsRequest,
}

func snsRecords(ev events.SNSEvent) ([]events.SNSEventRecord, error) {
	return ev.Records, checkOrigins(snsKind, "aws:sns", len(ev.Records), func(i int) origin {
		r := &ev.Records[i]
		return origin{r.EventSource, r.SNS.MessageID, r.SNS.TopicArn}
	})
}

func snsKey(r events.SNSEventRecord) (string, error) {
	a, there := r.SNS.MessageAttributes[KeyAttribute]
	_, value := snsAttribute(a)
	return attributeKey(value, there, r.SNS.MessageID)
}

func snsRequest(ctx context.Context, r events.SNSEventRecord) (idem.Request, error) {
	values := make(url.Values)
	for name, a := range r.SNS.MessageAttributes {
		if identifies(name) {
			dataType, value := snsAttribute(a)
			values.Set(name, dataType+":"+value)
		}
	}
	if r.SNS.Subject != "" {
		values.Set("@subject", r.SNS.Subject) // no attribute can have this name
	}
	return idem.Request{
		Scope:  consumerScope(ctx, r.SNS.TopicArn),
		Route:  "SNS " + resourceName(r.SNS.TopicArn),
		Header: jsonHeader(),
		Query:  values.Encode(),
		Body:   []byte(r.SNS.Message),
	}, nil
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
