package lambda_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda"
)

// The contracts of the commerce protocols, rule by rule, through a Router, through WrapHandler,
// and through net/http's middleware.

// merchant is an API of checkouts. Each effect has a number, which its answer tells.
type merchant struct {
	send    func(call) answer
	store   *reached
	now     time.Time
	effects int
	status  int    // of the next answers; 0 is the operation's own
	during  func() // called in the handler
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

func (m *merchant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.effects++
	body := fmt.Sprintf(`{"did":%q,"effect":%d}`, r.Method+" "+r.URL.Path, m.effects)
	status := cmp.Or(m.status, http.StatusOK)
	if strings.HasSuffix(r.URL.Path, "/checkout_sessions") && m.status == 0 { // events have a stage before it
		status = http.StatusCreated
	}
	if during := m.during; during != nil {
		m.during = nil
		during()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// merchants are the three ways to build one.
var merchants = map[string]func(*testing.T, *merchant, *idem.Engine) func(call) answer{
	"Router": func(t *testing.T, m *merchant, e *idem.Engine) func(call) answer {
		router := lambda.NewRouter(lambda.HTTPAPI)
		for _, pattern := range checkoutRoutes {
			if e.CheckRoute(pattern) == nil { // ACP has no PUT
				router.Keyed(pattern, e, inHTTP(m))
			}
		}
		return invoking(t, router)
	},
	"WrapHandler": func(t *testing.T, m *merchant, e *idem.Engine) func(call) answer {
		return invoking(t, lambda.WrapHandler(e, lambda.HTTPAPI, m.mux()))
	},
	"net http": func(t *testing.T, m *merchant, e *idem.Engine) func(call) answer {
		return func(c call) answer { return overHTTP(t, e.Middleware(m.mux()), c) }
	},
}

var checkoutRoutes = []string{
	"POST /checkout_sessions", "POST /checkout_sessions/{id}", "POST /checkout_sessions/{id}/complete", "POST /checkout_sessions/{id}/cancel",
	"PUT /checkout_sessions/{id}",
}

func invoking(t *testing.T, h awslambda.Handler) func(call) answer {
	return func(c call) answer { return httpAPI.send(t, h, c) }
}

func (m *merchant) mux() http.Handler {
	mux := http.NewServeMux()
	for _, pattern := range checkoutRoutes {
		mux.Handle(pattern, m)
	}
	return mux
}

// eachMerchant runs a test on the three.
func eachMerchant(t *testing.T, preset func(*idem.Options), test func(*testing.T, *merchant)) {
	t.Helper()
	for name, build := range merchants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &merchant{store: &reached{}, now: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)}
			m.send = build(t, m, idem.New(m.store, preset, func(o *idem.Options) {
				o.Logger, o.Now = slog.New(slog.DiscardHandler), func() time.Time { return m.now }
				if name == "net http" {
					o.Scope = callerOf
				}
			}))
			test(t, m)
		})
	}
}

// deal is a request, and what it must get: the status, then "again" for a replay, or the code of a
// refusal; an answer that is neither is an effect. head is the request's line and headers; or
// "wait" moves the clock by the body, "answers" sets the status that handlers answer with, and
// "down" takes the store away.
type deal struct{ head, key, body, want string }

const (
	key1 = "5f0ad0f3-7a08-4a5e-8a0f-6c1f2f0c9b1e"
	key2 = "9b1c2d3e-4f50-4617-a829-3b4c5d6e7f80"
)

// play has each deal, and checks refusals by the preset's shape.
func (m *merchant) play(t *testing.T, refusal func(*testing.T, answer) (code string), deals []deal) {
	t.Helper()
	first := make(map[string]string) // an operation's answer
	for i, d := range deals {
		lines := strings.Split(d.head, "\n")
		switch d.head {
		case "wait":
			after, err := time.ParseDuration(d.body)
			if err != nil {
				t.Fatal(err)
			}
			m.now = m.now.Add(after)
			continue
		case "answers":
			m.status, _ = strconv.Atoi(d.body)
			continue
		case "down":
			m.store.down.Store(true)
			continue
		}
		method, target, _ := strings.Cut(lines[0], " ")
		c := call{method: method, user: "jane", body: []byte(d.body), header: http.Header{"Content-Type": {"application/json"}}}
		c.path, c.query, _ = strings.Cut(target, "?")
		if d.key != "" {
			c.header.Set("Idempotency-Key", d.key)
		}
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			if c.header.Set(name, value); name == "User" {
				c.user = value
			}
		}
		before := m.effects
		a := m.send(c)
		status, what, _ := strings.Cut(d.want, " ")
		got := fmt.Sprint(a.status)
		switch {
		case a.value(idem.ReplayedHeader) == "true":
			got += " again"
			if was := first[d.key+c.user]; string(a.body) != was {
				t.Errorf("request %d %q: the replay is %s, the answer was %s", i, d.head, a.body, was)
			}
		case m.effects == before:
			got += " " + refusal(t, a)
		default:
			first[d.key+c.user] = string(a.body)
		}
		if ids := c.header.Values("Request-Id"); got != d.want || (m.effects > before) != (what == "") || status == "" ||
			len(ids) > 0 && a.value("Request-Id") != ids[0] || len(ids) == 0 && a.value("Request-Id") != "" ||
			what == "again" && a.value("Idempotency-Key") != d.key || a.status == 503 && m.status == 0 && a.value("Retry-After") == "" {
			t.Errorf("request %d %q: got %s, %d effects, %v %s; want %s", i, d.head, got, m.effects-before, a.header, a.body, d.want)
		}
	}
}

