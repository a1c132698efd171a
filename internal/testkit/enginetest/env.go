package enginetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// env is the environment of a scenario: a counter of calls in front of the store under
// test, a clock, a log, and a unique namespace.
type env struct {
	inner     store.Store
	store     *idemtest.FaultyStore
	clock     *idemtest.Clock
	namespace string
	log       log
}

func newEnv(t testing.TB, s store.Store) *env {
	t.Helper()
	if s == nil {
		t.Fatal("open returned no store")
	}
	return &env{inner: s, store: idemtest.Faulty(s, nil), clock: idemtest.NewClock(), namespace: rand.Text()}
}

// env.engine returns an engine on e.store. Each engine simulates a process.
func (e *env) engine(optFns ...func(*idem.Options)) *idem.Engine {
	return e.engineOn(e.store, optFns...)
}

// engineOn returns an engine on the store s.
func (e *env) engineOn(s store.Store, optFns ...func(*idem.Options)) *idem.Engine {
	return idem.New(s, append([]func(*idem.Options){func(o *idem.Options) {
		o.Namespace, o.Now, o.Logger = e.namespace, e.clock.Now, slog.New(slog.NewTextHandler(&e.log, nil))
	}}, optFns...)...)
}

// env.record returns the record that an engine with these options would use for a
// request.
func (e *env) record(t testing.TB, r idem.Request, optFns ...func(*idem.Options)) *store.Record {
	t.Helper()
	var pk string
	spy := idemtest.Faulty(e.inner, func(_ context.Context, c idemtest.Call) idemtest.Fault {
		pk = c.PK
		return idemtest.Fault{Err: errors.New("only asked for the name")}
	})
	_, _ = e.engineOn(spy, optFns...).Do(storetest.Limited(t), r, new(app).run)
	if pk == "" {
		t.Fatalf("request %+v never reached the store", r)
	}
	return storetest.Load(t, e.inner, pk)
}

// env.costs runs f, and fails t unless f makes n calls to the store.
func (e *env) costs(t testing.TB, n int, f func()) {
	t.Helper()
	before := e.store.Calls()
	f()
	if got := e.store.Calls() - before; got != n {
		t.Errorf("%d calls to the store, want %d", got, n)
	}
}

// theCaller is the caller of a request if the test sets no other caller.
const theCaller = "the caller"

// The function order returns a request of theCaller, with this key and body.
func order(key, body string) idem.Request {
	return idem.Request{
		Key: key, Method: http.MethodPost, Path: "/rides", Route: "/rides", Body: []byte(body),
		Identity: idem.Identity{Kind: "jwt", Subject: theCaller},
	}
}

// keyed returns the same request as the function order, but the key is in the header
// Idempotency-Key.
func keyed(header, body string) idem.Request {
	r := order("", body)
	r.Header = http.Header{idem.KeyHeader: {header}}
	return r
}

type handler = func(context.Context) (idem.Response, error)

// app is a handler that counts its runs. Each run answers differently, so that a
// replay can't be mistaken for another run.
type app struct {
	status int // 0: 201
	runs   atomic.Int64
}

func (a *app) run(context.Context) (idem.Response, error) {
	n := a.runs.Add(1)
	status := a.status
	if status == 0 {
		status = http.StatusCreated
	}
	return idem.Response{
		Status: status,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   fmt.Appendf(nil, `{"run":%d,"ride":%q}`, n, rand.Text()),
	}, nil
}

// app.fail returns a handler that counts its runs and returns err.
func (a *app) fail(err error) handler {
	return func(context.Context) (idem.Response, error) {
		a.runs.Add(1)
		return idem.Response{}, err
	}
}

// app.calls is a handler. It makes a call in a phase, and then runs a.run.
func (a *app) calls(ctx context.Context) (idem.Response, error) {
	if _, err := idem.Foreign(ctx, "call", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
		return idem.Response{}, err
	}
	return a.run(ctx)
}

// app.held returns a handler that waits at the gate g and then calls a.run.
func (a *app) held(g *storetest.Gate) handler {
	return func(ctx context.Context) (idem.Response, error) {
		g.Pass(ctx)
		return a.run(ctx)
	}
}

// app.ran fails t unless the handler has run n times.
func (a *app) ran(t testing.TB, n int) {
	t.Helper()
	if got := a.runs.Load(); got != int64(n) {
		t.Errorf("handler ran %d times, want %d", got, n)
	}
}

// result is the result of a request.
type result struct {
	idem.Result
	err error
}

// do sends a request.
func do(t testing.TB, e *idem.Engine, r idem.Request, fn handler) result {
	t.Helper()
	res, err := e.Do(storetest.Limited(t), r, fn)
	return result{res, err}
}

// serve sends an HTTP request.
func serve(t testing.TB, e *idem.Engine, r idem.Request, fn handler) result {
	t.Helper()
	res, err := e.Serve(storetest.Limited(t), r, fn)
	return result{res, err}
}

// begin sends a request in another goroutine, and returns a channel for the result.
func begin(t testing.TB, e *idem.Engine, r idem.Request, fn handler) <-chan result {
	t.Helper()
	return beginIn(storetest.Limited(t), e, r, fn)
}

func beginIn(ctx context.Context, e *idem.Engine, r idem.Request, fn handler) <-chan result {
	ch := make(chan result, 1)
	go func() {
		res, err := e.Do(ctx, r, fn)
		ch <- result{res, err}
	}()
	return ch
}

// result.first fails t unless r is the handler's answer and not a replay.
func (r result) first(t testing.TB) result {
	t.Helper()
	if r.err != nil || r.Replayed || r.Passed {
		t.Fatalf("got %v, want an answer of the handler's own", r)
	}
	return r
}

// result.replays fails t unless r is a replay of was, an earlier result.
func (r result) replays(t testing.TB, was result) result {
	t.Helper()
	if r.err != nil || !r.Replayed || r.Passed {
		t.Fatalf("got %v, want a replay", r)
	}
	if r.Status != was.Status || !bytes.Equal(r.Body, was.Body) {
		t.Fatalf("replay is %v, the first answer was %v", r, was)
	}
	return r
}

// result.refused fails t unless r is an error that matches each error in want.
func (r result) refused(t testing.TB, want ...error) result {
	t.Helper()
	for _, w := range want {
		if !errors.Is(r.err, w) {
			t.Fatalf("got %v, want error %q", r, w)
		}
	}
	return r
}

// result.status fails t unless r is an HTTP answer with this status.
func (r result) status(t testing.TB, want int) result {
	t.Helper()
	if r.err != nil || r.Status != want {
		t.Fatalf("got %v, want status %d", r, want)
	}
	return r
}

func (r result) String() string {
	if r.err != nil {
		return fmt.Sprintf("error %q", r.err)
	}
	body := r.Body
	if len(body) > 200 {
		body = body[:200]
	}
	return fmt.Sprintf("{status %d replayed %t passed %t body %d bytes %q}", r.Status, r.Replayed, r.Passed, len(r.Body), body)
}

// result.header fails t unless the answer has this header.
func (r result) header(t testing.TB, name, want string) result {
	t.Helper()
	if got := r.Header.Get(name); got != want {
		t.Errorf("header %s is %q, want %q", name, got, want)
	}
	return r
}

// log is the output of a logger, safe for concurrent use.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// log.count returns how often the log contains s.
func (l *log) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.buf.Bytes(), []byte(s))
}
