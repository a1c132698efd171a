package otel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/samekey/samekey/internal/trace"
)

// Tracer returns a tracer for [idem.Options], and for a worker.
func (t Telemetry) Tracer() trace.Tracer {
	return &tracer{tracer: t.tracerProvider().Tracer(scope), untrusted: t.Untrusted}
}

type tracer struct {
	tracer    oteltrace.Tracer
	untrusted bool
}

// w3c is the form of a trace context in records and messages. It doesn't depend on the program's
// propagator.
var w3c propagation.TraceContext

// Context implements [trace.Tracer].
func (*tracer) Context(ctx context.Context) trace.Context {
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return trace.Context{Parent: carrier[trace.ParentHeader], State: carrier[trace.StateHeader]}
}

// spanOf returns the span that c identifies. The span is invalid if c is invalid.
func spanOf(c trace.Context) oteltrace.SpanContext {
	if c.Parent == "" {
		return oteltrace.SpanContext{}
	}
	ctx := w3c.Extract(context.Background(), propagation.MapCarrier{trace.ParentHeader: c.Parent, trace.StateHeader: c.State})
	return oteltrace.SpanContextFromContext(ctx)
}

// Start implements [trace.Tracer].
func (t *tracer) Start(ctx context.Context, s trace.Step) (context.Context, func(trace.Outcome)) {
	ctx, links := t.place(ctx, s)
	opts := []oteltrace.SpanStartOption{
		oteltrace.WithSpanKind(kind(ctx, s.Kind)), oteltrace.WithLinks(links...), oteltrace.WithAttributes(begin(s)...),
	}
	if !s.Began.IsZero() {
		opts = append(opts, oteltrace.WithTimestamp(s.Began))
	}
	ctx, span := t.tracer.Start(ctx, name(s), opts...)
	return ctx, func(o trace.Outcome) {
		if link, ok := first(o.Origin); ok {
			span.AddLink(link)
		}
		span.SetAttributes(end(o)...)
		if o.Code != "" && !refusal[o.Code] || o.Panicked || o.Status >= 500 {
			span.SetStatus(codes.Error, o.Code) // not the error's text, which may quote a caller's data
		}
		span.End()
	}
}

// tracer.place returns a context that holds the parent of a step, and the step's links.
// One link leads to the operation's first attempt, if that attempt is known. The parent
// is either the span in ctx or the sender's span. If these spans are in different
// traces, a second link leads to the span that isn't the parent.
func (t *tracer) place(ctx context.Context, s trace.Step) (context.Context, []oteltrace.Link) {
	var links []oteltrace.Link
	if link, ok := first(s.Origin); ok {
		links = append(links, link)
	}
	own, from := oteltrace.SpanContextFromContext(ctx), spanOf(s.From)
	switch {
	case !from.IsValid(), own.TraceID() == from.TraceID():
	case s.Kind == trace.Operation && (own.IsValid() || t.untrusted):
		links = append(links, oteltrace.Link{SpanContext: from, Attributes: []attribute.KeyValue{linked.String("client")}})
	default:
		if own.IsValid() {
			links = append(links, oteltrace.Link{SpanContext: own, Attributes: []attribute.KeyValue{linked.String("invocation")}})
		}
		ctx = oteltrace.ContextWithRemoteSpanContext(ctx, from)
	}
	return ctx, links
}

// first returns the link to the first attempt at an operation.
func first(c trace.Context) (oteltrace.Link, bool) {
	sc := spanOf(c)
	return oteltrace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{linked.String("first_attempt")}}, sc.IsValid()
}

// kind returns the kind of a step's span: server for a request, unless another instrumentation
// has begun a span for the request.
func kind(ctx context.Context, k trace.Kind) oteltrace.SpanKind {
	switch k {
	case trace.Operation:
		if parent := oteltrace.SpanContextFromContext(ctx); !parent.IsValid() || parent.IsRemote() {
			return oteltrace.SpanKindServer
		}
		return oteltrace.SpanKindInternal
	case trace.Process:
		return oteltrace.SpanKindConsumer
	case trace.Deliver:
		return oteltrace.SpanKindProducer
	default:
		return oteltrace.SpanKindInternal
	}
}

// name returns the name of a step's span. The name has no route, so that a program has few
// different names.
func name(s trace.Step) string {
	if s.Name == "" {
		return "samekey " + string(s.Kind)
	}
	return "samekey " + string(s.Kind) + " " + s.Name
}

// refusal holds the codes that don't mean a failure of the program.
var refusal = map[string]bool{
	"idempotency_key_missing": true, "idempotency_key_invalid": true, "request_too_large": true, "request_invalid": true,
	"idempotency_key_mismatch": true, "idempotency_key_unknown": true,
	"idempotency_answer_not_kept": true, "idempotency_encoding": true, "idempotency_in_flight": true, "held_back": true,
}

// begin returns the attributes of a step at its start.
func begin(s trace.Step) []attribute.KeyValue {
	all := make(attributes, 0, 8)
	all.text(record, s.Record)
	all.text(operation, s.Operation)
	all.text(route, s.Route)
	switch s.Kind {
	case trace.Phase, trace.Call:
		all.text(phase, s.Name)
	case trace.Deliver:
		all = append(all, semconv.MessagingOperationTypeSend, semconv.MessagingOperationName(string(s.Kind)))
		all.text(jobKind, s.Name)
		all.text(messageID, s.Job)
		if s.Tries > 0 {
			all = append(all, tries.Int(s.Tries))
		}
	case trace.Process:
		all = append(all, semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName(string(s.Kind)))
	default:
	}
	return all
}

// end returns the attributes of a step at its end.
func end(o trace.Outcome) []attribute.KeyValue {
	all := make(attributes, 0, 8)
	all.text(operation, o.Operation)
	all.text(point, o.Point)
	all.text(claim, o.Result)
	all.text(errorType, o.Code)
	if o.Status != 0 {
		all = append(all, status.Int(o.Status))
	}
	if o.Replayed {
		all = append(all, replayed.Bool(true))
	}
	if o.Panicked {
		all = append(all, panicked.Bool(true))
	}
	return all
}

type attributes []attribute.KeyValue

// attributes.text adds an attribute unless its value is empty.
func (a *attributes) text(key attribute.Key, value string) {
	if value != "" {
		*a = append(*a, key.String(value))
	}
}