// acpRefusal is the code of an error in ACP's shape.
func acpRefusal(t *testing.T, a answer) string {
	t.Helper()
	var body map[string]string
	err := json.Unmarshal(a.body, &body)
	kind := "invalid_request"
	if a.status >= 500 {
		kind = "service_unavailable"
	}
	if err != nil || body["type"] != kind || body["message"] == "" || len(body) != 3 || strings.Contains(body["message"], "effect") ||
		a.value("Content-Type") != "application/json" || a.value("Cache-Control") != "no-store" {
		t.Errorf("not ACP's error: %s %v, %v", a.body, a.header, err)
	}
	return body["code"]
}

// ucpRefusal is the code of an error in UCP's shape.
func ucpRefusal(t *testing.T, a answer) string {
	t.Helper()
	var body struct{ Code, Content string }
	if err := json.Unmarshal(a.body, &body); err != nil || body.Content == "" || a.value("Content-Type") != "application/json" {
		t.Errorf("not UCP's error: %s %v, %v", a.body, a.header, err)
	}
	return body.Code
}

const (
	make1, one, complete, cancel = "POST /checkout_sessions", "POST /checkout_sessions/1", "POST /checkout_sessions/1/complete", "POST /checkout_sessions/1/cancel"
	items                        = `{"items":[{"id":"a","quantity":1},{"id":"b","quantity":2}],"note":"é"}`
	form                         = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n"
)

