package lambda_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/servers/apigateway"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/lambda"
)

// The contracts of the commerce protocols, rule by rule, over HTTP: through a Router, through
// WrapHandler, and through net/http's middleware.

// merchant is an API of checkouts. Each effect has a number, which its answer tells.
type merchant struct {
	*testing.T
	url   string
	clock func(time.Duration) // passes time
	store *reached

	mu      sync.Mutex
	effects int
	status  int           // of the next answers; 0 is the operation's own
	hold    chan struct{} // the handler waits until it is closed
	inside  chan struct{} // the handler is there
}

// reached is a store that can't be reached while it is down.
type reached struct {
	idem.MemoryStore

	down atomic.Bool
}

func (s *reached) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	if s.down.Load() {
		return nil, errors.New("no route to the table")
	}
	return s.MemoryStore.Claim(ctx, c)
}

// do is the merchant's business.
func (m *merchant) do(method, path string) (status int, header http.Header, body []byte) {
	m.mu.Lock()
	m.effects++
	n, hold, inside := m.effects, m.hold, m.inside
	status = cmp.Or(m.status, http.StatusOK)
	if path == "/checkout_sessions" && m.status == 0 {
		status = http.StatusCreated
	}
	m.mu.Unlock()
	if hold != nil {
		inside <- struct{}{}
		<-hold
	}
	return status, http.Header{"Content-Type": {"application/json"}}, fmt.Appendf(nil, `{"did":%q,"effect":%d}`, method+" "+path, n)
}

var checkoutRoutes = []string{
	"POST /checkout_sessions", "POST /checkout_sessions/{id}", "POST /checkout_sessions/{id}/complete", "POST /checkout_sessions/{id}/cancel", "PUT /checkout_sessions/{id}",
}

// merchants are the three ways to build one.
var merchants = map[string]func(*merchant, *idem.Engine) http.Handler{
	"Router": func(m *merchant, e *idem.Engine) http.Handler {
		router := lambda.NewRouter(lambda.HTTPAPI)
		for _, pattern := range checkoutRoutes {
			method, _, _ := strings.Cut(pattern, " ")
			if e.CheckRoute(pattern) != nil { // ACP has no PUT
				continue
			}
			router.Keyed(pattern, e, func(_ context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
				status, _, body := m.do(method, ev.RawPath)
				return events.APIGatewayV2HTTPResponse{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}, nil
			})
		}
		return m.gateway(router.Invoke)
	},
	"WrapHandler": func(m *merchant, e *idem.Engine) http.Handler {
		return m.gateway(lambda.WrapHandler(e, lambda.HTTPAPI, m.mux()).Invoke)
	},
	"net http": func(m *merchant, e *idem.Engine) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := context.WithValue(r.Context(), callerKey{}, bearer(r.Header))
			e.Middleware(m.mux()).ServeHTTP(w, r.WithContext(ctx))
		})
	},
}

func (m *merchant) gateway(invoke invoker) http.Handler {
	return apigateway.HTTPAPI(lambdarun.InProcess(invoke, 20*time.Second), func(o *apigateway.HTTPAPIOptions) {
		o.Authorizer = func(r *http.Request) (*apigateway.Identity, error) {
			return apigateway.JWT(map[string]string{"iss": "https://issuer.example", "sub": bearer(r.Header)}), nil
		}
	})
}

func (m *merchant) mux() http.Handler {
	mux := http.NewServeMux()
	for _, pattern := range checkoutRoutes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			status, header, body := m.do(r.Method, r.URL.Path)
			w.Header().Set("Content-Type", header.Get("Content-Type"))
			w.WriteHeader(status)
			_, _ = w.Write(body)
		})
	}
	return mux
}

// eachMerchant runs a test on the three.
func eachMerchant(t *testing.T, preset func(*idem.Options), test func(*testing.T, *merchant)) {
	t.Helper()
	for name, build := range merchants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &merchant{T: t, store: &reached{}}
			var mu sync.Mutex
			now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
			m.clock = func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
			e := idem.New(m.store, preset, func(o *idem.Options) {
				o.Logger = slog.New(slog.DiscardHandler)
				o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
				if name == "net http" {
					o.Scope = func(ctx context.Context, _ *idem.Request) (string, error) {
						caller, _ := ctx.Value(callerKey{}).(string)
						return caller, nil
					}
				}
			})
			srv := httptest.NewServer(build(m, e))
			t.Cleanup(srv.Close)
			m.url = srv.URL
			test(t, m)
		})
	}
}

