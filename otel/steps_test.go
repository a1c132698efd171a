package otel_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/samekey/samekey/internal/trace"
)

// seen is what a span shows of its step.
type seen struct {
	Name   string
	Kind   oteltrace.SpanKind
	Status codes.Code
	Parent string // the span
	Links  []string
	Has    map[string]string
}

// Each step is a span with all that is known of it, and nothing else.
func TestSpanOfEachStep(t *testing.T) {
	t.Parallel()
	const other = "00-11111111111111111111111111111111-2222222222222222-01"
	client := trace.Context{Parent: clientParent}
	for name, tc := range map[string]struct {
		step trace.Step
		end  trace.Outcome
		in   bool // another span, of the trace other
		want seen
	}{
		"a request": {
			trace.Step{Kind: trace.Operation, Record: "r", Route: "POST /rides", From: client},
			trace.Outcome{Operation: "op", Point: "charged", Status: 201, Replayed: true, Origin: trace.Context{Parent: other}},
			false,
			seen{Name: "samekey operation", Kind: oteltrace.SpanKindServer, Parent: clientSpan, Links: []string{"first_attempt 2222222222222222"}, Has: map[string]string{
				"samekey.record": "r", "samekey.operation": "op", "samekey.route": "POST /rides", "samekey.recovery_point": "charged",
				"http.response.status_code": "201", "samekey.replayed": "true",
			}},
		},
		"a resumed operation": {
			trace.Step{Kind: trace.Operation, Origin: trace.Context{Parent: other}, Operation: "op"},
			trace.Outcome{},
			false,
			seen{Name: "samekey operation", Kind: oteltrace.SpanKindServer, Links: []string{"first_attempt 2222222222222222"}, Has: map[string]string{"samekey.operation": "op"}},
		},
		"a server error": {
			trace.Step{Kind: trace.Operation},
			trace.Outcome{Status: 500},
			false,
			seen{Name: "samekey operation", Kind: oteltrace.SpanKindServer, Status: codes.Error, Has: map[string]string{"http.response.status_code": "500"}},
		},
		"a panic": {
			trace.Step{Kind: trace.Phase, Name: "charge"},
			trace.Outcome{Panicked: true},
			false,
			seen{Name: "samekey phase charge", Kind: oteltrace.SpanKindInternal, Status: codes.Error, Has: map[string]string{"samekey.phase": "charge", "samekey.panicked": "true"}},
		},
		"a call that failed": {
			trace.Step{Kind: trace.Call, Name: "charge"},
			trace.Outcome{Code: "internal_error"},
			false,
			seen{Name: "samekey call charge", Kind: oteltrace.SpanKindInternal, Status: codes.Error, Has: map[string]string{"samekey.phase": "charge", "error.type": "internal_error"}},
		},
		"a message of a batch": {
			trace.Step{Kind: trace.Process, From: client},
			trace.Outcome{},
			true,
			seen{Name: "samekey process", Kind: oteltrace.SpanKindConsumer, Parent: clientSpan, Links: []string{"invocation outer"}, Has: map[string]string{
				"messaging.operation.type": "process", "messaging.operation.name": "process",
			}},
		},
		"a delivery": {
			trace.Step{Kind: trace.Deliver, Name: "receipt", Job: "j", Tries: 1},
			trace.Outcome{Code: "held_back"},
			true,
			seen{Name: "samekey deliver receipt", Kind: oteltrace.SpanKindProducer, Parent: "outer", Has: map[string]string{
				"messaging.operation.type": "send", "messaging.operation.name": "deliver", "samekey.job.kind": "receipt", "messaging.message.id": "j",
				"samekey.job.tries": "1", "error.type": "held_back",
			}},
		},
		"a request in a span of its client's trace": {
			trace.Step{Kind: trace.Operation, From: trace.Context{Parent: other}},
			trace.Outcome{},
			true,
			seen{Name: "samekey operation", Kind: oteltrace.SpanKindInternal, Parent: "outer"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(t)
			ctx, outer := t.Context(), oteltrace.SpanFromContext(context.Background())
			if tc.in {
				ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": other})
				ctx, outer = r.TracerProvider.Tracer("test").Start(ctx, "outer")
			}
			_, end := r.Tracer().Start(ctx, tc.step)
			end(tc.end)
			s := r.spans()[0]
			if s.DroppedAttributes != 0 {
				t.Errorf("%d attributes are none", s.DroppedAttributes)
			}
			span := func(of oteltrace.SpanContext) string {
				switch {
				case !of.IsValid():
					return ""
				case of.SpanID() == outer.SpanContext().SpanID():
					return "outer"
				}
				return of.SpanID().String()
			}
			got := seen{Name: s.Name, Kind: s.SpanKind, Status: s.Status.Code, Parent: span(s.Parent), Has: make(map[string]string)}
			for _, l := range s.Links {
				got.Links = append(got.Links, l.Attributes[0].Value.AsString()+" "+span(l.SpanContext))
			}
			for _, a := range s.Attributes {
				got.Has[string(a.Key)] = a.Value.String()
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A span begins with its step, and the codes that are no failure are those of refusals.
func TestBeginAndEndOfASpan(t *testing.T) {
	t.Parallel()
	r := record(t)
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	_, end := r.Tracer().Start(t.Context(), trace.Step{Kind: trace.Claim, Began: began})
	end(trace.Outcome{})
	_, end = r.Tracer().Start(t.Context(), trace.Step{Kind: trace.Commit})
	end(trace.Outcome{})
	if all := r.spans(); !all[0].StartTime.Equal(began) || time.Since(all[1].StartTime) > time.Hour {
		t.Errorf("the spans begin at %v and %v", all[0].StartTime, all[1].StartTime)
	}
	for _, code := range []string{"idempotency_key_missing", "idempotency_key_mismatch", "idempotency_encoding", "idempotency_in_flight", "held_back"} {
		_, end := r.Tracer().Start(t.Context(), trace.Step{Kind: trace.Claim})
		end(trace.Outcome{Code: code})
		if s := r.spans()[0]; s.Status.Code != codes.Unset || len(s.Attributes) != 1 || s.Attributes[0] != attribute.String("error.type", code) {
			t.Errorf("%s: %+v, %+v", code, s.Status, s.Attributes)
		}
	}
}
