package lambda_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

const shopOrigin, strangerOrigin = "https://shop.example", "https://shop.example.evil"

func shopCORS(o *idem.Options) {
	o.CORS = idem.CORS{Origins: []string{"http://localhost:3000", shopOrigin}, Credentials: true}
}

// from is c as a browser sends it for a page of this origin.
func (c call) from(origin string) call {
	c.header = c.header.Clone()
	if c.header["Origin"] = []string{origin}; origin == "" {
		delete(c.header, "Origin")
	}
	return c
}

// readable checks that a page of shopOrigin may read a.
func (a answer) readable(t *testing.T) {
	t.Helper()
	if a.value("Access-Control-Allow-Origin") != shopOrigin || a.value("Access-Control-Allow-Credentials") != "true" || a.value("Vary") != "Origin" {
		t.Errorf("%d can't be read by a listed page: %v", a.status, a.header)
	}
	shown := a.value("Access-Control-Expose-Headers")
	for _, name := range []string{"Idempotency-Key", "Idempotency-Expires", "Idempotency-Status", "Idempotent-Replayed", "Location", "Retry-After"} {
		if !strings.Contains(", "+shown+",", ", "+name+",") {
			t.Errorf("%d: %s is not exposed: %q", a.status, name, shown)
		}
	}
}

// closed checks that no page of another origin may read a.
func (a answer) closed(t *testing.T, vary string) {
	t.Helper()
	for name := range a.header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%d has %s: %q", a.status, name, a.header[name])
		}
	}
	if got := a.value("Vary"); got != vary {
		t.Errorf("%d: Vary is %q, want %q", a.status, got, vary)
	}
}

