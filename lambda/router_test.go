package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/envelope"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// shop adds routes to a router, whatever its events are.
type shop interface {
	awslambda.Handler
	keyed(pattern string, e *idem.Engine, h handler, optFns ...func(*lambda.HandlerOptions))
	route(pattern string, h handler)
	before(pattern string, e *idem.Engine, h handler, refuse func() *idem.Response)
}

type shopOf[Ev, Re any] struct {
	*lambda.Router[Ev, Re]
	a lambda.Adapter[Ev, Re]
}

func (s shopOf[Ev, Re]) of(h handler) func(context.Context, Ev) (Re, error) {
	return func(ctx context.Context, ev Ev) (re Re, err error) {
		req, _ := s.a.Request(ctx, ev)
		resp, err := h(ctx, req.Body)
		if err != nil {
			return re, err
		}
		return s.a.Reply(resp), nil
	}
}

func (s shopOf[Ev, Re]) keyed(pattern string, e *idem.Engine, h handler, optFns ...func(*lambda.HandlerOptions)) {
	s.Keyed(pattern, e, s.of(h), optFns...)
}

func (s shopOf[Ev, Re]) route(pattern string, h handler) { s.Route(pattern, s.of(h)) }

func (s shopOf[Ev, Re]) before(pattern string, e *idem.Engine, h handler, refuse func() *idem.Response) {
	s.Keyed(pattern, e, s.of(h)).Before(func(context.Context, Ev) (*Re, error) {
		if resp := refuse(); resp != nil {
			return new(s.a.Reply(*resp)), nil
		}
		return nil, nil
	})
}

// shop is a router of s's events.
func (s source) shop(optFns ...func(*lambda.RouterOptions)) shop {
	switch s.name {
	case "HTTPAPI":
		return shopOf[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse]{lambda.NewRouter(lambda.HTTPAPI, optFns...), lambda.HTTPAPI}
	case "REST":
		return shopOf[events.APIGatewayProxyRequest, events.APIGatewayProxyResponse]{lambda.NewRouter(lambda.REST, optFns...), lambda.REST}
	case "FunctionURL":
		return shopOf[events.LambdaFunctionURLRequest, events.LambdaFunctionURLResponse]{lambda.NewRouter(lambda.FunctionURL, optFns...), lambda.FunctionURL}
	}
	return shopOf[events.ALBTargetGroupRequest, events.ALBTargetGroupResponse]{lambda.NewRouter(lambda.ALB, optFns...), lambda.ALB}
}

func says(text string) handler {
	return func(ctx context.Context, body []byte) (idem.Response, error) {
		return idem.Response{Status: 200, Body: []byte(text + lambda.PathValue(ctx, "id"))}, nil
	}
}

// on is a call of another method and path.
func on(key, method, path string) call {
	c := newCall(key)
	c.method, c.path = method, path
	return c
}

func TestRouterFindsItsRoute(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		r := s.shop()
		engine := anEngine()
		r.keyed("POST /rides", engine, says("book"))
		r.keyed("POST\t/rides/{id}/refunds", anEngine(), says("refund "))
		r.route("GET /rides/{id}", says("show "))
		r.route("GET /rides/latest", says("latest"))
		r.route("/files/{id...}", says("file "))
		r.route("/{$}", says("home"))
		for _, tc := range []struct {
			method, path string
			status       int
			body, allow  string
			keyed        bool
		}{
			{"POST", "/rides", 200, "book", "", true},
			{"POST", "/rides/7/refunds", 200, "refund 7", "", true},
			{"GET", "/rides/7", 200, "show 7", "", false},
			{"GET", "/rides/latest", 200, "latest", "", false},
			{"GET", "/rides/z%C3%BCrich%20hb", 200, "show zürich hb", "", false},
			{"DELETE", "/files/a/b", 200, "file a/b", "", false},
			{"GET", "/", 200, "home", "", false},
			{"POST", "/planes", 404, "", "", false},
			{"POST", "/rides/", 404, "", "", false},
			{"POST", "//rides", 404, "", "", false},
			{"POST", "/x/../rides", 404, "", "", false},
			{"GET", "/files", 404, "", "", false},
			{"POST", "/RIDES", 404, "", "", false},
			{"DELETE", "/rides", 405, "", "POST", false},
			{"POST", "/rides/7", 405, "", "GET, HEAD", false},
		} {
			a := s.send(t, r, on("k-"+tc.path, tc.method, tc.path))
			if a.status != tc.status || tc.body != "" && string(a.body) != tc.body || a.value("Allow") != tc.allow {
				t.Errorf("%s %s: got %d %s, Allow %q; want %d %s, %q", tc.method, tc.path, a.status, a.body, a.value("Allow"), tc.status, tc.body, tc.allow)
			}
			if again := s.send(t, r, on("k-"+tc.path, tc.method, tc.path)); (again.value(idem.ReplayedHeader) == "true") != tc.keyed {
				t.Errorf("%s %s again: replayed %q, want %t", tc.method, tc.path, again.value(idem.ReplayedHeader), tc.keyed)
			}
			if code := map[int]string{404: "route_not_found", 405: "method_not_allowed"}[tc.status]; code != "" {
				a.refused(t, tc.status, code)
			}
		}
	})
}

