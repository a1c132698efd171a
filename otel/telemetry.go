package otel

import (
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
)

// scope names this package as the instrumentation of spans and metrics.
const scope = "github.com/samekey/samekey/otel"

// Telemetry traces what engines and drains do. The zero Telemetry uses the
// global providers, also if they are set later. A Telemetry is safe for concurrent use
// and must not be changed once it is used.
type Telemetry struct {
	// TracerProvider makes the spans. Default: the global provider.
	TracerProvider trace.TracerProvider
	// Untrusted begins a new trace for each request that is in no span, and links it to
	// the client's. Otherwise such a request continues the client's trace, so a client
	// also decides whether the trace is recorded. It concerns requests only, not messages.
	Untrusted bool
}

// Engine sets the tracer of an engine: it is an option of [idem.New].
func (t Telemetry) Engine(o *idem.Options) {
	o.Tracer = t.Tracer()
}

// Drain is Engine for [stream.NewDrain].
func (t Telemetry) Drain(o *stream.DrainOptions) {
	o.Tracer = t.Tracer()
}

func (t Telemetry) tracerProvider() trace.TracerProvider {
	if t.TracerProvider == nil {
		return otel.GetTracerProvider()
	}
	return t.TracerProvider
}