type told struct {
	status int
	header http.Header
	body   string
}

func (a told) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

func (a told) field(name string) string {
	var body map[string]any
	_ = json.Unmarshal([]byte(a.body), &body)
	s, _ := body[name].(string)
	return s
}

// send sends a request of jane's; headers are names and values in turn.
func (m *merchant) send(method, path, key, body string, headers ...string) told {
	m.Helper()
	req, err := http.NewRequestWithContext(m.Context(), method, m.url+path, strings.NewReader(body))
	if err != nil {
		m.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer jane")
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		m.Fatal(err)
	}
	return told{resp.StatusCode, resp.Header, string(text)}
}

func (m *merchant) post(path, key, body string, headers ...string) told {
	m.Helper()
	return m.send(http.MethodPost, path, key, body, headers...)
}

// ran wants n effects in all.
func (m *merchant) ran(n int) {
	m.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.effects != n {
		m.Errorf("%d effects, want %d", m.effects, n)
	}
}

// answers makes the handler answer with a status; 0 is its own.
func (m *merchant) answers(status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = status
}

// while runs do while a request is in its handler.
func (m *merchant) while(path, key, body string, do func()) told {
	m.Helper()
	m.mu.Lock()
	hold, inside := make(chan struct{}), make(chan struct{}, 1)
	m.hold, m.inside = hold, inside
	m.mu.Unlock()
	first := make(chan told, 1)
	go func() { first <- m.post(path, key, body) }()
	<-inside
	m.mu.Lock()
	m.hold = nil
	m.mu.Unlock()
	do()
	close(hold)
	return <-first
}

const (
	created1 = `{"did":"POST /checkout_sessions","effect":1}`
	key1     = "5f0ad0f3-7a08-4a5e-8a0f-6c1f2f0c9b1e"
	key2     = "9b1c2d3e-4f50-4617-a829-3b4c5d6e7f80"
)

// flat wants an error in ACP's shape.
func (a told) flat(t *testing.T, status int, kind, code string) {
	t.Helper()
	var body map[string]string
	err := json.Unmarshal([]byte(a.body), &body)
	if err != nil || a.status != status || body["type"] != kind || body["code"] != code || body["message"] == "" || len(body) != 3 ||
		a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-store" || a.replayed() {
		t.Errorf("%d %s, %v: %v; want %d %s %s", a.status, a.body, a.header, err, status, kind, code)
	}
}

