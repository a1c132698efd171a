package otel_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

func send(t *testing.T, h awslambda.Handler, payload []byte) events.APIGatewayV2HTTPResponse {
	t.Helper()
	out, err := h.Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	var re events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(out, &re); err != nil {
		t.Fatal(err)
	}
	return re
}

// A request is one trace from its client's span on: the provider sees it too. A replay
// is in its own client's trace, and has a link to the operation that did the work.
func TestTraceOfARequest(t *testing.T) {
	t.Parallel()
	r, p := record(t), newProvider(t)
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, r.Engine), lambda.HTTPAPI, p.ride)
	if re := send(t, h, post(t, clientParent, "")); re.StatusCode != http.StatusCreated {
		t.Fatalf("got %+v", re)
	}
	first := r.spans()
	first.known(t)
	operation := first.named(t, "samekey operation")
	const want = `samekey operation 201
  samekey claim new
  samekey phase ride_created
    samekey commit
  samekey phase charge_created
    samekey commit
    samekey call charge_created
    samekey commit
  samekey phase finish
    samekey finish
`
	if diff := cmp.Diff(want, first.tree(clientSpan, 0)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	first.ofTrace(t, operation.SpanContext.TraceID())
	if got := operation.SpanContext.TraceID().String(); got != clientTrace || operation.SpanKind != oteltrace.SpanKindServer {
		t.Errorf("the trace is %s, of kind %s, want the client's", got, operation.SpanKind)
	}
	call := first.named(t, "samekey call charge_created").SpanContext
	if want := []string{"00-" + clientTrace + "-" + call.SpanID().String() + "-01"}; !cmp.Equal(want, p.parents) {
		t.Errorf("the provider got %v, want %v", p.parents, want)
	}
	for _, key := range []attribute.Key{"samekey.record", "samekey.operation", "samekey.route", "samekey.recovery_point"} {
		attributeOf(t, operation, key)
	}

	const other = "00-11111111111111111111111111111111-2222222222222222-01"
	if re := send(t, h, post(t, other, "")); re.Headers["Idempotent-Replayed"] != "true" {
		t.Fatalf("got %+v", re)
	}
	again := r.spans()
	again.known(t)
	if diff := cmp.Diff("samekey operation 201\n  samekey claim replay\n", again.tree("2222222222222222", 0)); diff != "" {
		t.Errorf("spans of the replay (-want +got):\n%s", diff)
	}
	replay := again.named(t, "samekey operation")
	linkedTo(t, replay, "first_attempt", operation.SpanContext)
	if v, _ := value(replay, "samekey.replayed"); v != "true" {
		t.Error("the replay doesn't say so")
	}
}

// A failure shows in the step that failed, without the text of its error. A client's
// mistake is no error of the program.
func TestTraceOfFailures(t *testing.T) {
	t.Parallel()
	r, p := record(t), newProvider(t)
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, r.Engine), lambda.HTTPAPI, p.ride)
	p.failOnce()
	if re := send(t, h, post(t, clientParent, "")); re.StatusCode != http.StatusInternalServerError {
		t.Fatalf("got %+v", re)
	}
	all := r.spans()
	all.known(t)
	for _, name := range []string{"samekey operation", "samekey phase charge_created", "samekey call charge_created"} {
		if s := all.named(t, name); s.Status.Code != codes.Error || s.Status.Description != "internal_error" {
			t.Errorf("the status of %s is %+v", name, s.Status)
		}
	}
	if s := all.named(t, "samekey release"); s.Status.Code != codes.Unset {
		t.Errorf("the status of the release is %+v", s.Status)
	}

	if re := send(t, h, post(t, clientParent, "other")); re.StatusCode != http.StatusUnprocessableEntity {
		t.Fatalf("got %+v", re)
	}
	all = r.spans()
	all.known(t)
	if diff := cmp.Diff("samekey operation idempotency_key_mismatch\n  samekey claim mismatch\n", all.tree(clientSpan, 0)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if s := all.named(t, "samekey operation"); s.Status.Code != codes.Unset {
		t.Errorf("the status of a mismatch is %+v", s.Status)
	}
}

// A message is processed in its producer's trace. The invocation that brought it, with
// others, is a link.
func TestParentOfAMessage(t *testing.T) {
	t.Parallel()
	r := record(t)
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody, r.Engine), lambda.SQS, mail)
	text := func(s string) *string { return &s }
	message := func(id, parent string) events.SQSMessage {
		return events.SQSMessage{
			MessageId: id, Body: secret, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:1:receipts",
			MessageAttributes: map[string]events.SQSMessageAttribute{"traceparent": {DataType: "String", StringValue: text(parent)}},
		}
	}
	ctx, invocation := r.TracerProvider.Tracer("test").Start(t.Context(), "invocation")
	if _, err := h.Handle(ctx, events.SQSEvent{Records: []events.SQSMessage{message("1", clientParent), message("2", "none")}}); err != nil {
		t.Fatal(err)
	}
	invocation.End()
	all := r.spans()
	all.known(t)
	found := 0
	for _, s := range all {
		switch {
		case s.Name != "samekey process":
		case s.Parent.SpanID().String() == clientSpan:
			found++
			linkedTo(t, s, "invocation", invocation.SpanContext())
		case s.Parent.SpanID() == invocation.SpanContext().SpanID() && len(s.Links) == 0: // it has no producer
			found++
		default:
			t.Errorf("the parent is %+v, the links are %+v", s.Parent, s.Links)
		}
	}
	if found != 2 {
		t.Errorf("%d messages, want 2", found)
	}
}

// The span that other instrumentation has begun is the parent, and the client's a
// link, unless both are of one trace. Who doesn't trust its clients links them, too.
func TestParentOfARequest(t *testing.T) {
	t.Parallel()
	r, p := record(t), newProvider(t)
	tracer := r.TracerProvider.Tracer("test")
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, r.Engine), lambda.HTTPAPI, p.ride)
	ctx, outer := tracer.Start(t.Context(), "invocation")
	if _, err := h.Invoke(ctx, post(t, clientParent, "")); err != nil {
		t.Fatal(err)
	}
	outer.End()
	client := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: [16]byte{}, SpanID: [8]byte{}})
	if id, err := oteltrace.TraceIDFromHex(clientTrace); err == nil {
		client = client.WithTraceID(id)
	}
	if id, err := oteltrace.SpanIDFromHex(clientSpan); err == nil {
		client = client.WithSpanID(id)
	}
	s := r.spans().named(t, "samekey operation")
	if s.Parent.SpanID() != outer.SpanContext().SpanID() || s.SpanKind != oteltrace.SpanKindInternal {
		t.Errorf("the parent is %s, the kind %s", s.Parent.SpanID(), s.SpanKind)
	}
	linkedTo(t, s, "client", client)

	r.Untrusted = true
	h = lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, r.Engine), lambda.HTTPAPI, p.ride)
	send(t, h, post(t, clientParent, ""))
	s = r.spans().named(t, "samekey operation")
	if s.Parent.IsValid() || s.SpanContext.TraceID().String() == clientTrace {
		t.Errorf("an untrusted client's trace goes on: %+v", s.Parent)
	}
	linkedTo(t, s, "client", client)

	for _, broken := range []string{"", "00-x", clientParent + "-more", "00-00000000000000000000000000000000-b7ad6b7169203331-01"} {
		send(t, h, post(t, broken, ""))
		if s := r.spans().named(t, "samekey operation"); s.Parent.IsValid() {
			t.Errorf("%q is continued: %+v", broken, s.Parent)
		}
	}
}
