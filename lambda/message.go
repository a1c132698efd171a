package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/samekey/samekey/internal/base/rawjson"
	"github.com/samekey/samekey/internal/trace"
)

// KeyAttribute is the name of the message attribute that carries the idempotency key of an SQS or
// SNS message, as text. The name may be in upper or lower case. A second attribute of this name is
// an error. A drain sets the attribute to the id of the job. Your own producers may set the
// attribute to a key that names the work, such as an order's id. If a message lacks the attribute,
// [SQS] and [SNS] use another key: the id of the job, event or notification in the message, or else
// the message id. The message id is the same for every delivery of a message, but new if the
// producer sends the message again.
const KeyAttribute = "idempotency-key"

// KindAttribute is the name of the message attribute that carries a job's kind. A drain sets the
// attribute in messages to SQS and SNS. The body of such a message is the job's Args.
const KindAttribute = "kind"

// transportAttributes are message attributes that describe the transport instead of the work. They
// may differ if a producer sends the same job twice, so they are not compared.
var transportAttributes = []string{
	KeyAttribute, "replayed" /* set by SNS on messages from a topic's archive */, "_datadog", "awstraceheader", "b3", "baggage", "correlation-context", "dd-pathway-ctx", "dd-pathway-ctx-base64",
	"elastic-apm-traceparent", "grpc-trace-bin", "newrelic", "ot-tracer-sampled", "ot-tracer-spanid", "ot-tracer-traceid",
	"sentry-trace", "traceparent", "tracestate", "uber-trace-id", "x-amzn-trace-id", "x-cloud-trace-context", "x-request-id",
}

// identifies reports whether a message attribute identifies the work.
func identifies(name string) bool {
	name = strings.ToLower(name)
	return !slices.Contains(transportAttributes, name) && !strings.HasPrefix(name, "x-b3-") && !strings.HasPrefix(name, "x-datadog-")
}

// JobEvent is the form of a staged job for sinks that take no message attributes. A
// JobEvent is the detail of an EventBridge event, or the payload of a function:
//
//	send := lambda.Wrap(engine, lambda.Direct[lambda.JobEvent, struct{}](func(j lambda.JobEvent) (string, error) { return j.Key, nil }), mail)
//	hear := lambda.WrapEach(engine, lambda.EventBridge, listen)
//
// [SQS], [SNS] and [EventBridge] recognize a JobEvent by its JSON members, and use its
// Key as the key.
type JobEvent struct {
	Key       string          `json:"idempotency_key"` // the job's id: do the work once for each id
	Operation string          `json:"operation"`       // the id of the operation that staged the job
	Kind      string          `json:"kind"`
	Args      json.RawMessage `json:"args"`

	// The trace context of the phase that staged the job, the same on every delivery; "" if the
	// phase was not traced.
	Traceparent string `json:"traceparent,omitempty"`
	Tracestate  string `json:"tracestate,omitempty"`
}

func (j *JobEvent) trace() trace.Context {
	return trace.Context{Parent: j.Traceparent, State: j.Tracestate}
}

// isJob reports whether an object has the members of a [JobEvent], with or without
// a trace context, and no others.
func isJob(m map[string]json.RawMessage) bool {
	known := 4
	for _, name := range []string{trace.ParentHeader, trace.StateHeader} {
		if m[name] != nil {
			known++
		}
	}
	for _, name := range []string{"idempotency_key", "operation", "kind", "args"} {
		if m[name] == nil {
			return false
		}
	}
	return len(m) == known
}

func jobKey(m map[string]json.RawMessage) (string, error) {
	key, err := textIn(m, "idempotency_key")
	if err == nil && key == "" {
		err = errors.New("idempotency_key is empty")
	}
	return key, err
}

// jobTrace returns the trace context of a [JobEvent]; zero if there is none.
func jobTrace(body []byte) trace.Context {
	if !bytes.Contains(body, []byte(`"traceparent"`)) || !bytes.Contains(body, []byte(`"idempotency_key"`)) {
		return trace.Context{}
	}
	m, _ := rawjson.Object(body)
	if !isJob(m) {
		return trace.Context{}
	}
	parent, _ := textIn(m, trace.ParentHeader)
	state, _ := textIn(m, trace.StateHeader)
	return trace.Context{Parent: parent, State: state}
}

func textIn(m map[string]json.RawMessage, name string) (s string, err error) {
	if !rawjson.Given(m[name]) || json.Unmarshal(m[name], &s) != nil {
		return "", errors.New(name + " isn't a text")
	}
	return s, nil
}

// detailKey returns the key of an event: the id of the job in its detail, or else
// the event's id.
func detailKey(detail json.RawMessage, id string) (string, error) {
	if !bytes.Contains(detail, []byte(`"idempotency_key"`)) {
		return id, nil
	}
	if m, _ := rawjson.Object(detail); isJob(m) {
		return jobKey(m)
	}
	return id, nil
}
