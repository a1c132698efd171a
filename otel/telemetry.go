package otel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/samekey/samekey/idem"
)

// scope names this package as the instrumentation of spans and metrics.
const scope = "github.com/samekey/samekey/otel"

// Telemetry makes traces and metrics of engines and workers. The zero Telemetry uses the global
// providers, even if the program sets them later. A Telemetry is safe for concurrent use.
type Telemetry struct {
	// TracerProvider makes the spans. Default: the global provider.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the instruments. Default: the global provider.
	MeterProvider metric.MeterProvider
	// Untrusted begins a new trace for each request that arrives outside of any span, and links the
	// new trace to the client's trace. Default: the request continues the client's trace, so the
	// client also decides whether the trace is recorded. Untrusted has an effect on requests only,
	// not on messages.
	Untrusted bool
}

// Engine is an option of [idem.New]. It sets the tracer of the engine, and adds the hooks for
// metrics to the engine's other hooks.
func (t Telemetry) Engine(o *idem.Options) {
	o.Tracer, o.Hooks = t.Tracer(), idem.Join(o.Hooks, t.Hooks())
}

func (t Telemetry) tracerProvider() trace.TracerProvider {
	if t.TracerProvider == nil {
		return otel.GetTracerProvider()
	}
	return t.TracerProvider
}

func (t Telemetry) meterProvider() metric.MeterProvider {
	if t.MeterProvider == nil {
		return otel.GetMeterProvider()
	}
	return t.MeterProvider
}
