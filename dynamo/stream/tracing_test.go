package stream_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tracetest"
)

// A job goes to its sink with the context of its phase, from the stream and from its
// record alike. Each delivery is a step of that trace.
func TestDeliveriesContinueTheTrace(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed := tab.tail(t)
	var engine, worker tracetest.Recorder
	run(t, idem.New(tab.Store, callertest.Anybody, func(o *idem.Options) { o.Tracer = &engine }), staging)
	ev := feed.event(t)
	phases := make(map[string]trace.Context)
	for _, s := range engine.Spans() {
		if s.Kind == trace.Phase {
			phases[s.Name] = s.Identity()
		}
	}

	got := make(map[string]trace.Context)
	sink := jobs.SinkFunc(func(_ context.Context, d jobs.Delivery) error {
		got[d.Kind] = d.Trace
		if d.Kind == "charged" {
			return errors.New("the data of a customer")
		}
		return nil
	})
	drain := stream.NewDrain(tab.Store, sink, func(o *stream.DrainOptions) { o.Tracer = &worker })
	if handle(t, drain, ev) == "" {
		t.Error("no failure is reported")
	}
	spans := worker.Spans()
	const want = "deliver reserved\ndeliver charged delivery_failed\ndeliver receipt held_back\ndeliver audit held_back\n"
	if diff := cmp.Diff(want, tracetest.Tree(spans)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	pk := pkOf(ev.Records[0])
	rec, err := tab.Store.Load(t.Context(), pk)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range spans[:2] {
		if s.From != phases[s.Name] || s.From == (trace.Context{}) || got[s.Name] != s.From {
			t.Errorf("%s is delivered with %+v in the trace %+v, want that of its phase %+v", s.Name, got[s.Name], s.From, phases[s.Name])
		}
		if s.Step.Operation != rec.ID || s.Job == "" || s.Record == "" || s.Route == "" {
			t.Errorf("the step is %+v", s.Step)
		}
	}

	sink = func(_ context.Context, d jobs.Delivery) error { got[d.Kind] = d.Trace; return nil }
	again := stream.NewDrain(tab.Store, sink, func(o *stream.DrainOptions) { o.Tracer = &worker })
	if err := again.Retry(t.Context(), jobs.Ticket{PK: pk, Operation: rec.ID, Jobs: true}); err != nil {
		t.Fatal(err)
	}
	if spans := worker.Spans(); len(spans) != 3 || spans[0].Tries != 1 || got["charged"] != phases["charged"] {
		t.Errorf("from its record: %+v, %s", got["charged"], tracetest.Tree(spans))
	}
}
