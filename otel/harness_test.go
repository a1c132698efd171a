package otel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/leaktest"
	"github.com/samekey/samekey/otel"
)

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientSpan   = "b7ad6b7169203331"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"

	// Planted where no span or metric may show it.
	secret = leaktest.Card
)

// recorded is a tracer provider with an exporter in memory.
type recorded struct {
	otel.Telemetry
	exporter *tracetest.InMemoryExporter
}

func record(t *testing.T) *recorded {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	t.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(t.Context())) })
	return &recorded{otel.Telemetry{TracerProvider: provider}, exporter}
}

// spans returns the spans so far, in the order of their begins, and forgets them.
func (r *recorded) spans() spans {
	all := r.exporter.GetSpans()
	r.exporter.Reset()
	slices.SortStableFunc(all, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	return spans(all)
}

type spans []tracetest.SpanStub

// tree draws the spans of a trace below a parent, with some of their attributes.
func (all spans) tree(parent string, depth int) string {
	var b strings.Builder
	for _, s := range all {
		if s.Parent.SpanID().String() != parent {
			continue
		}
		b.WriteString(strings.Repeat("  ", depth) + s.Name)
		for _, key := range []attribute.Key{"samekey.claim", "error.type", "http.response.status_code"} {
			if v, ok := value(s, key); ok {
				b.WriteString(" " + v)
			}
		}
		b.WriteString("\n" + all.tree(s.SpanContext.SpanID().String(), depth+1))
	}
	return b.String()
}

// named returns the only span of a name.
func (all spans) named(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	var found spans
	for _, s := range all {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %q", len(found), name)
	}
	return found[0]
}

func value(s tracetest.SpanStub, key attribute.Key) (string, bool) {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String(), true
		}
	}
	return "", false
}

// ofTrace fails for each span of another trace.
func (all spans) ofTrace(t *testing.T, id oteltrace.TraceID) {
	t.Helper()
	for _, s := range all {
		if s.SpanContext.TraceID() != id {
			t.Errorf("%s is in the trace %s, want %s", s.Name, s.SpanContext.TraceID(), id)
		}
	}
}

// linkedTo checks that a span has a link of a kind to another.
func linkedTo(t *testing.T, s tracetest.SpanStub, kind string, to oteltrace.SpanContext) {
	t.Helper()
	for _, l := range s.Links {
		if l.SpanContext.SpanID() == to.SpanID() && l.SpanContext.TraceID() == to.TraceID() &&
			slices.Contains(l.Attributes, attribute.String("samekey.link", kind)) {
			return
		}
	}
	t.Errorf("%s has the links %+v, want a link %s to %s", s.Name, s.Links, kind, to.SpanID())
}

// listed are the attributes of the page's table.
func listed(t *testing.T) (names []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/operate/signals.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| attribute | meaning |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		names = append(names, strings.Split(row, "`")[1])
	}
	return names
}

// known fails for a planted secret in a span, and for an attribute that
// docs/operate/signals.md doesn't list.
func (all spans) known(t *testing.T) {
	t.Helper()
	names := listed(t)
	for _, s := range all {
		if text := fmt.Sprintf("%+v", s); len(leaktest.Find([][]byte{[]byte(text)}, secret)) != 0 {
			t.Errorf("a secret is in %s: %s", s.Name, text)
		}
		attributes := slices.Clone(s.Attributes)
		for _, l := range s.Links {
			attributes = append(attributes, l.Attributes...)
		}
		for _, a := range attributes {
			if !slices.Contains(names, string(a.Key)) {
				t.Errorf("%s has the attribute %s, which docs/operate/signals.md doesn't list", s.Name, a.Key)
			}
		}
	}
}

// provider is another system: it notes the traceparents that it gets, and fails as
// often as it is told.
type provider struct {
	*httptest.Server
	mu      sync.Mutex
	fails   int
	parents []string
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.parents = append(p.parents, r.Header.Get("Traceparent"))
		if p.fails > 0 {
			p.fails--
			w.WriteHeader(http.StatusBadGateway)
		}
		_, _ = io.WriteString(w, secret)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) failOnce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = 1
}

// charge calls the provider as an instrumented client does.
func (p *provider) charge(ctx context.Context, key string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, strings.NewReader(secret))
	if err != nil {
		return "", err
	}
	req.Header.Set("Idempotency-Key", key)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	resp, err := p.Client().Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("charge: %d %s", resp.StatusCode, secret)
	}
	return "charged", nil
}

// ride is a handler with a phase, a call and a job.
func (p *provider) ride(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	var none events.APIGatewayV2HTTPResponse
	if _, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (string, error) { return ev.Body, nil }); err != nil {
		return none, err
	}
	if _, err := idem.Foreign(ctx, "charge_created", func(ctx context.Context, tx *idem.Tx) (string, error) {
		return p.charge(ctx, tx.Key("stripe"))
	}); err != nil {
		return none, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (events.APIGatewayV2HTTPResponse, error) {
		tx.Stage(idem.NewJob("receipt", secret))
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: secret}, nil
	})
}

// post is the event of a client's request. The client's key and body are secrets.
func post(t *testing.T, traceparent, body string) []byte {
	t.Helper()
	ev := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /rides", RawPath: "/rides", Body: body + secret,
		Headers: map[string]string{
			"idempotency-key": "key-" + secret, "traceparent": traceparent, "authorization": secret, "content-type": "text/plain", "host": "api.example",
		},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: "POST /rides", Stage: "$default",
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: http.MethodPost, Path: "/rides"},
		},
	}
	return encode(t, ev)
}

func attributeOf(t *testing.T, s tracetest.SpanStub, key attribute.Key) string {
	t.Helper()
	v, ok := value(s, key)
	if !ok {
		t.Errorf("%s has no %s", s.Name, key)
	}
	return v
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	payload, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return payload
}

// mail is the consumer of a job.
func mail(context.Context, events.SQSMessage) error { return nil }