// An escaped slash is no part of a path's structure, where the source shows it.
func TestRouterKeepsEscapedSlashes(t *testing.T) {
	t.Parallel()
	each(t, []source{rest, functionURL, albMulti}, func(t *testing.T, s source) {
		r := s.shop()
		r.route("GET /rides/{id}", says("show "))
		if a := s.send(t, r, on("", "GET", "/rides/a%2Fb")); string(a.body) != "show a/b" {
			t.Errorf("got %d %s", a.status, a.body)
		}
	})
}

// An abandoned request ends in the handler that its record names, through the one
// door of its function, and in no other route's.
func TestRouterCompletesInTheRightRoute(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		now := time.Now()
		stX := new(idem.MemoryStore)
		own := func(namespace string) func(*idem.Options) {
			return func(o *idem.Options) { o.Namespace, o.Function = namespace, "shop" }
		}
		// deploy is the function as one process has it: with one engine, or one each.
		deploy := func(st store.Store, same bool, dies func()) (shop, map[string]int) {
			r, runs := s.shop(), make(map[string]int)
			engine := resumable(st, &now, own("shop"))
			for _, name := range []string{"charges", "refunds", "rides/{id}/tips"} {
				e := engine
				if !same {
					e = resumable(st, &now, own("shop"))
				}
				if name == "refunds" && !same {
					e = resumable(st, &now, own("refunds"))
				}
				r.keyed("POST /"+name, e, func(ctx context.Context, body []byte) (idem.Response, error) {
					runs[name]++
					dies()
					return idem.Response{Status: 201, Body: fmt.Append(nil, name, " ", lambda.PathValue(ctx, "id"), string(body))}, nil
				})
			}
			return r, runs
		}
		for _, same := range []bool{true, false} {
			for i, path := range []string{"/charges", "/refunds", "/rides/7/tips"} {
				c := on(fmt.Sprintf("k%d-%t", i, same), "POST", path)
				faulty := idemtest.Faulty(stX, nil)
				dying, _ := deploy(faulty, same, faulty.Crash) // after the claim, before the first commit
				s.send(t, dying, c)
				now = now.Add(time.Hour)
				r, runs := deploy(stX, same, func() {})
				name := strings.Replace(path[1:], "7", "{id}", 1)
				if o := resume(t, r, open(t, stX)); o.Kind != envelope.Done {
					t.Fatalf("%s: %+v, want done", path, o)
				}
				if diff := cmp.Diff(map[string]int{name: 1}, runs); diff != "" {
					t.Errorf("%s: the handlers' runs (-want +got):\n%s", path, diff)
				}
				want := name + " " + map[bool]string{true: "7"}[strings.Contains(name, "{")] + goldenBody
				s.send(t, r, c).accepted(t, 201, want, true)
			}
		}
	})
}

// open is a ticket for the only operation in store that isn't done.
func open(t *testing.T, st *idem.MemoryStore) jobs.Ticket {
	t.Helper()
	var all []jobs.Ticket
	for _, r := range st.Records() {
		if r.State == store.Open {
			all = append(all, state.TicketFor(r))
		}
	}
	if len(all) != 1 {
		t.Fatalf("%d open records, want 1", len(all))
	}
	return all[0]
}