func TestACP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *merchant){
		"a key is required on every POST": func(t *testing.T, m *merchant) {
			for _, path := range []string{"/checkout_sessions", "/checkout_sessions/1", "/checkout_sessions/1/complete", "/checkout_sessions/1/cancel"} {
				a := m.post(path, "", `{}`, "Request-Id", "req_1")
				a.flat(t, 400, "invalid_request", "idempotency_key_required")
				if a.header.Get("Request-Id") != "req_1" {
					t.Errorf("%s: Request-Id %q", path, a.header.Get("Request-Id"))
				}
			}
			m.ran(0)
		},
		"keys are opaque and have at most 255 characters": func(t *testing.T, m *merchant) {
			for _, key := range []string{strings.Repeat("k", 255), "1", "{not/a=uuid}"} {
				if a := m.post("/checkout_sessions", key, `{}`); a.status != 201 || a.header.Get("Idempotency-Key") != key {
					t.Errorf("%.20s: %d, %v", key, a.status, a.header)
				}
			}
			m.post("/checkout_sessions", strings.Repeat("k", 256), `{}`).flat(t, 400, "invalid_request", "idempotency_key_invalid")
			m.ran(3)
		},
		"a replay has the same answer, and every answer the key and the request's own id": func(t *testing.T, m *merchant) {
			first := m.post("/checkout_sessions", key1, `{"a":1}`, "Request-Id", "req_1")
			again := m.post("/checkout_sessions", key1, `{"a":1}`, "Request-Id", "req_2")
			third := m.post("/checkout_sessions", key1, `{"a":1}`)
			for i, a := range []told{first, again, third} {
				if a.status != 201 || a.body != created1 || a.replayed() != (i > 0) || a.header.Get("Idempotency-Key") != key1 || a.header.Get("Request-Id") != []string{"req_1", "req_2", ""}[i] {
					t.Errorf("%d: %d %s %v", i, a.status, a.body, a.header)
				}
			}
			m.ran(1)
		},
		"the same key on another endpoint is another operation": func(t *testing.T, m *merchant) {
			paths := []string{
				"/checkout_sessions", "/checkout_sessions/A", "/checkout_sessions/A/complete", "/checkout_sessions/A/cancel", "/checkout_sessions/B", "/checkout_sessions/B/cancel", "/checkout_sessions/B/complete",
			}
			for round := range 2 {
				for i, path := range paths {
					want := fmt.Sprintf(`{"did":"POST %s","effect":%d}`, path, i+1)
					if a := m.post(path, key1, `{}`); a.body != want || a.replayed() != (round > 0) {
						t.Errorf("%s: %d %s; want %s", path, a.status, a.body, want)
					}
				}
			}
			m.ran(len(paths))
		},
		"the same key of another identity is another operation": func(t *testing.T, m *merchant) {
			m.post("/checkout_sessions", key1, `{}`)
			if a := m.post("/checkout_sessions", key1, `{}`, "Authorization", "Bearer omar"); a.replayed() || a.status != 201 || a.body == created1 {
				t.Errorf("%d %s", a.status, a.body)
			}
			m.ran(2)
		},
		"bodies are compared by meaning, and headers aren't": func(t *testing.T, m *merchant) {
			m.post("/checkout_sessions", key1, `{"items":[{"id":"a","quantity":1},{"id":"b","quantity":2}],"note":"\u00e9"}`)
			for _, same := range []string{
				`{"note":"é","items":[{"quantity":1,"id":"a"},{"quantity":2,"id":"b"}]}`,
				"{ \"items\" : [ {\"id\":\"a\",\"quantity\":1.0}, {\"id\":\"b\",\"quantity\":0.2e1} ],\n\"note\":\"é\" }",
			} {
				if a := m.post("/checkout_sessions", key1, same, "Content-Type", "application/json; charset=utf-8", "Accept-Language", "fr", "User-Agent", "another"); !a.replayed() || a.body != created1 {
					t.Errorf("%s: %d %s", same, a.status, a.body)
				}
			}
			for _, other := range []string{
				`{"items":[{"id":"b","quantity":2},{"id":"a","quantity":1}],"note":"é"}`,
				`{"items":[{"id":"a","quantity":1},{"id":"b","quantity":2}],"note":"é","coupon":null}`,
				`{"items":[{"id":"a","quantity":1},{"id":"b","quantity":2.000000000000000000001}],"note":"é"}`,
				`{"items":[{"id":"a","quantity":"1"},{"id":"b","quantity":2}],"note":"é"}`,
				`{"items":[{"id":"a","quantity":1,"ext:gift":true},{"id":"b","quantity":2}],"note":"é"}`,
				``,
			} {
				m.post("/checkout_sessions", key1, other).flat(t, 422, "invalid_request", "idempotency_conflict")
			}
			m.ran(1)
		},
		"no body is a body of its own": func(t *testing.T, m *merchant) {
			m.post("/checkout_sessions/1/cancel", key1, "")
			if a := m.post("/checkout_sessions/1/cancel", key1, "", "Content-Type", "text/plain"); !a.replayed() {
				t.Errorf("%d %s", a.status, a.body)
			}
			m.post("/checkout_sessions/1/cancel", key1, "{}").flat(t, 422, "invalid_request", "idempotency_conflict")
			m.ran(1)
		},
		"a body that readers understand differently is refused": func(t *testing.T, m *merchant) {
			for body, says := range map[string]string{
				`{"amount":1,"amount":2}`: "The body has an object with two members of the same name. ", `{"a":"\ud800"}`: "The body has half of a surrogate pair in a text. ",
				"amount=1": "The body is not one JSON value. ", "{}{}": "The body is not one JSON value. ",
				strings.Repeat("[", 300) + strings.Repeat("]", 300): "The body has more than 200 levels. ",
			} {
				a := m.post("/checkout_sessions", key1, body)
				a.flat(t, 400, "invalid_request", "request_invalid")
				if !strings.HasPrefix(a.field("message"), says) {
					t.Errorf("%.30q: %q", body, a.field("message"))
				}
			}
			if a := m.post("/checkout_sessions", key1, `{}`); a.status != 201 || a.replayed() {
				t.Errorf("the key is burnt: %d %s", a.status, a.body)
			}
			m.ran(1)
		},
		"a conflict is permanent, and leaves the first answer": func(t *testing.T, m *merchant) {
			m.post("/checkout_sessions", key1, `{"a":1}`)
			for range 3 {
				a := m.post("/checkout_sessions", key1, `{"a":2}`)
				a.flat(t, 422, "invalid_request", "idempotency_conflict")
				if a.header.Get("Retry-After") != "" || strings.Contains(a.body, "effect") {
					t.Errorf("%v %s", a.header, a.body)
				}
			}
			if a := m.post("/checkout_sessions", key1, `{"a":1}`); !a.replayed() || a.body != created1 {
				t.Errorf("%d %s", a.status, a.body)
			}
			m.ran(1)
		},
		"in flight": func(t *testing.T, m *merchant) {
			first := m.while("/checkout_sessions/1/complete", key1, `{"a":1}`, func() {
				a := m.post("/checkout_sessions/1/complete", key1, `{"a":1.0}`, "Request-Id", "req_9")
				a.flat(t, 409, "invalid_request", "idempotency_in_flight")
				if a.header.Get("Retry-After") == "" || a.header.Get("Idempotency-Key") != key1 || a.header.Get("Request-Id") != "req_9" {
					t.Errorf("%v", a.header)
				}
				m.post("/checkout_sessions/1/complete", key1, `{"a":2}`).flat(t, 422, "invalid_request", "idempotency_conflict")
				if a := m.post("/checkout_sessions/2/complete", key1, `{"a":1}`); a.status != 200 {
					t.Errorf("another session: %d %s", a.status, a.body)
				}
			})
			if again := m.post("/checkout_sessions/1/complete", key1, `{"a":1}`); first.status != 200 || again.body != first.body || !again.replayed() {
				t.Errorf("%d %s, then %d %s", first.status, first.body, again.status, again.body)
			}
			m.ran(2)
		},
		"server errors are never kept": func(t *testing.T, m *merchant) {
			for i, status := range []int{500, 502, 503, 504} {
				m.answers(status)
				if a := m.post("/checkout_sessions", key1, `{}`); a.status != status || a.replayed() {
					t.Errorf("try %d: %d %s", i, a.status, a.body)
				}
			}
			m.answers(0)
			if a := m.post("/checkout_sessions", key1, `{}`); a.status != 201 || a.replayed() {
				t.Errorf("%d %s", a.status, a.body)
			}
			m.ran(5)
		},
		"refusals of the business are answers": func(t *testing.T, m *merchant) {
			for i, status := range []int{400, 402, 404, 405, 422} {
				key := fmt.Sprint("key", i)
				m.answers(status)
				first := m.post("/checkout_sessions", key, `{}`)
				m.answers(0)
				if again := m.post("/checkout_sessions", key, `{}`); first.status != status || again.status != status || !again.replayed() || again.body != first.body {
					t.Errorf("%d: %d %s, then %d %s", status, first.status, first.body, again.status, again.body)
				}
			}
		},
		"kept for 24 hours, then a new request": func(t *testing.T, m *merchant) {
			m.post("/checkout_sessions", key1, `{}`)
			m.clock(24*time.Hour - time.Minute)
			if a := m.post("/checkout_sessions", key1, `{}`); !a.replayed() {
				t.Errorf("%d %s", a.status, a.body)
			}
			m.clock(2 * time.Minute)
			if a := m.post("/checkout_sessions", key1, `{"another":1}`); a.status != 201 || a.replayed() {
				t.Errorf("%d %s", a.status, a.body)
			}
			m.ran(2)
		},
		"without the store nothing runs": func(t *testing.T, m *merchant) {
			m.store.down.Store(true)
			m.down(t, func(a told) { a.flat(t, 503, "service_unavailable", "store_unavailable") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMerchant(t, idem.ACP, test)
		})
	}
}

