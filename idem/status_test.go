package idem_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A status that can't be had is an error, and not that the key is unknown.
func TestStatusThatCannotBeHad(t *testing.T) {
	t.Parallel()
	loads := func(rec *store.Record, errs ...error) func(context.Context, string) (*store.Record, error) {
		n := 0
		return func(context.Context, string) (*store.Record, error) {
			if n++; n > len(errs) {
				return rec, nil
			}
			return nil, errs[n-1]
		}
	}
	twoPlaces := func(o *idem.Options) { o.Former = &idem.Former{OneScope: true} }
	for name, tt := range map[string]struct {
		opt  func(*idem.Options)
		load func(context.Context, string) (*store.Record, error)
		left time.Duration
		want error
	}{
		"the store is down":          {asIs, loads(nil, errDown), time.Minute, idem.ErrUnavailable},
		"one of two reads fails":     {twoPlaces, loads(nil, errDown), time.Minute, idem.ErrUnavailable},
		"the record can't be judged": {asIs, loads(&store.Record{State: store.Done}), time.Minute, idem.ErrCorrupt},
		"it isn't known whose it was": {func(o *idem.Options) {
			o.Former = &idem.Former{Scope: func(context.Context, *idem.Request) (string, error) { return "", errDown }}
		}, loads(nil), time.Minute, errDown},
		"the engine is off":            {func(o *idem.Options) { o.Mode = idem.ModeOff }, loads(nil, errDown), time.Minute, idem.ErrUnprotected},
		"nobody has used it":           {asIs, loads(nil), time.Minute, idem.ErrKeyUnknown},
		"nobody has used it, anywhere": {twoPlaces, loads(nil), time.Minute, idem.ErrKeyUnknown},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), tt.left)
		defer cancel()
		e := idem.New(&spoilt{Store: &idem.MemoryStore{}, load: tt.load}, tt.opt)
		if res, err := e.Status(ctx, ordered("")); !errors.Is(err, tt.want) {
			t.Errorf("%s: %+v, %v, want %v", name, res, err, tt.want)
		}
	}
}

