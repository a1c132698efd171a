package lambda_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda"
)

// ample is the time of a request that must not run out of it on a slow machine.
const ample = 2 * time.Minute

// call is a request as a client makes it.
type call struct {
	method string // POST
	path   string // as written in the URL; /rides
	query  string
	header http.Header
	body   []byte
	base64 bool // the source sends the body in base64, though it is text
	user   string
}

// newCall is a request with a key, as net/http would send it.
func newCall(key string) call {
	return call{
		method: "POST", path: "/rides", body: []byte(goldenBody),
		header: http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {key}},
	}
}

// answer is what the client gets.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// handler is what tests wrap: the same one for each source.
type handler func(ctx context.Context, body []byte) (idem.Response, error)

// source plays what stands between a client and a function. It is written
// from the sources' documentation and shares no code with the adapters.
type source struct {
	name   string
	wrap   func(*idem.Engine, handler) awslambda.Handler
	event  func(call) map[string]any
	result func(t testing.TB, payload []byte) answer
}

var (
	httpAPI     = source{"HTTPAPI", wrapped(lambda.HTTPAPI), httpAPIEvent, v2Answer}
	rest        = source{"REST", wrapped(lambda.REST), restEvent, restAnswer}
	functionURL = source{"FunctionURL", wrapped(lambda.FunctionURL), functionURLEvent, v2Answer}
	albSingle   = source{"ALB", wrapped(lambda.ALB), albSingleEvent, albSingleAnswer}
	albMulti    = source{"ALB multi-value", wrapped(lambda.ALB), albMultiEvent, albMultiAnswer}

	sources = []source{httpAPI, rest, functionURL, albSingle, albMulti}
)

// wrapped lets a handler answer in a's form.
func wrapped[Ev, Re any](a lambda.Adapter[Ev, Re]) func(*idem.Engine, handler) awslambda.Handler {
	return func(e *idem.Engine, h handler) awslambda.Handler {
		return lambda.Wrap(e, a, func(ctx context.Context, ev Ev) (re Re, err error) {
			req, _ := a.Request(ctx, ev) // handlers of tests that pass bad events don't read them
			resp, err := h(ctx, req.Body)
			if err != nil {
				return re, err
			}
			return a.Reply(resp), nil
		}, named(sourceName))
	}
}

// sourceName is the name of the handlers of sources: a Resumable engine wants one.
const sourceName = "source"

// send makes c through s, with time left as Lambda would have it.
func (s source) send(t testing.TB, h awslambda.Handler, c call) answer {
	t.Helper()
	return s.invoke(t, h, s.payload(t, c))
}

func (s source) payload(t testing.TB, c call) []byte {
	t.Helper()
	payload, err := json.Marshal(s.event(c))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

func (s source) invoke(t testing.TB, h awslambda.Handler, payload []byte) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	out, err := h.Invoke(ctx, payload)
	if err != nil {
		t.Fatalf("%s: Invoke: %v", s.name, err)
	}
	return s.result(t, out)
}

// The events.

func httpAPIEvent(c call) map[string]any {
	ev := v2Event(c, "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com")
	path, _ := url.PathUnescape(c.path)
	ev["rawPath"] = "/prod" + path // HTTP APIs decode, and name the stage
	ev["routeKey"] = c.method + " /rides"
	ev["requestContext"].(map[string]any)["stage"] = "prod"
	if c.user != "" {
		ev["requestContext"].(map[string]any)["authorizer"] = map[string]any{
			"jwt": map[string]any{"claims": map[string]any{"iss": "https://issuer.example", "sub": c.user}},
		}
	}
	return ev
}

func functionURLEvent(c call) map[string]any {
	ev := v2Event(c, "t7bmxtdc6ojbkd3zgknxe32xdm0oqxkw.lambda-url.eu-central-1.on.aws")
	if c.user != "" {
		ev["requestContext"].(map[string]any)["authorizer"] = map[string]any{"iam": map[string]any{"userArn": "arn:aws:iam::123456789012:user/" + c.user}}
	}
	return ev
}