// down wants a refusal, and no effect, while the store can't be reached.
func (m *merchant) down(t *testing.T, want func(told)) {
	t.Helper()
	a := m.post("/checkout_sessions", key1, `{}`)
	want(a)
	if a.header.Get("Retry-After") == "" {
		t.Errorf("%v", a.header)
	}
	m.ran(0)
}

func TestUCP(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, a told, status int, code string) {
		t.Helper()
		if a.status != status || a.field("code") != code || a.field("content") == "" || a.header.Get("Content-Type") != "application/json" || a.replayed() {
			t.Errorf("%d %s, %v; want %d %s", a.status, a.body, a.header, status, code)
		}
	}
	for name, test := range map[string]func(*testing.T, *merchant){
		"a key is required on POST and PUT": func(t *testing.T, m *merchant) {
			refused(t, m.post("/checkout_sessions", "", `{}`), 400, "idempotency_key_required")
			refused(t, m.send(http.MethodPut, "/checkout_sessions/1", "", `{}`), 400, "idempotency_key_required")
			m.ran(0)
		},
		"keys have 128 bits of chance": func(t *testing.T, m *merchant) {
			refused(t, m.post("/checkout_sessions", strings.Repeat("k", 21), `{}`), 400, "idempotency_key_invalid")
			if a := m.post("/checkout_sessions", strings.Repeat("k", 22), `{}`); a.status != 201 {
				t.Errorf("%d %s", a.status, a.body)
			}
			m.ran(1)
		},
		"a duplicate gets the same answer": func(t *testing.T, m *merchant) {
			for i, call := range [][2]string{
				{"POST", "/checkout_sessions"}, {"PUT", "/checkout_sessions/1"}, {"POST", "/checkout_sessions/1/complete"}, {"POST", "/checkout_sessions/1/cancel"},
			} {
				first, again := m.send(call[0], call[1], key1, `{"a":1}`), m.send(call[0], call[1], key1, `{"a":1}`)
				if first.replayed() || !again.replayed() || first.status != again.status || first.body != again.body || again.header.Get("Idempotency-Key") != key1 {
					t.Errorf("%s: %d %s, then %d %s", call, first.status, first.body, again.status, again.body)
				}
				refused(t, m.send(call[0], call[1], key1, `{"a":2}`), 409, "idempotency_conflict")
				m.ran(i + 1)
			}
		},
		"bodies are compared by their bytes": func(t *testing.T, m *merchant) {
			m.post("/checkout_sessions", key1, `{"a":1,"b":2}`)
			for _, other := range []string{`{"b":2,"a":1}`, `{"a":1,"b":2} `, `{"a":1.0,"b":2}`, `{"a":1,"b":2,"b":2}`, ""} {
				refused(t, m.post("/checkout_sessions", key1, other), 409, "idempotency_conflict")
			}
			form := "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n"
			m.post("/checkout_sessions", key2, form, "Content-Type", "multipart/form-data; boundary=x")
			refused(t, m.post("/checkout_sessions", key2, strings.ReplaceAll(form, "--x", "--y"), "Content-Type", "multipart/form-data; boundary=y"), 409, "idempotency_conflict")
			m.ran(2)
		},
		"the same key on another session or method is another operation": func(t *testing.T, m *merchant) {
			for i, call := range [][2]string{
				{"POST", "/checkout_sessions/A/cancel"}, {"POST", "/checkout_sessions/B/cancel"}, {"PUT", "/checkout_sessions/A"}, {"POST", "/checkout_sessions/A"},
			} {
				if a := m.send(call[0], call[1], key1, `{}`); a.replayed() || a.status != 200 {
					t.Errorf("%s: %d %s", call, a.status, a.body)
				}
				m.ran(i + 1)
			}
		},
		"in flight": func(t *testing.T, m *merchant) {
			m.while("/checkout_sessions/1/complete", key1, `{}`, func() {
				a := m.post("/checkout_sessions/1/complete", key1, `{}`)
				refused(t, a, 409, "idempotency_in_flight")
				if a.header.Get("Retry-After") == "" {
					t.Errorf("%v", a.header)
				}
			})
			m.ran(1)
		},
		"server errors are never kept": func(t *testing.T, m *merchant) {
			m.answers(503)
			m.post("/checkout_sessions", key1, `{}`)
			m.answers(0)
			if a := m.post("/checkout_sessions", key1, `{}`); a.status != 201 || a.replayed() {
				t.Errorf("%d %s", a.status, a.body)
			}
		},
		"kept for 48 hours": func(t *testing.T, m *merchant) {
			m.post("/checkout_sessions", key1, `{}`)
			m.clock(48*time.Hour - time.Minute)
			if a := m.post("/checkout_sessions", key1, `{}`); !a.replayed() {
				t.Errorf("%d %s", a.status, a.body)
			}
			m.clock(2 * time.Minute)
			if a := m.post("/checkout_sessions", key1, `{}`); a.replayed() {
				t.Errorf("%d %s", a.status, a.body)
			}
		},
		"storage fails closed": func(t *testing.T, m *merchant) {
			m.store.down.Store(true)
			m.down(t, func(a told) { refused(t, a, 503, "store_unavailable") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMerchant(t, idem.UCP, test)
		})
	}
}

