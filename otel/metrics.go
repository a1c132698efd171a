package otel

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"unicode"

	"go.opentelemetry.io/otel/metric"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/metrictable"
	"github.com/samekey/samekey/lambda/metrics"
)

// Hooks returns an engine's hooks, which record the metrics of docs/operate/signals.md#metrics.
// Metrics have names in OpenTelemetry's style: for example, PhaseDuration becomes
// samekey.phase_duration. Times are in seconds.
func (t Telemetry) Hooks() idem.Hooks { return t.lines().Hooks() }

// StreamHooks returns the hooks of drain, completer and sweep, for metrics. Don't call
// StreamHooks if you set Options.Telemetry of package lambda/worker, because the worker
// then calls StreamHooks.
func (t Telemetry) StreamHooks() stream.Hooks { return t.lines().StreamHooks() }

// StoreHooks returns the hooks of a store ([dynamo.Options]), for metrics of the calls that
// drain, completer and sweep make.
func (t Telemetry) StoreHooks() dynamo.Hooks { return t.lines().StoreHooks() }

// metricName returns the OpenTelemetry name of a metric.
func metricName(name string) string {
	var b strings.Builder
	b.WriteString("samekey.")
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// Telemetry.lines returns the metrics that package metrics makes for CloudWatch, with a
// writer that records the values of each line in OpenTelemetry. So both systems get the
// same metrics.
func (t Telemetry) lines() *metrics.Metrics {
	return metrics.New(&instruments{meter: t.meterProvider().Meter(scope), record: make(map[string]func(float64))}, "otel")
}

// The map listed has the metrics of the table, by name.
var listed = func() map[string]metrictable.Metric {
	m := make(map[string]metrictable.Metric)
	for _, one := range metrictable.All() {
		m[one.Name] = one
	}
	return m
}()

// seconds are the bounds of a histogram of times.
var seconds = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 30, 60, 300, 900}

// instruments reads lines in the embedded metric format, and records their values.
type instruments struct {
	meter metric.Meter

	mu     sync.Mutex
	record map[string]func(float64)
}

// Write takes one line.
func (w *instruments) Write(p []byte) (int, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(p, &values); err != nil {
		return 0, err
	}
	var about struct {
		CloudWatchMetrics []struct{ Metrics []struct{ Name, Unit string } }
	}
	if err := json.Unmarshal(values["_aws"], &about); err != nil {
		return 0, err
	}
	for _, directive := range about.CloudWatchMetrics {
		for _, m := range directive.Metrics {
			var all []float64
			if raw := values[m.Name]; json.Unmarshal(raw, &all) != nil {
				all = make([]float64, 1)
				if err := json.Unmarshal(raw, &all[0]); err != nil {
					return 0, err
				}
			}
			record := w.of(m.Name, m.Unit)
			for _, v := range all {
				record(v)
			}
		}
	}
	return len(p), nil
}

// instruments.of returns the function that records the values of a metric.
func (w *instruments) of(name, unit string) func(float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.record[name] == nil {
		w.record[name] = w.instrument(name, unit)
	}
	return w.record[name]
}

// instruments.instrument makes the instrument of a metric, and returns the function
// that records a value. instrument ignores the SDK's error, because the SDK reports the
// error to its error handler, and returns a usable instrument.
func (w *instruments) instrument(name, unit string) func(float64) {
	ctx, called, meaning := context.Background(), metricName(name), metric.WithDescription(listed[name].Meaning)
	factor := 1.0
	switch unit {
	case "Milliseconds":
		unit, factor = "s", 1e-3
	case "Seconds":
		unit = "s"
	case "Percent":
		unit = "%"
	default:
		unit = "1"
	}
	switch {
	case listed[name].Gauge:
		g, _ := w.meter.Float64Gauge(called, meaning, metric.WithUnit(unit))
		return func(v float64) { g.Record(ctx, v*factor) }
	case unit == "s":
		h, _ := w.meter.Float64Histogram(called, meaning, metric.WithUnit(unit), metric.WithExplicitBucketBoundaries(seconds...))
		return func(v float64) { h.Record(ctx, v*factor) }
	default:
		c, _ := w.meter.Float64Counter(called, meaning, metric.WithUnit(unit))
		return func(v float64) { c.Add(ctx, v) }
	}
}