func TestACP(t *testing.T) {
	t.Parallel()
	const conflict, invalid = "422 idempotency_conflict", "400 request_invalid"
	for name, deals := range map[string][]deal{
		"a key is required on every POST": {
			{make1 + "\nRequest-Id: r", "", "{}", "400 idempotency_key_required"},
			{one, "", "{}", "400 idempotency_key_required"},
			{complete, "", "{}", "400 idempotency_key_required"},
			{cancel, "", "{}", "400 idempotency_key_required"},
		},
		"keys are opaque and have at most 255 characters": {
			{make1, strings.Repeat("k", 255), "{}", "201"},
			{make1, "1", "{}", "201"},
			{make1, "{not/a=uuid}", "{}", "201"},
			{make1, strings.Repeat("k", 256), "{}", "400 idempotency_key_invalid"},
		},
		"a replay has the same answer, and the request's own id": {
			{make1 + "\nRequest-Id: r1", key1, `{"a":1}`, "201"}, {make1 + "\nRequest-Id: r2", key1, `{"a":1}`, "201 again"}, {make1, key1, `{"a":1}`, "201 again"},
		},
		"the same key on another endpoint is another operation": {
			{make1, key1, "{}", "201"},
			{one, key1, "{}", "200"},
			{complete, key1, "{}", "200"},
			{cancel, key1, "{}", "200"},
			{"POST /checkout_sessions/B/cancel", key1, "{}", "200"},
			{"POST /checkout_sessions/B/cancel", key1, "{}", "200 again"},
		},
		"the same key of another caller is another operation": {
			{make1, key1, "{}", "201"}, {make1 + "\nUser: omar", key1, "{}", "201"}, {make1, key1, "{}", "201 again"},
		},
		"bodies are compared by meaning, and headers aren't": {
			{make1, key1, items, "201"},
			{make1, key1, `{"note":"\u00e9","items":[{"quantity":1,"id":"a"},{"quantity":2,"id":"b"}]}`, "201 again"},
			{
				make1 + "\nContent-Type: application/json; charset=utf-8\nAccept-Language: fr\nUser-Agent: another", key1,
				"{ \"items\" : [ {\"id\":\"a\",\"quantity\":1.0}, {\"id\":\"b\",\"quantity\":0.2e1} ],\n\"note\":\"é\" }", "201 again",
			},
			{make1, key1, `{"items":[{"id":"b","quantity":2},{"id":"a","quantity":1}],"note":"é"}`, conflict},
			{make1, key1, strings.Replace(items, `"é"`, `"é","coupon":null`, 1), conflict},
			{make1, key1, strings.Replace(items, `:2}`, `:2.000000000000000000001}`, 1), conflict},
			{make1, key1, strings.Replace(items, `:1}`, `:"1"}`, 1), conflict},
			{make1, key1, strings.Replace(items, `:1}`, `:1,"ext:gift":true}`, 1), conflict},
			{make1, key1, "", conflict},
			{make1, key1, items, "201 again"},
		},
		"no body is a body of its own": {
			{cancel, key1, "", "200"}, {cancel + "\nContent-Type: text/plain", key1, "", "200 again"}, {cancel, key1, "{}", conflict},
		},
		"a body that readers understand differently is refused": {
			{make1, key1, `{"amount":1,"amount":2}`, invalid},
			{make1, key1, `{"a":"\ud800"}`, invalid},
			{make1, key1, "amount=1", invalid},
			{make1, key1, "{}{}", invalid},
			{make1, key1, strings.Repeat("[", 300) + strings.Repeat("]", 300), invalid},
			{make1, key1, "{}", "201"},
		},
		"server errors are never kept": {
			{"answers", "", "500", ""},
			{make1, key1, "{}", "500"},
			{"answers", "", "502", ""},
			{make1, key1, "{}", "502"},
			{"answers", "", "504", ""},
			{make1, key1, "{}", "504"},
			{"answers", "", "0", ""},
			{make1, key1, "{}", "201"},
		},
		"refusals of the business are answers": {
			{"answers", "", "400", ""},
			{make1, "k1", "{}", "400"},
			{"answers", "", "402", ""},
			{make1, "k2", "{}", "402"},
			{"answers", "", "404", ""},
			{make1, "k3", "{}", "404"},
			{"answers", "", "405", ""},
			{make1, "k4", "{}", "405"},
			{"answers", "", "422", ""},
			{make1, "k5", "{}", "422"},
			{"answers", "", "0", ""},
			{make1, "k1", "{}", "400 again"},
			{make1, "k2", "{}", "402 again"},
			{make1, "k3", "{}", "404 again"},
			{make1, "k4", "{}", "405 again"},
			{make1, "k5", "{}", "422 again"},
		},
		"kept for 24 hours, then a new request": {
			{make1, key1, "{}", "201"}, {"wait", "", "23h59m", ""}, {make1, key1, "{}", "201 again"}, {"wait", "", "2m", ""}, {make1, key1, `{"b":1}`, "201"},
		},
		"a path has many spellings": {
			{"POST /checkout_sessions/cs_1~/cancel", key1, "", "200"},
			{"POST /checkout_sessions/cs%5F1~/cancel", key1, "", "200 again"},
			{"POST /checkout_sessions/cs%5f1%7E/cancel", key1, "", "200 again"},
			{"POST /checkout_sessions/cs_1%7e/cancel", key1, "", "200 again"},
		},
		"the query is a part of the request": {
			{make1 + "?currency=eur&a=%7e", key1, "{}", "201"},
			{make1 + "?a=~&currency=eur", key1, "{}", "201 again"},
			{make1, key1, "{}", conflict},
			{make1 + "?currency=usd&a=%7e", key1, "{}", conflict},
			{cancel, key2, "", "200"},
			{cancel + "?why=late", key2, "", conflict},
		},
		"without the store nothing runs": {{"down", "", "", ""}, {make1, key1, "{}", "503 store_unavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMerchant(t, idem.ACP, func(t *testing.T, m *merchant) { m.play(t, acpRefusal, deals) })
		})
	}
}