// What a commerce contract demands, no other option takes back.
func TestCommercePresetsRefuseWhatBreaksThem(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]func(*idem.Options){
		"Retention 23h": {idem.ACP, func(o *idem.Options) { o.Retention = 23 * time.Hour }}, "UCP, Retention 23h": {idem.UCP, func(o *idem.Options) { o.Retention = 23 * time.Hour }},
		"ModeOpen": {idem.ACP, func(o *idem.Options) { o.Mode = idem.ModeOpen }}, "ModeOff": {idem.UCP, func(o *idem.Options) { o.Mode = idem.ModeOff }},
		"StatusURL": {idem.ACP, func(o *idem.Options) { o.StatusURL = "/operations/" }},
	} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), strings.Fields(strings.TrimPrefix(name, "UCP, "))[0]) {
					t.Errorf("%s: %v", name, v)
				}
			}()
			idem.New(&idem.MemoryStore{}, opts...)
		}()
	}
}

// preset is a contract, and what a client of it sends.
type preset struct {
	set    func(*idem.Options)
	key    string // the least that it takes
	method string // beside POST
}

// rollOut are the releases by which a program goes over from one preset to another one.
func rollOut(was, is preset) []*idem.Engine {
	records := &idem.MemoryStore{}
	quiet := func(o *idem.Options) { o.Logger = slog.New(slog.DiscardHandler) }
	former := func(claims bool) *idem.Engine {
		return idem.New(records, quiet, is.set, func(o *idem.Options) { o.Former = &idem.Former{Preset: was.set, Claims: claims} })
	}
	return []*idem.Engine{idem.New(records, quiet, was.set), former(true), former(false), idem.New(records, quiet, is.set)}
}