// Every answer that is the engine's own can be read by the pages that Options.CORS
// lists, through every adapter, and by no others; without the option nothing is
// added.
func TestCORSOfOwnAnswers(t *testing.T) {
	t.Parallel()
	inTheWay := func(edit func(*store.Record)) func() store.Store {
		return func() store.Store { return &held{edit: edit} }
	}
	for name, tc := range map[string]struct {
		store  func() store.Store
		opt    func(*idem.Options)
		before func(*call) // a request that is answered by the handler, and comes before
		edit   func(*call)
		h      handler
		status int
		code   string
		only   string // the adapters that have it: "": all
	}{
		"key missing":     {edit: func(c *call) { delete(c.header, "Idempotency-Key") }, status: 400, code: "idempotency_key_missing"},
		"key invalid":     {edit: func(c *call) { c.header["Idempotency-Key"] = []string{"schlüssel"} }, status: 400, code: "idempotency_key_invalid"},
		"request invalid": {opt: func(o *idem.Options) { o.Fingerprint.Func, o.Fingerprint.FuncName = failing, "fails" }, status: 400, code: "request_invalid"},
		"too large": {opt: func(o *idem.Options) {
			o.KeyFrom = func(*idem.Request) (string, error) { return "", idem.ErrTooLarge }
		}, edit: func(c *call) { delete(c.header, "Idempotency-Key") }, status: 413, code: "request_too_large"},
		"too large to read": {opt: func(o *idem.Options) { o.MaxRequest = 4 }, status: 413, code: "request_too_large", only: "net http"},
		"mismatch":          {before: func(c *call) { c.body = []byte("{}") }, status: 422, code: "idempotency_key_mismatch"},
		"in flight":         {store: inTheWay(func(*store.Record) {}), status: 409, code: "idempotency_in_flight"},
		"accepted":          {store: inTheWay(func(*store.Record) {}), opt: accepting, status: 202},
		"stuck":             {store: inTheWay(func(r *store.Record) { r.State = store.Stuck }), status: 409, code: "idempotency_stuck"},
		"corrupt":           {store: inTheWay(func(r *store.Record) { r.State = "odd" }), status: 500, code: "record_corrupt"},
		"no answer":         {store: inTheWay(func(r *store.Record) { r.State, r.Response = store.Done, nil }), status: 500, code: "record_corrupt"},
		"no secret":         {store: inTheWay(func(r *store.Record) { r.Secret = "old" }), status: 503, code: "idempotency_incomparable"},
		"no scheme":         {store: inTheWay(func(r *store.Record) { r.Scheme = "json" }), status: 503, code: "idempotency_incomparable"},
		"not kept":          {store: inTheWay(func(r *store.Record) { r.State, r.Overflow = store.Done, &store.Overflow{} }), status: 410, code: "idempotency_answer_not_kept"},
		"overtaken":         {store: func() store.Store { return &fenced{} }, status: 409, code: "idempotency_in_flight"},
		"no time": {opt: func(o *idem.Options) {
			o.KeyFrom = func(*idem.Request) (string, error) { return "", idem.ErrNoTime }
		}, status: 503, code: "no_time_left"},
		"store down": {store: func() store.Store { return downStore{} }, status: 503, code: "store_unavailable"},
		"no scope": {
			opt: func(o *idem.Options) {
				o.Scope = func(context.Context, *idem.Request) (string, error) { return "", errBad }
			},
			status: 500, code: "scope_unknown",
		},
		"error": {h: func(context.Context, []byte) (idem.Response, error) { return idem.Response{}, errBad }, status: 500, code: "internal_error", only: "events"},
		"panic": {h: func(context.Context, []byte) (idem.Response, error) { panic("boom") }, status: 500, code: "internal_error"},
		"Problem's own headers": {opt: func(o *idem.Options) {
			shared := http.Header{"Access-Control-Allow-Origin": {"https://old.example"}, "Content-Type": {"application/problem+json"}}
			o.Problem = func(p idem.Problem) idem.Response {
				resp := idem.ProblemJSON(p)
				resp.Header = shared
				return resp
			}
		}, edit: func(c *call) { delete(c.header, "Idempotency-Key") }, status: 400, code: "idempotency_key_missing"},
	} {
		for _, d := range doors() {
			if tc.only == "net http" && d.name != tc.only || tc.only == "events" && d.name == "net http" {
				continue
			}
			t.Run(name+", "+d.name, func(t *testing.T) {
				t.Parallel()
				ask := func(origin string, optFns ...func(*idem.Options)) answer {
					t.Helper()
					st := store.Store(&idem.MemoryStore{})
					if tc.store != nil {
						st = tc.store()
					}
					optFns = append(optFns, func(o *idem.Options) {
						if tc.opt != nil {
							tc.opt(o)
						}
					})
					h := handler(created)
					if tc.h != nil {
						h = tc.h
					}
					send := d.open(t, idem.New(st, append([]func(*idem.Options){callertest.Anybody}, optFns...)...), h)
					c := newCall("k").from(origin)
					if tc.before != nil {
						first := c.from(origin)
						tc.before(&first)
						send(first).accepted(t, 201, "made: "+string(first.body), false)
					}
					if tc.edit != nil {
						tc.edit(&c)
					}
					a := send(c)
					if a.status != tc.status || tc.code != "" && a.code(t) != tc.code {
						t.Errorf("got %d %s, want %d %s", a.status, a.body, tc.status, tc.code)
					}
					return a
				}
				ask(shopOrigin, shopCORS).readable(t)
				if name == "Problem's own headers" {
					return // without the option they are Problem's
				}
				ask(shopOrigin).closed(t, "")
				for _, origin := range []string{strangerOrigin, "null", "", shopOrigin + ", " + shopOrigin} {
					ask(origin, shopCORS).closed(t, "Origin")
				}
				all := ask(strangerOrigin, func(o *idem.Options) { o.CORS.Origins = []string{"*"} })
				if all.value("Access-Control-Allow-Origin") != "*" || all.value("Access-Control-Allow-Credentials") != "" || all.value("Vary") != "" {
					t.Errorf("any origin: %v", all.header)
				}
			})
		}
	}
}

func failing(*idem.Request) ([]byte, error) { return nil, errBad }

func accepting(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" }

// An event whose body can't be decoded is refused before there is a request.
func TestCORSOfUndecodable(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		bad := editedSource(s, func(ev map[string]any) { ev["body"], ev["isBase64Encoded"] = "@@@", true })
		a := bad.send(t, s.wrap(anEngine(shopCORS), created), newCall("k").from(shopOrigin))
		a.refused(t, 400, "request_invalid")
		a.readable(t)
	})
}

