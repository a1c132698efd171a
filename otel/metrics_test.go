package otel_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/metrictable"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/leaktest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/otel"
)

// measured returns the metrics that a reader gets, by their names.
func measured(t *testing.T, r *metric.ManualReader) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if len(leaktest.Find([][]byte{fmt.Appendf(nil, "%+v", all)}, secret)) != 0 {
		t.Errorf("a secret is in %+v", all)
	}
	got := make(map[string]metricdata.Metrics)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			got[m.Name] = m
		}
	}
	return got
}

func sum(t *testing.T, all map[string]metricdata.Metrics, name string) float64 {
	t.Helper()
	data, ok := all[name].Data.(metricdata.Sum[float64])
	if !ok || len(data.DataPoints) != 1 {
		t.Errorf("%s is %+v", name, all[name])
		return 0
	}
	return data.DataPoints[0].Value
}

func TestMetricsOfRequests(t *testing.T) {
	t.Parallel()
	reader, hooked := metric.NewManualReader(), 0
	telemetry := otel.Telemetry{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}
	own := func(o *idem.Options) { o.Hooks.Claimed = func(context.Context, idem.Event) { hooked++ } }
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, own, telemetry.Engine), lambda.HTTPAPI, newProvider(t).ride)
	for _, body := range []string{"", "", "", "other"} {
		send(t, h, post(t, clientParent, body))
	}
	send(t, lambda.Wrap(idem.New(nil, telemetry.Engine, func(o *idem.Options) { o.Mode = idem.ModeOff }), lambda.HTTPAPI, newProvider(t).ride), post(t, clientParent, ""))
	got := measured(t, reader)
	for name, want := range map[string]float64{"samekey.claimed": 1, "samekey.replayed": 2, "samekey.mismatch": 1, "samekey.unprotected": 1} {
		if n := sum(t, got, name); n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
	if hooked != 1 {
		t.Errorf("the application's own hook was called %d times", hooked)
	}
	listed := make(map[string]string)
	for _, m := range metrictable.All() {
		listed[otel.MetricName(m.Name)] = m.Meaning
	}
	for name, m := range got {
		if listed[name] == "" || m.Description != listed[name] {
			t.Errorf("%s means %q, in the list %q", name, m.Description, listed[name])
		}
	}
}

// Each run of the sweep states its findings anew, and each count: they are gauges.
func TestMetricsOfASweep(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	telemetry := otel.Telemetry{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}
	hooks := telemetry.StreamHooks()
	for _, n := range []int{5, 3} {
		hooks.Swept(t.Context(), &stream.Report{ByReason: map[state.Reason]stream.Tally{state.ReasonOpen: {Count: n}}}, nil)
		hooks.Counted(t.Context(), &stream.Counted{Count: n, ByReason: map[state.Reason]stream.Tally{state.ReasonStuck: {Count: n}}})
	}
	got := measured(t, reader)
	for _, name := range []string{"samekey.abandoned", "samekey.waiting", "samekey.waiting_stuck"} {
		data, ok := got[name].Data.(metricdata.Gauge[float64])
		if !ok || len(data.DataPoints) != 1 || data.DataPoints[0].Value != 3 {
			t.Errorf("%s is %+v", name, got[name])
		}
	}
}

// Every hook of a worker can be called, and makes metrics of the list only.
func TestMetricsOfAWorker(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	telemetry := otel.Telemetry{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}
	called := 0
	for _, hook := range reflect.ValueOf(telemetry.StreamHooks()).Fields() {
		if hook.IsNil() {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for n := 1; n < hook.Type().NumIn(); n++ {
			arg := reflect.Zero(hook.Type().In(n))
			if arg.Kind() == reflect.Pointer {
				arg = reflect.New(arg.Type().Elem())
			}
			args = append(args, arg)
		}
		hook.Call(args)
		called++
	}
	if called < 5 {
		t.Fatalf("%d hooks", called)
	}
	got := measured(t, reader)
	for _, name := range []string{"Delivered", "Parked", "Delayed", "Waiting", "Unreadable"} {
		if _, ok := got[otel.MetricName(name)]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	listed := make(map[string]bool)
	for _, m := range metrictable.All() {
		listed[otel.MetricName(m.Name)] = true
	}
	for name := range got {
		if !listed[name] {
			t.Errorf("%s is no metric of the list", name)
		}
	}
}
