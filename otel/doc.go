// Package otel makes traces and metrics with OpenTelemetry. Package otel is in a
// separate module, so that other programs don't depend on OpenTelemetry.
//
//	import samekeyotel "github.com/samekey/samekey/otel"
//
//	engine := idem.New(store, samekeyotel.Telemetry{}.Engine)
//	w, err := worker.New(func(o *worker.Options) { o.Telemetry = samekeyotel.Telemetry{} })
//
// A trace begins with the client's traceparent. It includes the claim, the phases with their
// calls and commits, and the deliveries and consumers of the jobs. A completer's attempt is a
// separate trace. A replay is in its client's trace. Both have a link to the first attempt.
//
// The zero [Telemetry] uses the global providers of go.opentelemetry.io/otel. Package
// otel has no exporter, so your program has to set up an exporter.
//
// # Attributes
//
// No attribute holds a key, a body, an answer, or the text of an error. docs/operate/signals.md
// lists the attributes and has a picture of a trace.
package otel
