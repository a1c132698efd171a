package otel_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/samekey/samekey/idem"
	samekeyotel "github.com/samekey/samekey/otel"
)

// A handler whose requests are traced. The program's provider would have an exporter
// that sends the spans; this one keeps them.
func ExampleTelemetry_Engine() {
	exporter := tracetest.NewInMemoryExporter()
	telemetry := samekeyotel.Telemetry{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))}
	engine := idem.New(&idem.MemoryStore{}, telemetry.Engine, func(o *idem.Options) {
		o.Scope = func(context.Context, *idem.Request) (string, error) { return "acct_7", nil } // as a middleware before has found out
	})
	pay := engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := idem.Atomic(r.Context(), "paid", func(context.Context, *idem.Tx) (string, error) { return "receipt-1", nil })
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))

	for range 2 { // the second request is a retry
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(`{"amount":2000}`))
		r.Header.Set("Idempotency-Key", "8e03978e-40d5")
		pay.ServeHTTP(httptest.NewRecorder(), r)
		for _, span := range exporter.GetSpans() { // in the order of their ends
			fmt.Println(span.Name, len(span.Links), "links")
		}
		fmt.Println()
		exporter.Reset()
	}
	// Output:
	// samekey claim 0 links
	// samekey commit 0 links
	// samekey phase paid 0 links
	// samekey finish 0 links
	// samekey operation 0 links
	//
	// samekey claim 1 links
	// samekey operation 1 links
}