func TestUCP(t *testing.T) {
	t.Parallel()
	const conflict, put = "409 idempotency_conflict", "PUT /checkout_sessions/1"
	for name, deals := range map[string][]deal{
		"a key is required on POST and PUT": {{make1, "", "{}", "400 idempotency_key_required"}, {put, "", "{}", "400 idempotency_key_required"}},
		"keys have 128 bits of chance": {
			{make1, strings.Repeat("k", 21), "{}", "400 idempotency_key_invalid"}, {make1, strings.Repeat("k", 22), "{}", "201"},
		},
		"a duplicate gets the same answer": {
			{make1, key1, "{}", "201"},
			{make1, key1, "{}", "201 again"},
			{make1, key1, `{"a":2}`, conflict},
			{put, key1, "{}", "200"},
			{put, key1, "{}", "200 again"},
			{put, key1, `{"a":2}`, conflict},
			{complete, key1, "{}", "200"},
			{complete, key1, "{}", "200 again"},
		},
		"bodies are compared by their bytes": {
			{make1, key1, `{"a":1,"b":2}`, "201"},
			{make1, key1, `{"b":2,"a":1}`, conflict},
			{make1, key1, `{"a":1,"b":2} `, conflict},
			{make1, key1, `{"a":1.0,"b":2}`, conflict},
			{make1, key1, `{"a":1,"b":2,"b":2}`, conflict},
			{make1, key1, "", conflict},
			{make1 + "\nContent-Type: multipart/form-data; boundary=x", key2, form, "201"},
			{make1 + "\nContent-Type: multipart/form-data; boundary=y", key2, strings.ReplaceAll(form, "--x", "--y"), conflict},
		},
		"the same key on another session or method is another operation": {
			{cancel, key1, "{}", "200"}, {"POST /checkout_sessions/B/cancel", key1, "{}", "200"}, {put, key1, "{}", "200"}, {one, key1, "{}", "200"},
		},
		"server errors are never kept": {
			{"answers", "", "503", ""}, {make1, key1, "{}", "503"}, {"answers", "", "0", ""}, {make1, key1, "{}", "201"},
		},
		"kept for 48 hours": {
			{make1, key1, "{}", "201"}, {"wait", "", "47h59m", ""}, {make1, key1, "{}", "201 again"}, {"wait", "", "2m", ""}, {make1, key1, "{}", "201"},
		},
		"the query is a part of the request": {
			{make1 + "?currency=eur", key1, "{}", "201"}, {make1, key1, "{}", conflict}, {cancel, key2, "", "200"}, {cancel + "?why=late", key2, "", conflict},
		},
		"storage fails closed": {{"down", "", "", ""}, {make1, key1, "{}", "503 store_unavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMerchant(t, idem.UCP, func(t *testing.T, m *merchant) { m.play(t, ucpRefusal, deals) })
		})
	}
}

// While a checkout is completed, the same request is told to come again, another one is refused,
// and another session goes on.
func TestCheckoutInFlight(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		preset         func(*idem.Options)
		refusal        func(*testing.T, answer) string
		same, conflict string
	}{
		"ACP": {idem.ACP, acpRefusal, `{"a":1.0}`, "422 idempotency_conflict"},
		"UCP": {idem.UCP, ucpRefusal, `{"a":1}`, "409 idempotency_conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMerchant(t, tc.preset, func(t *testing.T, m *merchant) {
				c := call{method: "POST", path: "/checkout_sessions/1/complete", user: "jane", header: http.Header{"Idempotency-Key": {key1}}, body: []byte(`{"a":1}`)}
				m.during = func() {
					twin := c
					twin.body = []byte(tc.same)
					if a := m.send(twin); a.status != 409 || tc.refusal(t, a) != "idempotency_in_flight" || a.value("Retry-After") == "" || a.value("Idempotency-Key") != key1 {
						t.Errorf("the same: %d %v %s", a.status, a.header, a.body)
					}
					m.play(t, tc.refusal, []deal{{complete, key1, `{"a":2}`, tc.conflict}, {"POST /checkout_sessions/2/complete", key1, `{"a":1}`, "200"}})
				}
				if a := m.send(c); a.status != 200 || m.effects != 2 {
					t.Errorf("the first: %d %s after %d effects", a.status, a.body, m.effects)
				}
			})
		})
	}
}

// What a commerce contract demands, no other option takes back.
func TestCommercePresetsRefuseWhatBreaksThem(t *testing.T) {
	t.Parallel()
	for _, preset := range []func(*idem.Options){idem.ACP, idem.UCP} {
		for option, breaks := range map[string]func(*idem.Options){
			"Retention": func(o *idem.Options) { o.Retention = 23 * time.Hour }, "ModeOpen": func(o *idem.Options) { o.Mode = idem.ModeOpen },
			"ModeOff": func(o *idem.Options) { o.Mode = idem.ModeOff }, "StatusURL": func(o *idem.Options) { o.StatusURL = "/operations/" },
		} {
			if said := panicOf(func() { idem.New(&idem.MemoryStore{}, preset, breaks) }); !strings.Contains(said, option) {
				t.Errorf("panicked with %q, want %s in it", said, option)
			}
		}
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
