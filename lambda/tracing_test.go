package lambda_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tracetest"
	"github.com/samekey/samekey/internal/trace"
	"github.com/samekey/samekey/lambda"
)

const (
	jobParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tracedJob = `{"idempotency_key":"op.1.0","operation":"op","kind":"mail","args":1,"traceparent":"` + jobParent + `","tracestate":"a=1"}`
)

// A consumer continues the trace of the phase that staged its job, whichever way the
// job comes, and the context is no part of the key's comparison.
func TestConsumersContinueTheTrace(t *testing.T) {
	t.Parallel()
	text := func(s string) events.SQSMessageAttribute {
		return events.SQSMessageAttribute{DataType: "String", StringValue: &s}
	}
	inSNS := map[string]any{
		lambda.KeyAttribute: map[string]any{"Type": "String", "Value": "op.1.0"},
		"traceparent":       map[string]any{"Type": "String", "Value": jobParent},
		"tracestate":        map[string]any{"Type": "String", "Value": "a=1"},
	}
	envelope, err := json.Marshal(map[string]any{
		"Type": "Notification", "MessageId": "m", "TopicArn": "arn:aws:sns:us-east-1:1:jobs", "Message": "1", "MessageAttributes": inSNS,
	})
	if err != nil {
		t.Fatal(err)
	}
	event := `{"version":"0","id":"e","source":"rides","detail-type":"mail","account":"1","region":"us-east-1","detail":` + tracedJob + `}`
	queued := func(body string, attributes map[string]events.SQSMessageAttribute) any {
		m := message("1", body)
		m.MessageAttributes = attributes
		return batch(m)
	}
	queue := func(e *idem.Engine) awslambda.Handler {
		return lambda.WrapEach(e, lambda.SQS, func(context.Context, events.SQSMessage) error { return nil })
	}
	for name, tt := range map[string]struct {
		wrap func(*idem.Engine) awslambda.Handler
		ev   any
	}{
		"a message": {queue, queued("1", map[string]events.SQSMessageAttribute{
			lambda.KeyAttribute: text("op.1.0"), "traceparent": text(jobParent), "tracestate": text("a=1"),
		})},
		"a message of a topic":              {queue, queued(string(envelope), nil)},
		"a message of a bus":                {queue, queued(event, nil)},
		"a message that is an event's part": {queue, queued(tracedJob, nil)},
		"a notification": {
			func(e *idem.Engine) awslambda.Handler {
				return lambda.WrapEach(e, lambda.SNS, func(context.Context, events.SNSEventRecord) error { return nil })
			},
			events.SNSEvent{Records: []events.SNSEventRecord{{EventSource: "aws:sns", SNS: events.SNSEntity{
				MessageID: "m", TopicArn: "arn:aws:sns:us-east-1:1:jobs", Message: "1", MessageAttributes: inSNS,
			}}}},
		},
		"an event": {
			func(e *idem.Engine) awslambda.Handler {
				return lambda.WrapEach(e, lambda.EventBridge, func(context.Context, events.EventBridgeEvent) error { return nil })
			},
			json.RawMessage(event),
		},
		"a payload": {
			func(e *idem.Engine) awslambda.Handler {
				return lambda.Wrap(e, lambda.Direct[lambda.JobEvent, int](func(j lambda.JobEvent) (string, error) { return j.Key, nil }),
					func(context.Context, lambda.JobEvent) (int, error) { return 1, nil })
			},
			json.RawMessage(tracedJob),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tracer tracetest.Recorder
			memory := &idem.MemoryStore{}
			h := tt.wrap(idem.New(memory, callertest.Anybody, func(o *idem.Options) { o.Tracer = &tracer }))
			payload, err := json.Marshal(tt.ev)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := h.Invoke(t.Context(), payload); err != nil {
					t.Fatal(err)
				}
			}
			const want = "process 200\n  claim new\n  finish\nprocess 200 replayed\n  claim replay\n"
			spans := tracer.Spans()
			if got := tracetest.Tree(spans); got != want {
				t.Errorf("got\n%s, want\n%s", got, want)
			}
			if want := (trace.Context{Parent: jobParent, State: "a=1"}); spans[0].From != want {
				t.Errorf("the trace is from %+v, want %+v", spans[0].From, want)
			}
			for pk, r := range memory.Records() {
				if !strings.Contains(pk, "#") || r.Trace != spans[0].Identity() {
					t.Errorf("%s has the trace %+v", pk, r.Trace)
				}
			}
		})
	}
}

// An event that only resembles a job keeps its own id as its key.
func TestTraceContextMakesNoJob(t *testing.T) {
	t.Parallel()
	for name, detail := range map[string]string{
		"another member":   strings.Replace(tracedJob, `"tracestate"`, `"other"`, 1),
		"a missing member": strings.Replace(tracedJob, `"kind"`, `"other"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := events.EventBridgeEvent{ID: "e", Source: "s", DetailType: "d", Detail: json.RawMessage(detail)}
			key, err1 := lambda.EventBridge.Key(ev)
			req, err2 := lambda.EventBridge.Request(t.Context(), ev)
			if key != "e" || req.Trace != (trace.Context{}) || err1 != nil || err2 != nil {
				t.Errorf("got the key %q, %v, and the trace %+v, %v", key, err1, req.Trace, err2)
			}
		})
	}
}