// Without a status resource, a verified caller's program still sees the operation: the
// answer has no place to go to.
func TestStatusWithoutAResource(t *testing.T) {
	t.Parallel()
	clock := idemtest.NewClock()
	var mem idem.MemoryStore
	e := idem.New(&mem, func(o *idem.Options) { o.Now = clock.Now })
	r := ordered("{}")
	_, err := e.Do(t.Context(), r, func(context.Context) (idem.Response, error) {
		if res, err := e.Status(t.Context(), r); err != nil || res.Status != 202 || res.Header["Location"] != nil {
			t.Errorf("in flight: %+v, %v", res, err)
		}
		clock.Advance(time.Hour)
		_, err := e.Status(t.Context(), r)
		if lost, ok := errors.AsType[*idem.Error](err); !ok || !errors.Is(err, idem.ErrUnfinished) || lost.RetryAfter != 0 {
			t.Errorf("after its lease: %v", err)
		}
		return idem.Response{Status: 201}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := e.Status(t.Context(), r); err != nil || res.Status != 201 || !res.Replayed {
		t.Errorf("at the end: %+v, %v", res, err)
	}
	if res := e.ServeStatus(t.Context(), idem.Request{Method: "GET", Path: "/" + r.Key, Identity: r.Identity}); res.Status != 400 {
		t.Errorf("a path is no key: %d %s", res.Status, res.Body)
	}
}

// The status is read, in the contract's words, also by a page of another origin.
func TestStatusIsOfTheContract(t *testing.T) {
	t.Parallel()
	const origin = "https://shop.example"
	e := idem.New(&idem.MemoryStore{}, idem.StripeV1, func(o *idem.Options) {
		o.StatusURL, o.CORS = "/operations/", idem.CORS{Origins: []string{origin}}
		o.Scope = func(context.Context, *idem.Request) (string, error) { return "jane", nil }
	})
	r := request
	r.Key, r.Path = "a-random-key-of-an-order", "/orders"
	_, err := e.Do(t.Context(), r, func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Header: http.Header{"Request-Id": {"req_1"}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]int{"GET": 201, "HEAD": 201, "POST": 405, "DELETE": 405} {
		res := e.ServeStatus(t.Context(), idem.Request{
			Method: method, Path: "/operations/" + r.Key, Header: http.Header{"Origin": {origin}},
		})
		if res.Status != want || want == 405 && res.Header.Get("Access-Control-Allow-Origin") != origin || want == 201 && res.Header.Get("Original-Request") != "req_1" {
			t.Errorf("%s: %d %v", method, res.Status, res.Header)
		}
	}
}

// In 202 mode the status resource finally returns the first request's
// answer, and only its own scope sees the status.
func TestAcceptedAndStatus(t *testing.T) {
	t.Parallel()
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
	const key = "a/b key?"
	req := keyed(`"` + key + `"`)
	req.Header.Set("Idempotency-Key", "a/b-key?")
	status := func(scope, path string) idem.Response {
		return e.ServeStatus(t.Context(), idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: scope}, Method: "GET", Path: path})
	}
	if r := status("s", "/operations/a%2Fb-key%3F"); r.Status != 404 {
		t.Errorf("before: %d", r.Status)
	}
	res, err := e.Serve(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "made", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		second, err := e.Serve(context.WithoutCancel(t.Context()), req, nil)
		if err != nil || second.Status != 202 || second.Header.Get("Location") != "/operations/a%2Fb-key%3F" || second.Header.Get("Retry-After") == "" {
			t.Errorf("second: %+v, %v", second, err)
		}
		r := status("s", second.Header.Get("Location"))
		if r.Status != 202 || !strings.Contains(string(r.Body), `"recovery_point":"made"`) {
			t.Errorf("while open: %d %s", r.Status, r.Body)
		}
		return idem.Response{Status: 201, Body: []byte("done")}, nil
	})
	if err != nil || res.Status != 201 {
		t.Fatal(res, err)
	}
	for _, path := range []string{"/operations/a%2Fb-key%3F", "/prod/operations/a%2Fb-key%3F"} {
		if r := status("s", path); r.Status != 201 || string(r.Body) != "done" || r.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("at the end: %d %s %v", r.Status, r.Body, r.Header)
		}
	}
	if r := status("other tenant", "/operations/a%2Fb-key%3F"); r.Status != 404 {
		t.Errorf("another tenant sees %d", r.Status)
	}
	if r := status("s", "/elsewhere/x"); r.Status != 400 {
		t.Errorf("no key in the path: %d", r.Status)
	}
}

// Every key has a status resource that a client can reach, even if a path would
// change the key: clients and muxes take "." and ".." for folders.
func TestStatusOfEveryKey(t *testing.T) {
	t.Parallel()
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) {
		o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/"
		o.Scope = func(context.Context, *idem.Request) (string, error) { return "s", nil }
	})
	mux := http.NewServeMux()
	mux.Handle("GET /operations/", e.StatusHandler())
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	base, err := url.Parse(srv.URL + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		".", "..", "...", "./", "../", "a/../b", "/", "//", "%2e%2e", "..;", `".."`, `"."`, `"`, `""`, `\`, `..\`, "a b", " ", "?", "#", "a;b", "a,b", "~",
	} {
		r := keyed(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`)
		var location string
		_, err := e.Serve(t.Context(), r, func(context.Context) (idem.Response, error) {
			second, err := e.Serve(context.WithoutCancel(t.Context()), r, nil)
			location = second.Header.Get("Location")
			return idem.Response{Status: 201, Body: []byte("answer of " + key)}, err
		})
		if err != nil || location == "" {
			t.Errorf("%q: %q, %v", key, location, err)
			continue
		}
		at, err := base.Parse(location) // resolves dots, as clients do
		if err != nil {
			t.Errorf("%q: %v", key, err)
			continue
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.String(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 201 || string(body) != "answer of "+key {
			t.Errorf("%q at %s: %d %s, %v", key, location, resp.StatusCode, body, err)
		}
	}
}