func v2Event(c call, domain string) map[string]any {
	headers := map[string]string{"host": domain}
	var cookies []string
	for name, values := range c.header {
		if strings.EqualFold(name, "Cookie") {
			for _, v := range values {
				cookies = append(cookies, strings.Split(v, "; ")...)
			}
			continue
		}
		name = strings.ToLower(name)
		if before, ok := headers[name]; ok {
			values = append([]string{before}, values...)
		}
		headers[name] = strings.Join(values, ",")
	}
	ev := map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": c.path, "rawQueryString": c.query,
		"headers": headers, "cookies": cookies,
		"requestContext": map[string]any{
			"domainName": domain, "routeKey": "$default", "stage": "$default",
			"http": map[string]any{"method": c.method, "path": c.path, "protocol": "HTTP/1.1"},
		},
	}
	setBody(ev, c)
	return ev
}

func restEvent(c call) map[string]any {
	query, _ := url.ParseQuery(c.query)
	ev := map[string]any{
		"resource": "/rides", "path": c.path, "httpMethod": c.method,
		"headers": last(c.header), "multiValueHeaders": c.header,
		"queryStringParameters": last(query), "multiValueQueryStringParameters": query,
		"requestContext": map[string]any{"stage": "prod", "path": "/prod" + c.path, "httpMethod": c.method},
	}
	if c.user != "" {
		ev["requestContext"].(map[string]any)["authorizer"] = map[string]any{
			"claims": map[string]any{"iss": "https://issuer.example", "sub": c.user},
		}
	}
	setBody(ev, c)
	return ev
}

func albSingleEvent(c call) map[string]any {
	ev := albEvent(c)
	ev["headers"] = last(lower(c.header))
	ev["queryStringParameters"] = last(rawParameters(c.query))
	return ev
}

func albMultiEvent(c call) map[string]any {
	ev := albEvent(c)
	ev["multiValueHeaders"] = lower(c.header)
	ev["multiValueQueryStringParameters"] = rawParameters(c.query)
	return ev
}

func albEvent(c call) map[string]any {
	ev := map[string]any{
		"httpMethod": c.method, "path": c.path,
		"requestContext": map[string]any{"elb": map[string]any{
			"targetGroupArn": "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/rides/6d0ecf831eec9f09",
		}},
	}
	setBody(ev, c)
	return ev
}

func setBody(ev map[string]any, c call) {
	ev["body"], ev["isBase64Encoded"] = string(c.body), false
	if c.base64 || !utf8.Valid(c.body) {
		ev["body"], ev["isBase64Encoded"] = base64.StdEncoding.EncodeToString(c.body), true
	}
}

func lower(h http.Header) map[string][]string {
	m := make(map[string][]string)
	for name, values := range h {
		m[strings.ToLower(name)] = append(m[strings.ToLower(name)], values...)
	}
	return m
}

func last[M ~map[string][]string](m M) map[string]string {
	single := make(map[string]string)
	for name, values := range m {
		single[name] = values[len(values)-1]
	}
	return single
}

// rawParameters splits a query without decoding it.
func rawParameters(query string) map[string][]string {
	m := make(map[string][]string)
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			m[name] = append(m[name], value)
		}
	}
	return m
}

// The answers.

// result has the members that any of the sources reads.
type result struct {
	StatusCode        int
	StatusDescription string
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Cookies           []string
	Body              string
	IsBase64Encoded   bool
}

func parse(t testing.TB, payload []byte) (result, answer) {
	t.Helper()
	var r result
	if err := json.Unmarshal(payload, &r); err != nil {
		t.Fatalf("the source can't read %.200s: %v", payload, err)
	}
	a := answer{status: r.StatusCode, header: make(http.Header), body: []byte(r.Body)}
	if r.IsBase64Encoded {
		var err error
		if a.body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			t.Fatalf("the source can't decode the body: %v", err)
		}
	}
	return r, a
}