// A route that has become another one, or is gone.
func TestRouterAfterAChange(t *testing.T) {
	t.Parallel()
	s := httpAPI
	abandon := func(t *testing.T, now *time.Time, pattern, path string, optFns ...func(*lambda.HandlerOptions)) *idem.MemoryStore {
		t.Helper()
		st := new(idem.MemoryStore)
		faulty := idemtest.Faulty(st, nil)
		r := s.shop()
		r.keyed(pattern, resumable(faulty, now), func(context.Context, []byte) (idem.Response, error) {
			faulty.Crash()
			return idem.Response{}, errors.New("died")
		}, optFns...)
		s.send(t, r, on("k", "POST", path))
		*now = now.Add(time.Hour)
		return st
	}
	accepts := func(names ...string) func(*lambda.HandlerOptions) {
		return func(o *lambda.HandlerOptions) {
			for _, name := range names {
				o.Accepts = append(o.Accepts, store.HandlerID{Name: name})
			}
		}
	}
	for name, tc := range map[string]struct {
		before, path string
		name         func(*lambda.HandlerOptions)
		after        string
		opt          func(*lambda.HandlerOptions)
		want         envelope.Kind
		body         string
	}{
		"unchanged":                   {"POST /a", "/a", named("POST /a"), "POST /a", accepts(), envelope.Done, "new "},
		"another pattern":             {"POST /a", "/a", named("POST /a"), "POST /b", accepts(), envelope.NotMine, ""},
		"another pattern, declared":   {"POST /a", "/a", named("POST /a"), "POST /b", accepts("x", "POST /a"), envelope.Done, "new "},
		"another pattern, same name":  {"POST /a", "/a", named("make"), "POST /b", named("make"), envelope.Done, "new "},
		"a name where there was none": {"POST /a", "/a", named("POST /a"), "POST /a", named("make"), envelope.NotMine, ""},
		"another wildcard's name":     {"POST /a/{x}", "/a/7", named("make"), "POST /a/{id}", named("make"), envelope.Done, "new 7"},
		"a path that doesn't match":   {"POST /a/{id}", "/a/7", named("make"), "POST /b/{id}", named("make"), envelope.Failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			st := abandon(t, &now, tc.before, tc.path, tc.name)
			before := open(t, st)
			r := s.shop()
			r.keyed(tc.after, resumable(st, &now), says("new "), tc.opt)
			o := resume(t, r, before)
			if o.Kind != tc.want {
				t.Errorf("got %+v, want %s", o, tc.want)
			}
			switch {
			case tc.want == envelope.NotMine && open(t, st) != before:
				t.Error("the record was written")
			case tc.want == envelope.Done:
				for _, rec := range st.Records() {
					if string(rec.Response.Body) != tc.body {
						t.Errorf("answered %s, want %s", rec.Response.Body, tc.body)
					}
				}
			}
		})
	}
}

// What is refused before the key is looked at leaves the key new.
func TestRouterBefore(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		store := new(idem.MemoryStore)
		refusal := &idem.Response{Status: 422, Body: []byte("no")}
		r := s.shop()
		h, runs := counted(created)
		r.before("POST /rides", idem.New(store, callertest.Anybody), h, func() *idem.Response { return refusal })
		if a := s.send(t, r, newCall("k")); a.status != 422 || string(a.body) != "no" {
			t.Errorf("got %d %s", a.status, a.body)
		}
		if n := len(store.Records()); n != 0 {
			t.Errorf("%d records", n)
		}
		refusal = nil
		s.send(t, r, newCall("k")).accepted(t, 201, createdBody, false)
		ran(t, runs, 1)
	})
	fails := lambda.NewRouter(lambda.HTTPAPI)
	fails.Keyed("POST /rides", anEngine(), func(context.Context, v2Request) (re v2Response, _ error) {
		t.Error("the handler ran behind a check that failed")
		return re, nil
	}).Before(func(context.Context, v2Request) (*v2Response, error) { return nil, errBad })
	if re, err := fails.Handle(t.Context(), post("k", "")); !errors.Is(err, errBad) || re.StatusCode != 0 {
		t.Errorf("a check that fails: got %+v, %v", re, err)
	}
}