// The key, which is in the path of the status resource, is in no log and no event, though
// some adapters know no other route than the path.
func TestStatusLogsNoKey(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	down := &spoilt{Store: &idem.MemoryStore{}, load: func(context.Context, string) (*store.Record, error) { return nil, store.ErrCorrupt }}
	for _, s := range []store.Store{&idem.MemoryStore{}, down} {
		e := idem.New(s, func(o *idem.Options) {
			o.InFlight, o.StatusURL, o.Logger, o.Hooks = idem.InFlightAccept, "/operations/", logger, idem.Log(logger)
		})
		const path = "/operations/a-secret-key"
		for _, whose := range []idem.Identity{{}, {Kind: "jwt", Subject: "ann"}} { // one of them is refused
			e.ServeStatus(t.Context(), idem.Request{Identity: whose, Method: "GET", Path: path, Route: "GET " + path})
		}
	}
	if text := log.String(); strings.Contains(text, "a-secret-key") || !strings.Contains(text, "GET /operations/{key}") {
		t.Errorf("the log is %s", text)
	}
}

func TestStatusHandler(t *testing.T) {
	t.Parallel()
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.StatusURL = "/operations/" })
	mux := http.NewServeMux()
	mux.Handle("/operations/", e.StatusHandler())
	mux.Handle("/orders", e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })))
	post := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("{}"))
	post.Header.Set("Idempotency-Key", "k1")
	for _, tc := range []struct {
		req  *http.Request
		want int
	}{
		{httptest.NewRequest(http.MethodGet, "/operations/k1", nil), 404},
		{post, 201},
		{httptest.NewRequest(http.MethodGet, "/operations/k1", nil), 201},
		{httptest.NewRequest(http.MethodPost, "/operations/k1", nil), 405},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, tc.req)
		if w.Code != tc.want {
			t.Errorf("%s %s: %d, want %d", tc.req.Method, tc.req.URL, w.Code, tc.want)
		}
	}
}

// The status resource begins nothing, so no rule for new keys refuses a known one.
func TestStatusOfAKnownKey(t *testing.T) {
	t.Parallel()
	var st idem.MemoryStore
	r := idem.Request{Key: "order-7", Method: "POST", Path: "/charges", Identity: idem.Identity{Kind: "jwt", Subject: "jane"}}
	if _, err := idem.New(&st).Do(t.Context(), r, answers(201)); err != nil {
		t.Fatal(err)
	}
	res, err := idem.New(&st, func(o *idem.Options) { o.MinKey, o.StatusURL = 22, "/operations/" }).Status(t.Context(), r)
	if err != nil || res.Status != 201 {
		t.Errorf("got %d, %v, want 201", res.Status, err)
	}
}

// A 202 is told like a refusal, and a page of another origin can read it.
func TestAcceptedIsToldAndReadable(t *testing.T) {
	t.Parallel()
	var told []string
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
		o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/"
		o.CORS = idem.CORS{Origins: []string{"https://shop.example"}}
		o.Hooks.InFlight = func(_ context.Context, ev idem.Event) { told = append(told, ev.Name) }
	})
	r := request
	r.Header = http.Header{"Origin": {"https://shop.example"}}
	_, err := e.Serve(t.Context(), r, func(context.Context) (idem.Response, error) {
		res, err := e.Serve(t.Context(), r, never(t))
		if res.Status != 202 || res.Header.Get("Access-Control-Allow-Origin") != "https://shop.example" || !slices.Equal(told, []string{"InFlight"}) {
			t.Errorf("%+v, %v, told %q", res, err, told)
		}
		return idem.Response{}, err
	})
	if err != nil {
		t.Error(err)
	}
}