func v2Answer(t testing.TB, payload []byte) answer {
	t.Helper()
	r, a := parse(t, payload)
	for name, value := range r.Headers {
		a.header.Add(name, value)
	}
	for _, c := range r.Cookies {
		a.header.Add("Set-Cookie", c)
	}
	return a
}

// restAnswer merges; what is in both maps would be doubled, so it must not be.
func restAnswer(t testing.TB, payload []byte) answer {
	t.Helper()
	r, a := parse(t, payload)
	for name, value := range r.Headers {
		a.header.Add(name, value)
	}
	for name, values := range r.MultiValueHeaders {
		for _, v := range values {
			a.header.Add(name, v)
		}
	}
	return a
}

func albSingleAnswer(t testing.TB, payload []byte) answer {
	t.Helper()
	r, a := albAnswer(t, payload)
	for name, value := range r.Headers {
		a.header.Add(name, value)
	}
	return a
}

func albMultiAnswer(t testing.TB, payload []byte) answer {
	t.Helper()
	r, a := albAnswer(t, payload)
	maps.Copy(a.header, r.MultiValueHeaders)
	return a
}

func albAnswer(t testing.TB, payload []byte) (result, answer) {
	t.Helper()
	r, a := parse(t, payload)
	if r.Headers == nil || r.MultiValueHeaders == nil {
		t.Errorf("the load balancer answers 502 to null headers: %.300s", payload)
	}
	if text := http.StatusText(r.StatusCode); !strings.HasSuffix(r.StatusDescription, " "+text) {
		t.Errorf("statusDescription is %q for %d", r.StatusDescription, r.StatusCode)
	}
	return r, a
}

// value is a header's values as one list, which is all that some sources give.
func (a answer) value(name string) string { return strings.Join(a.header.Values(name), ", ") }

// code is the machine-readable part of a refusal.
func (a answer) code(t testing.TB) string {
	t.Helper()
	if got := a.value("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type is %q (%d %s), want a problem", got, a.status, a.body)
	}
	var p struct {
		Code   string `json:"code"`
		Status int    `json:"status"`
	}
	if err := json.Unmarshal(a.body, &p); err != nil || p.Status != a.status {
		t.Errorf("problem %s for status %d: %v", a.body, a.status, err)
	}
	return p.Code
}

// refused checks that a is a refusal that a client may rely on.
func (a answer) refused(t testing.TB, status int, code string) {
	t.Helper()
	if got := a.code(t); a.status != status || got != code {
		t.Errorf("got %d %s, want %d %s", a.status, got, status, code)
	}
}

// accepted checks that a is the handler's answer, given first or replayed.
func (a answer) accepted(t testing.TB, status int, body string, replayed bool) {
	t.Helper()
	if a.status != status || string(a.body) != body {
		t.Errorf("got %d %.200q, want %d %q", a.status, a.body, status, body)
	}
	want := ""
	if replayed {
		want = "true"
	}
	if got := a.value(idem.ReplayedHeader); got != want {
		t.Errorf("%s is %q, want %q", idem.ReplayedHeader, got, want)
	}
}

// watched is a store that counts what is written to it.
type watched struct {
	idem.MemoryStore
	claims, commits atomic.Int64
	edit            atomic.Pointer[func(*store.Record)] // what somebody changes of a record before it is read
}

func (w *watched) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	w.claims.Add(1)
	rec, err := w.MemoryStore.Claim(ctx, c)
	return w.edited(rec), err
}

func (w *watched) Load(ctx context.Context, pk string) (*store.Record, error) {
	rec, err := w.MemoryStore.Load(ctx, pk)
	return w.edited(rec), err
}