// A program goes over to another preset in two releases. Of two that run side by side, each
// gives the other one's answers, tells that it works, and refuses another request with its
// key: nothing runs twice, and no path gets the answer of another one.
func TestThePresetChanges(t *testing.T) {
	t.Parallel()
	presets := map[string]preset{
		"default": {func(*idem.Options) {}, "k%d", "PATCH"}, "Stripe": {idem.Stripe, "k%d", "DELETE"}, "IETF": {idem.IETF, `"k%d"`, "PATCH"},
		"ACP": {idem.ACP, "k%d", "POST"}, "UCP": {idem.UCP, "0123456789abcdef012345%d", "PUT"},
	}
	for from, was := range presets {
		for to, is := range presets {
			if from == to {
				continue
			}
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				releases, n := rollOut(was, is), 0
				for pair, client := range []preset{was, {key: "k%d", method: was.method}, is} {
					for _, order := range [][2]int{{pair, pair + 1}, {pair + 1, pair}} {
						for _, method := range []string{"POST", client.method} {
							n++
							neighbours(t, releases[order[0]], releases[order[1]], method, fmt.Sprintf(client.key, n), fmt.Sprintf("%s, releases %v", method, order))
						}
					}
				}
			})
		}
	}
}

// neighbours has first run a request, and second retry it.
func neighbours(t *testing.T, first, second *idem.Engine, method, key, name string) {
	t.Helper()
	runs := 0
	ask := func(e *idem.Engine, path, body string, meanwhile func()) idem.Result {
		res, err := e.Serve(t.Context(), idem.Request{
			Method: method, Path: path, Identity: idem.Identity{Kind: "jwt", Subject: "jane"}, Header: http.Header{"Idempotency-Key": {key}}, Body: []byte(body),
		}, func(context.Context) (idem.Response, error) {
			runs++
			meanwhile()
			return idem.Response{Status: 201, Body: []byte(path)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	nothing := func() {}
	ask(first, "/sessions/A", `{"a":1}`, func() {
		if res := ask(second, "/sessions/A", `{"a":1}`, nothing); res.Status != 409 || runs != 1 {
			t.Errorf("%s, in flight: %d %s, %d runs", name, res.Status, res.Body, runs)
		}
	})
	for _, e := range []*idem.Engine{second, first, second} {
		if res := ask(e, "/sessions/A", `{"a":1}`, nothing); !res.Replayed || res.Status != 201 || runs != 1 {
			t.Errorf("%s, done: %d %s, %d runs", name, res.Status, res.Body, runs)
		}
		if res := ask(e, "/sessions/A", `{"a":2}`, nothing); !slices.Contains([]int{400, 409, 422}, res.Status) || runs != 1 {
			t.Errorf("%s, another request: %d %s, %d runs", name, res.Status, res.Body, runs)
		}
	}
	for _, e := range []*idem.Engine{first, second} {
		if res := ask(e, "/sessions/B", `{"a":1}`, nothing); string(res.Body) == "/sessions/A" {
			t.Errorf("%s, another path: %d %s", name, res.Status, res.Body)
		}
	}
	if res := ask(second, "/sessions/A", `{"a":1}`, nothing); !res.Replayed || string(res.Body) != "/sessions/A" {
		t.Errorf("%s, after another path: %d %s", name, res.Status, res.Body)
	}
}

// A body that ACP refuses has an answer if it was sent before ACP.
func TestABodyFromBeforeACP(t *testing.T) {
	t.Parallel()
	releases := rollOut(preset{set: func(*idem.Options) {}}, preset{set: idem.ACP})
	ask := func(release int, key, body string) (res idem.Result, ran bool) {
		res, err := releases[release].Serve(t.Context(), idem.Request{
			Method: "POST", Path: "/orders", Identity: idem.Identity{Kind: "jwt", Subject: "jane"}, Header: http.Header{"Idempotency-Key": {key}}, Body: []byte(body),
		}, func(context.Context) (idem.Response, error) {
			ran = true
			return idem.Response{Status: 201, Body: []byte(body)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return res, ran
	}
	for release := range 2 {
		key := fmt.Sprint("k", release)
		ask(release, key, "a=1")
		if res, ran := ask(2, key, "a=1"); ran || !res.Replayed || string(res.Body) != "a=1" {
			t.Errorf("the answer of release %d: %d %s", release, res.Status, res.Body)
		}
		if res, ran := ask(2, key, "a=2"); ran || res.Status != 422 {
			t.Errorf("another body under the key of release %d: %d %s", release, res.Status, res.Body)
		}
	}
	ask(2, "k2", `{"a":1}`)
	for key, want := range map[string]int{"k2": 503, "k3": 400} {
		if res, ran := ask(2, key, "a=1"); ran || res.Status != want {
			t.Errorf("%s, a body that ACP refuses: %d %s, want %d", key, res.Status, res.Body, want)
		}
	}
}

// An engine that has taken only ACP's fingerprint over tells paths apart.
func TestFingerprintOfACPAlone(t *testing.T) {
	t.Parallel()
	var acp idem.Options
	idem.ACP(&acp)
	e := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Fingerprint = acp.Fingerprint })
	for path, want := range map[string]error{"/sessions/A": nil, "/sessions/B": idem.ErrMismatch} {
		r := idem.Request{Key: "k", Method: "POST", Path: "/sessions/A", Identity: idem.Identity{Kind: "jwt", Subject: "jane"}, Body: []byte(`{}`)}
		run := func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }
		if _, err := e.Do(t.Context(), r, run); err != nil {
			t.Fatal(err)
		}
		r.Path = path
		if _, err := e.Do(t.Context(), r, run); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

// A UCP tool call over MCP has its key in its arguments.
func TestUCPToolCall(t *testing.T) {
	t.Parallel()
	key := lambda.MCPToolKey("/arguments/meta/idempotency-key")
	call := func(id, key, session, more string) []byte {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"complete_checkout","arguments":{"meta":{"idempotency-key":%q},"id":%q%s}}}`, id, key, session, more)
	}
	first, err1 := key.Key(call("1", key1, "A", ""))
	again, err2 := key.Key(call("2", key1, "A", ""))
	same1, err3 := key.Same(call("1", key1, "A", ""))
	same2, err4 := key.Same(call("2", key1, "A", ""))
	other, err5 := key.Same(call("2", key1, "B", ""))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil || first != again || string(same1) != string(same2) || string(same1) == string(other) {
		t.Errorf("%v: %s %s", err, first, again)
	}
	if _, err := key.Key([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"complete_checkout","arguments":{"id":"A"}}}`)); err == nil {
		t.Error("a call without a key has one")
	}
}

// A path has many spellings: %5F is _, and hexadecimal digits have two cases. A retry in
// another spelling is the same operation.
func TestPathInAnotherSpelling(t *testing.T) {
	t.Parallel()
	for name, preset := range map[string]func(*idem.Options){"ACP": idem.ACP, "UCP": idem.UCP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMerchant(t, preset, func(t *testing.T, m *merchant) {
				first := m.post("/checkout_sessions/cs_1~/cancel", key1, "")
				for _, path := range []string{"/checkout_sessions/cs%5F1~/cancel", "/checkout_sessions/cs%5f1%7E/cancel", "/checkout_sessions/cs_1%7e/cancel"} {
					if a := m.post(path, key1, ""); a.status != 200 || a.body != first.body || !a.replayed() {
						t.Errorf("%s: %d %s, want the replay of %s", path, a.status, a.body, first.body)
					}
				}
				m.ran(1)
			})
		})
	}
}

// The query is a part of the request: another currency is not the same order. The order of
// names and the spelling of values don't count.
func TestQueryOfACheckout(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		preset func(*idem.Options)
		status int
	}{"ACP": {idem.ACP, 422}, "UCP": {idem.UCP, 409}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMerchant(t, tc.preset, func(t *testing.T, m *merchant) {
				m.post("/checkout_sessions?currency=eur&a=%7e", key1, `{}`)
				if a := m.post("/checkout_sessions?a=~&currency=eur", key1, `{}`); !a.replayed() || a.body != created1 {
					t.Errorf("the same query: %d %s", a.status, a.body)
				}
				for _, query := range []string{"", "?currency=usd&a=%7e", "?currency=eur"} {
					if a := m.post("/checkout_sessions"+query, key1, `{}`); a.status != tc.status || a.replayed() {
						t.Errorf("%q: %d %s, want %d", query, a.status, a.body, tc.status)
					}
				}
				m.post("/checkout_sessions/1/cancel", key2, "")
				if a := m.post("/checkout_sessions/1/cancel?why=late", key2, ""); a.status != tc.status {
					t.Errorf("no body: %d %s, want %d", a.status, a.body, tc.status)
				}
				m.ran(2)
			})
		})
	}
}