// What the handler has answered, first and replayed, is as if there were no option.
func TestCORSLeavesTheHandlersAnswers(t *testing.T) {
	t.Parallel()
	own := http.Header{"Content-Type": {"text/plain"}, "Access-Control-Allow-Origin": {"https://other.example"}, "Vary": {"Accept-Encoding"}}
	for _, d := range doors() {
		for name, h := range map[string]handler{
			"with headers of its own": func(context.Context, []byte) (idem.Response, error) {
				return idem.Response{Status: 201, Header: own.Clone(), Body: []byte("made")}, nil
			},
			"without": func(context.Context, []byte) (idem.Response, error) {
				return idem.Response{Status: 201, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("made")}, nil
			},
			"unstored": func(context.Context, []byte) (idem.Response, error) {
				return idem.Response{Status: 503, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("not now")}, nil
			},
		} {
			t.Run(name+", "+d.name, func(t *testing.T) {
				t.Parallel()
				play := func(optFns ...func(*idem.Options)) (answers []answer) {
					now := time.Unix(1_800_000_000, 0)
					send := d.open(t, idem.New(&idem.MemoryStore{}, append([]func(*idem.Options){callertest.Anybody}, append(optFns, func(o *idem.Options) { o.Now = func() time.Time { return now } })...)...), h)
					for _, c := range []call{newCall("k"), newCall("k"), on("", "GET", "/rides")} {
						answers = append(answers, send(c.from(shopOrigin)))
					}
					return answers
				}
				if d := cmp.Diff(play(), play(shopCORS), cmp.AllowUnexported(answer{})); d != "" {
					t.Errorf("the handler's answers change with the option (-without +with):\n%s", d)
				}
			})
		}
	}
}

// The answers of a router are nobody's engine's.
func TestCORSOfTheRouter(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		ask := func(c call, optFns ...func(*lambda.RouterOptions)) answer {
			r := s.shop(optFns...)
			r.route("GET /rides", says("all"))
			return s.send(t, r, c)
		}
		cors := func(o *lambda.RouterOptions) { o.CORS = idem.CORS{Origins: []string{shopOrigin}, Credentials: true} }
		for _, tc := range []struct {
			method, path string
			status       int
		}{{"POST", "/planes", 404}, {"POST", "/rides", 405}} {
			c := on("k", tc.method, tc.path)
			a := ask(c.from(shopOrigin), cors)
			if a.status != tc.status {
				t.Errorf("%s %s: got %d", tc.method, tc.path, a.status)
			}
			a.readable(t)
			ask(c.from(strangerOrigin), cors).closed(t, "Origin")
			ask(c.from(shopOrigin)).closed(t, "")
		}
		ask(on("", "GET", "/rides").from(shopOrigin), cors).closed(t, "") // the route's own
	})
}

// The status resource's words are the engine's too, but for a stored answer.
func TestCORSOfTheStatusResource(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		e := anEngine(accepting, shopCORS)
		resource := s.status(e)
		ask := func(method, key string) answer {
			return s.send(t, resource, on("", method, "/operations/"+key).from(shopOrigin))
		}
		for _, a := range []answer{ask("GET", "unknown"), ask("POST", "k")} {
			a.readable(t)
		}
		post := on("k", "POST", "/rides").from(shopOrigin)
		send := s.wrap(e, func(ctx context.Context, body []byte) (idem.Response, error) {
			open := ask("GET", "k")
			if open.status != 202 {
				t.Errorf("while open: %d %s", open.status, open.body)
			}
			open.readable(t)
			return created(ctx, body)
		})
		first := s.send(t, send, post)
		done := ask("GET", "k")
		if first.status != 201 || done.status != 201 || done.value("Idempotent-Replayed") != "true" {
			t.Errorf("done: %d, then %d %v", first.status, done.status, done.header)
		}
		done.closed(t, "")
	})
}