func (w *watched) edited(rec *store.Record) *store.Record {
	if edit := w.edit.Load(); edit != nil && rec != nil {
		(*edit)(rec)
	}
	return rec
}

func (w *watched) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	w.commits.Add(1)
	return w.MemoryStore.Commit(ctx, c)
}

// untouched checks that nothing was written.
func (w *watched) untouched(t testing.TB) {
	t.Helper()
	if n := w.claims.Load() + w.commits.Load(); n != 0 {
		t.Errorf("%d writes, want none", n)
	}
}

// counted counts a handler's runs.
func counted(h handler) (handler, *atomic.Int64) {
	var runs atomic.Int64
	return func(ctx context.Context, body []byte) (idem.Response, error) {
		runs.Add(1)
		return h(ctx, body)
	}, &runs
}

// created answers with the body it was sent.
func created(_ context.Context, body []byte) (idem.Response, error) {
	return idem.Response{
		Status: 201, Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/rides/1"}},
		Body: append([]byte("made: "), body...),
	}, nil
}

const createdBody = "made: " + goldenBody

func ran(t testing.TB, runs *atomic.Int64, want int64) {
	t.Helper()
	if got := runs.Load(); got != want {
		t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// each runs test for every source, in parallel.
func each(t *testing.T, in []source, test func(t *testing.T, s source)) {
	t.Helper()
	for _, s := range in {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// door serves a handler for a client, through whatever stands between.
type door struct {
	name string
	open func(*testing.T, *idem.Engine, handler) func(call) answer
}

// doors are the sources of events, and net/http.
func doors() []door {
	all := []door{{"net http", func(t *testing.T, e *idem.Engine, h handler) func(call) answer {
		t.Helper()
		return func(c call) answer { return overHTTP(t, e.Middleware(asHTTP(h)), c) }
	}}}
	for _, s := range sources {
		all = append(all, door{s.name, func(t *testing.T, e *idem.Engine, h handler) func(call) answer {
			t.Helper()
			wrapped := s.wrap(e, h)
			return func(c call) answer { return s.send(t, wrapped, c) }
		}})
	}
	return all
}

// eachDoor runs test for every door, in parallel.
func eachDoor(t *testing.T, test func(t *testing.T, d door)) {
	t.Helper()
	for _, d := range doors() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// asHTTP is h for net/http.
func asHTTP(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var resp idem.Response
		if err == nil {
			resp, err = h(r.Context(), body)
		}
		if err != nil {
			http.Error(w, "failed", http.StatusInternalServerError)
			return
		}
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.Status)
		_, _ = w.Write(resp.Body)
	})
}

type callerKey struct{}

// callerOf is Options.Scope of engines behind net/http, where a program knows its callers.
func callerOf(ctx context.Context, _ *idem.Request) (string, error) {
	return cmp.Or(ctx.Value(callerKey{}).(string), "nobody"), nil
}

// overHTTP serves c, whose caller the program knows.
func overHTTP(t *testing.T, h http.Handler, c call) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), callerKey{}, c.user), ample)
	defer cancel()
	target := c.path
	if c.query != "" {
		target += "?" + c.query
	}
	r := httptest.NewRequestWithContext(ctx, c.method, target, bytes.NewReader(c.body))
	for name, values := range c.header {
		for _, v := range values {
			r.Header.Add(name, v)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.Bytes()}
}

func withoutKey() call {
	c := newCall("")
	delete(c.header, "Idempotency-Key")
	return c
}

func named(name string) func(*lambda.HandlerOptions) {
	return func(o *lambda.HandlerOptions) { o.Name = name }
}

// process is the store of another process, or of another version, which has handlers of
// its own: a memory store belongs to one process.
type process struct{ *idem.MemoryStore }

func (process) AddUnnamed(string) int { return 1 }

// elsewhere is a watched store, as another process has it.
type elsewhere struct{ *watched }

func (elsewhere) AddUnnamed(string) int { return 1 }
