package metrics

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/samekey/samekey/internal/metrictable"
)

// Metrics writes metrics as log lines. It is safe for concurrent use.
type Metrics struct {
	app string
	opt Options

	mu     sync.Mutex // guards out and routes
	out    io.Writer
	routes map[string]bool
}

// Options are settings of [New]; the zero value is the default.
type Options struct {
	// Routes is the number of routes that also have metrics of their own, under the
	// dimensions App and Route. Each of these routes adds the metrics of requests and of
	// the store to the bill (docs/operate/signals.md). All further routes share the Route
	// "other". If Routes is 0, no metric has the dimension Route. Default: 0.
	Routes int
}

// New returns a Metrics that writes lines to w; each Write has whole lines. In Lambda,
// pass os.Stdout. The parameter app is the application's name, which becomes the value
// of the dimension App. A line that can't be written is dropped. New panics if w is
// nil, app is empty or Options.Routes is negative.
func New(w io.Writer, app string, optFns ...func(*Options)) *Metrics {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	if w == nil || app == "" || opt.Routes < 0 {
		panic("metrics: New: w is nil, app is empty or Options.Routes is negative") //nolint:forbidigo // a mistake in the program
	}
	return &Metrics{app: dimension(app), opt: opt, out: w, routes: make(map[string]bool)}
}

// Count writes n as a metric of the application, in a separate line. The properties
// aren't metrics: use them to search the logs. Count drops a property that has no JSON
// form. Count also drops a property with the metric's name, or with the name "_aws",
// "App", "Route", "level" or "timestamp".
func (m *Metrics) Count(name string, n int, properties map[string]any) {
	l := &line{extra: properties}
	l.count(name, float64(n))
	m.write(l)
}

func (m *Metrics) write(l *line) {
	b := l.encode(metrictable.Namespace, m.app, time.Now())
	if len(b) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.out.Write(b) // a metric that can't be written doesn't make its request fail
}

// Metrics.route returns the value of the dimension Route for a request, or "" if no line has this
// dimension.
func (m *Metrics) route(route string) string {
	if m.opt.Routes == 0 {
		return ""
	}
	route = dimension(route)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.routes[route] {
		if len(m.routes) >= m.opt.Routes {
			return "other"
		}
		m.routes[route] = true
	}
	return route
}

// Handler is a handler of aws-lambda-go.
type Handler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Wrap returns a handler that runs h. For each invocation, the handler writes one line,
// which sums up what [Metrics.StreamHooks] and [Metrics.StoreHooks] report during the
// invocation. If they report nothing, there is no such line. Each request still has a
// separate line. The invocation's line is written before the result is returned, or, if
// h panics, before the panic continues. The line is lost if a handler of
// lambda.WrapEach has not returned in its time and the program restarts.
func (m *Metrics) Wrap(h Handler) Handler { return &wrapped{m, h} }

type wrapped struct {
	m *Metrics
	h Handler
}

// Invoke implements Handler.
func (w *wrapped) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	inv := &invocation{of: w.m}
	defer inv.flush()
	return w.h.Invoke(context.WithValue(ctx, invocationKey{}, inv), payload)
}

type invocationKey struct{}

// invocation collects the metrics of one invocation in a line.
type invocation struct {
	of *Metrics

	mu      sync.Mutex
	line    line
	records []string
	flushed bool
}

// maxRecords limits the number of records that the line of an invocation names.
const maxRecords = 50

// Metrics.add calls the function fill with the line of the context's invocation. If the
// context has no invocation, or the invocation's line is already written, add writes a
// separate line, with the properties. record is the short name of the record that the
// line should name, or "".
func (m *Metrics) add(ctx context.Context, record string, fill func(*line), properties ...any) {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	if inv == nil || inv.of != m || !inv.take(record, fill) {
		l := new(line)
		fill(l)
		l.property("record", record)
		for i := 0; i+1 < len(properties); i += 2 {
			l.property(properties[i].(string), properties[i+1])
		}
		m.write(l)
	}
}

// invocation.take calls the function fill with the line, and adds record to the list of
// records. take returns false if the line is already written, because the caller is a
// goroutine that has outlived the invocation.
func (i *invocation) take(record string, fill func(*line)) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.flushed {
		return false
	}
	fill(&i.line)
	if record != "" && len(i.records) < maxRecords && !slices.Contains(i.records, record) {
		i.records = append(i.records, record)
	}
	return true
}

func (i *invocation) flush() {
	i.mu.Lock()
	i.flushed = true
	if len(i.records) > 0 {
		i.line.property("records", i.records)
	}
	i.mu.Unlock()
	i.of.write(&i.line)
}