// A PATCH isn't idempotent, so both halves key it; a route for any method says on the
// others that it protects none.
func TestRouterProtectsPATCH(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		r := s.shop()
		h, runs := counted(created)
		r.keyed("/wallets/{id}", anEngine(), h)
		for i := range 3 {
			s.send(t, r, on("k", "PATCH", "/wallets/1")).accepted(t, 201, createdBody, i > 0)
		}
		ran(t, runs, 1)
		keyless := on("", "PATCH", "/wallets/1")
		keyless.header = http.Header{}
		s.send(t, r, keyless).refused(t, 400, "idempotency_key_missing")
		for range 2 {
			if a := s.send(t, r, on("k", "PUT", "/wallets/1")); a.value("Idempotency-Status") != "ignored" || a.status != 201 {
				t.Errorf("PUT: %d, %s %q, want ignored", a.status, "Idempotency-Status", a.value("Idempotency-Status"))
			}
		}
		ran(t, runs, 3)
	})
}

// Another source's events are an error, as they are to a wrapped handler, and so
// is an envelope for a function that completes nothing.
func TestRouterRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	r := httpAPI.shop()
	r.route("GET /a", says(""))
	for _, payload := range []string{`{}`, `null`, `{"Records":[{"eventSource":"aws:sqs"}]}`, `{"samekey":{}}`, string(rest.payload(t, newCall("k")))} {
		if out, err := r.Invoke(t.Context(), []byte(payload)); err == nil {
			t.Errorf("%.60s: answered %s", payload, out)
		} else if errors.Is(err, lambda.ErrEvent) == (payload == `{"samekey":{}}`) {
			t.Errorf("%.60s: got %v", payload, err)
		}
	}
	if o := resume(t, r, jobs.Ticket{PK: "v1##x", Owner: "o", Ver: 1}); o.Kind != envelope.NotMine {
		t.Errorf("got %+v", o)
	}
}

// The host of a pattern counts.
func TestRouterHosts(t *testing.T) {
	t.Parallel()
	r := lambda.NewRouter(lambda.HTTPAPI)
	r.Route("GET shop.example/a", func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusOK, Body: "shop"}, nil
	})
	for host, want := range map[string]string{"shop.example": "shop", "other.example": "route_not_found"} {
		ev := events.APIGatewayV2HTTPRequest{RawPath: "/a", Headers: map[string]string{"host": host}}
		ev.RequestContext.HTTP.Method = "GET"
		if re, err := r.Handle(t.Context(), ev); err != nil || !strings.Contains(re.Body, want) {
			t.Errorf("%s: %+v, %v", host, re, err)
		}
		ev.RequestContext.HTTP.Method = "POST"
		if re, err := r.Handle(t.Context(), ev); host == "shop.example" && (err != nil || !strings.Contains(re.Body, "method_not_allowed") || re.Headers["Allow"] != "GET, HEAD") {
			t.Errorf("POST to %s: %+v, %v", host, re, err)
		}
	}
}

// asked counts how often a store is asked for an operation to take over.
type asked struct {
	idem.MemoryStore
	n int
}

func (a *asked) Take(ctx context.Context, t store.Take) (*store.Record, bool, error) {
	a.n++
	return a.MemoryStore.Take(ctx, t)
}

// An engine is asked once for a ticket, however many of its routes there are; an adapter
// that makes no events completes nothing.
func TestRouterAsksEachEngineOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	first, second := new(asked), new(asked)
	deploy := func(api lambda.Adapter[v2Request, v2Response]) *lambda.Router[v2Request, v2Response] {
		r := lambda.NewRouter(api)
		one, two := resumable(first, &now), resumable(second, &now)
		for pattern, e := range map[string]*idem.Engine{"POST /a": one, "POST /b": one, "POST /c": two} {
			r.Keyed(pattern, e, func(context.Context, v2Request) (re v2Response, _ error) { return re, nil })
		}
		return r
	}
	if o := resume(t, deploy(lambda.HTTPAPI), jobs.Ticket{PK: "v1##x", Owner: "o", Ver: 1}); o.Kind != envelope.Moved || first.n != 1 || second.n != 1 {
		t.Errorf("got %+v after %d and %d times", o, first.n, second.n)
	}
	api := lambda.HTTPAPI
	api.Event = nil
	if o := resume(t, deploy(api), jobs.Ticket{PK: "v1##x", Owner: "o", Ver: 1}); o.Kind != envelope.Failed || first.n+second.n != 2 {
		t.Errorf("without events: got %+v after %d times", o, first.n+second.n)
	}
}
