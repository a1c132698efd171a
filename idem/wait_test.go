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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func keyed(key string) idem.Request {
	return idem.Request{
		Method: "POST", Path: "/orders", Route: "POST /orders", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Body: []byte("{}"),
		Header: http.Header{"Idempotency-Key": {key}},
	}
}

func slow(d time.Duration, runs *atomic.Int64) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		runs.Add(1)
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return idem.Response{}, ctx.Err()
		}
		return idem.Response{Status: 201, Body: []byte("made")}, nil
	}
}

// Bad input 16, R26: a thousand equal requests at once, in each mode.
func TestBadInput16ThousandDuplicatesInEachMode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt  func(*idem.Options)
		want map[int]bool // statuses of requests that did not run
	}{
		"refuse": {func(o *idem.Options) { o.InFlight = idem.InFlightRefuse }, map[int]bool{409: true, 201: true}},
		"wait":   {func(o *idem.Options) { o.InFlight = idem.InFlightWait }, map[int]bool{201: true}},
		"accept": {func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" }, map[int]bool{202: true, 201: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := idem.New(new(idem.MemoryStore), callertest.Anybody, tc.opt)
				var runs atomic.Int64
				var wg sync.WaitGroup
				for range 1000 {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
						defer cancel()
						res, err := e.Serve(ctx, keyed("k"), slow(3*time.Second, &runs))
						if err != nil || !tc.want[res.Status] {
							t.Errorf("%+v, %v", res, err)
						}
						if res.Status == 201 && string(res.Body) != "made" {
							t.Errorf("another answer: %q", res.Body)
						}
					})
				}
				wg.Wait()
				if runs.Load() != 1 {
					t.Errorf("ran %d times", runs.Load())
				}
			})
		})
	}
}

// A10 in wait mode, and its limits.
func TestWaitForTheOtherAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first   func(*atomic.Int64) func(context.Context) (idem.Response, error)
		waitMax time.Duration
		limit   time.Duration // time of the second request
		status  int
		replay  bool
		runs    int64
		took    time.Duration // upper limit
	}{
		"answered":        {func(n *atomic.Int64) func(context.Context) (idem.Response, error) { return slow(3*time.Second, n) }, 10 * time.Second, 20 * time.Second, 201, true, 1, 5 * time.Second},
		"takes too long":  {func(n *atomic.Int64) func(context.Context) (idem.Response, error) { return slow(15*time.Second, n) }, 5 * time.Second, 20 * time.Second, 409, false, 1, 5 * time.Second},
		"too little time": {func(n *atomic.Int64) func(context.Context) (idem.Response, error) { return slow(15*time.Second, n) }, 10 * time.Second, 3 * time.Second, 409, false, 1, 3 * time.Second},
		"the first fails": {func(n *atomic.Int64) func(context.Context) (idem.Response, error) {
			return func(context.Context) (idem.Response, error) {
				<-time.After(2 * time.Second)
				if n.Add(1) == 1 {
					return idem.Response{}, errors.New("failed")
				}
				return idem.Response{Status: 201}, nil
			}
		}, 10 * time.Second, 20 * time.Second, 201, false, 2, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.InFlight, o.WaitMax = idem.InFlightWait, tc.waitMax })
				var runs atomic.Int64
				fn := tc.first(&runs)
				var wg sync.WaitGroup
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
					defer cancel()
					_, _ = e.Serve(ctx, keyed("k"), fn)
				})
				<-time.After(time.Millisecond)
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
				defer cancel()
				res, err := e.Serve(ctx, keyed("k"), fn)
				if err != nil || res.Status != tc.status || res.Replayed != tc.replay {
					t.Errorf("%d, replayed %t, %v", res.Status, res.Replayed, err)
				}
				if res.Status == 409 && res.Header.Get("Retry-After") == "" {
					t.Error("409 without Retry-After")
				}
				if took := time.Since(begun); took > tc.took {
					t.Errorf("took %v", took)
				}
				wg.Wait()
				if runs.Load() != tc.runs {
					t.Errorf("ran %d times", runs.Load())
				}
			})
		})
	}
}

// A10 in 202 mode: the status resource finally returns the first request's
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

// A29: every request runs, and the outcome that the request would have had is
// counted.
func TestObserveExecutesAndCounts(t *testing.T) {
	t.Parallel()
	counts := make(map[error]int)
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) {
		o.Mode = idem.ModeObserve
		o.Hooks.Observed = func(_ context.Context, ev idem.Event) {
			for _, err := range []error{idem.ErrKeyMissing, idem.ErrKeyInvalid, idem.ErrMismatch, idem.ErrReplay, idem.ErrInFlight} {
				if errors.Is(ev.Err, err) {
					counts[err]++
				}
			}
		}
	})
	runs := 0
	serve := func(key, body string, inner func()) {
		t.Helper()
		req := keyed(key)
		req.Body = []byte(body)
		if key == "" {
			req.Header = nil
		}
		res, err := e.Serve(t.Context(), req, func(context.Context) (idem.Response, error) {
			runs++
			if inner != nil {
				inner()
			}
			return idem.Response{Status: 201, Body: []byte(body)}, nil
		})
		if err != nil || res.Passed != (key == "") || res.Status != 201 || string(res.Body) != body {
			t.Errorf("key %q: %+v, %v", key, res, err)
		}
		want := http.Header(nil)
		if key != "" {
			want = http.Header{"Idempotency-Status": {"ignored"}}
		}
		if diff := cmp.Diff(want, res.Header); diff != "" {
			t.Errorf("key %q (-want +got):\n%s", key, diff)
		}
	}
	serve("k", "a", func() { serve2(t, e, "k", "a", &runs) })
	serve("k", "a", nil)
	serve("k", "b", nil)
	serve("", "c", nil)
	serve("no spaces", "d", nil)
	if runs != 6 {
		t.Errorf("%d runs", runs)
	}
	for err, want := range map[error]int{
		idem.ErrInFlight: 1, idem.ErrReplay: 1, idem.ErrMismatch: 1, idem.ErrKeyMissing: 1, idem.ErrKeyInvalid: 1,
	} {
		if counts[err] != want {
			t.Errorf("%v: counted %d times", err, counts[err])
		}
	}
}

// serve2 sends another client's request while a request is running.
func serve2(t *testing.T, e *idem.Engine, key, body string, runs *int) {
	t.Helper()
	req := keyed(key)
	req.Body = []byte(body)
	if _, err := e.Serve(context.WithoutCancel(t.Context()), req, func(context.Context) (idem.Response, error) {
		*runs++
		return idem.Response{Status: 201}, nil
	}); err != nil {
		t.Error(err)
	}
}

// A failure while observing must not fail the request.
func TestObserveSurvivesItsStore(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]store.Store{"down": downStore{}, "fine": new(idem.MemoryStore)} {
		e := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
		boom := errors.New("handler's own")
		if _, err := e.Serve(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) { return idem.Response{}, boom }); !errors.Is(err, boom) {
			t.Errorf("%s: %v", name, err)
		}
		declined := idem.Respond(idem.Response{Status: 402})
		if res, err := e.Serve(t.Context(), keyed("d"), func(context.Context) (idem.Response, error) { return idem.Response{}, declined }); err != nil || res.Status != 402 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if res, err := e.Serve(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) { return idem.Response{Status: 200}, nil }); err != nil || res.Status != 200 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

type downStore struct{}

var errDown = errors.New("table is gone")

func (downStore) Claim(context.Context, store.Claim) (*store.Record, error) { return nil, errDown }

func (downStore) Commit(context.Context, store.Commit) (*store.Record, error) { return nil, errDown }

func (downStore) Load(context.Context, string) (*store.Record, error) { return nil, errDown }

// A17 with tombstones: a late retry gets ErrExpired and charges nothing.
func TestTombstoneTellsThatTheKeyHasExpired(t *testing.T) {
	t.Parallel()
	var ahead time.Duration
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) {
		o.Retention, o.Tombstone = 24*time.Hour, 48*time.Hour
		o.Now = func() time.Time { return time.Now().Add(ahead) }
	})
	runs := 0
	serve := func() idem.Result {
		res, err := e.Serve(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) {
			runs++
			return idem.Response{Status: 201}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	serve()
	for _, tc := range []struct {
		at     time.Duration
		status int
		runs   int
	}{{23 * time.Hour, 201, 1}, {25 * time.Hour, 410, 1}, {71 * time.Hour, 410, 1}, {73 * time.Hour, 201, 2}} {
		ahead = tc.at
		if res := serve(); res.Status != tc.status || runs != tc.runs {
			t.Errorf("after %v: %d, %d runs", tc.at, res.Status, runs)
		}
	}
}

// What isn't protected says so.
func TestIgnoredKeysAreMarked(t *testing.T) {
	t.Parallel()
	e := idem.New(new(idem.MemoryStore), callertest.Anybody)
	get := keyed("k")
	get.Method = http.MethodGet
	fine := func(context.Context) (idem.Response, error) { return idem.Response{Status: 200}, nil }
	if res, _ := e.Serve(t.Context(), get, fine); res.Header.Get("Idempotency-Status") != "ignored" {
		t.Errorf("GET with a key: %v", res.Header)
	}
	get.Header = nil
	if res, _ := e.Serve(t.Context(), get, fine); res.Header.Get("Idempotency-Status") != "" {
		t.Errorf("GET without a key: %v", res.Header)
	}
	if res, _ := e.Serve(t.Context(), keyed("k"), fine); res.Header.Get("Idempotency-Status") != "" {
		t.Errorf("POST: %v", res.Header)
	}
	off := idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff })
	if res, _ := off.Serve(t.Context(), keyed("k"), fine); res.Header.Get("Idempotency-Status") != "ignored" {
		t.Errorf("POST to an engine that is disabled: %v", res.Header)
	}
	small := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.Mode, o.MaxRequest = idem.ModeObserve, 3 })
	created := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	if r := ask(t, small.Middleware(created), "POST", "k", "larger"); r.StatusCode != 201 || r.Header.Get("Idempotency-Status") != "ignored" {
		t.Errorf("POST that is watched, and too large to be read: %d %v", r.StatusCode, r.Header)
	}
}

// An engine that leaves a request to a handler says nothing of its key if another
// engine inside of the handler has protected the request.
func TestAnInnerEngineIsNotIgnored(t *testing.T) {
	t.Parallel()
	inner := idem.New(new(idem.MemoryStore), callertest.Anybody)
	off := idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff })
	watching := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
	created := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for name, outer := range map[string]*idem.Engine{"disabled": off, "watching": watching} {
		for i, want := range []string{"", "true"} {
			r := ask(t, outer.Middleware(inner.Middleware(created)), "POST", name, "")
			if r.Header.Get("Idempotency-Status") != "" || r.Header.Get(idem.ReplayedHeader) != want || r.Header.Get(idem.KeyHeader) != name {
				t.Errorf("%s, request %d through two middlewares: %v", name, i, r.Header)
			}
		}
		if r := ask(t, outer.Middleware(off.Middleware(created)), "POST", name, ""); r.Header.Get("Idempotency-Status") != "ignored" {
			t.Errorf("%s, around an engine that ignores the key too: %v", name, r.Header)
		}
		key := keyed(name + " in a handler")
		key.Header = http.Header{idem.KeyHeader: {name + "-in-a-handler"}}
		res, err := outer.Serve(t.Context(), key, func(ctx context.Context) (idem.Response, error) {
			res, err := off.Serve(ctx, key, func(ctx context.Context) (idem.Response, error) {
				res, err := inner.Serve(ctx, key, func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil })
				return res.Response, err
			})
			return res.Response, err
		})
		if err != nil || res.Header.Get("Idempotency-Status") != "" || res.Header.Get(idem.KeyHeader) == "" {
			t.Errorf("%s, through three handlers: %+v, %v", name, res, err)
		}
	}
}

// R10: the key in a hidden field of a form.
func TestFormKey(t *testing.T) {
	t.Parallel()
	multi := "--x\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\nabc\r\n--x\r\n" +
		"Content-Disposition: form-data; name=\"file\"; filename=\"token\"\r\n\r\nzzz\r\n--x--\r\n"
	for name, tc := range map[string]struct {
		kind, body, want string
		err              error
	}{
		"urlencoded":     {"application/x-www-form-urlencoded", "a=1&token=abc", "abc", nil},
		"with a charset": {"application/x-www-form-urlencoded; charset=utf-8", "token=a%2Fb", "a/b", nil},
		"multipart":      {"multipart/form-data; boundary=x", multi, "abc", nil},
		"missing":        {"application/x-www-form-urlencoded", "a=1", "", idem.ErrKeyMissing},
		"twice":          {"application/x-www-form-urlencoded", "token=1&token=2", "", idem.ErrKeyInvalid},
		"a bad type":     {"application/x-www-form-urlencoded; a", "token=abc", "", idem.ErrKeyMissing},
		"a file":         {"multipart/form-data; boundary=x", strings.Replace(multi, `name="file"`, `name="token"`, 1), "abc", nil},
		"no form":        {"application/json", `{"token":"abc"}`, "", idem.ErrKeyMissing},
		"no type":        {"", "token=abc", "", idem.ErrKeyMissing},
		"broken":         {"application/x-www-form-urlencoded", "token=%zz", "", idem.ErrRequest},
		"cut off":        {"multipart/form-data; boundary=x", multi[:60], "", idem.ErrRequest},
	} {
		got, err := idem.FormKey("token")(&idem.Request{Header: http.Header{"Content-Type": {tc.kind}}, Body: []byte(tc.body)})
		if got != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := idem.FormKey("token")(&idem.Request{Body: []byte("token=abc")}); !errors.Is(err, idem.ErrKeyMissing) {
		t.Errorf("no Content-Type: %v", err)
	}
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.KeyFrom = idem.FormKey("token") })
	var runs atomic.Int64
	req := keyed("")
	req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	req.Body = []byte("amount=5&token=abc")
	for i := range 2 {
		res, err := e.Serve(t.Context(), req, slow(0, &runs))
		if err != nil || res.Status != 201 || res.Replayed != (i > 0) {
			t.Errorf("%+v, %v", res, err)
		}
	}
	req.Body = []byte("amount=5")
	if res, _ := e.Serve(t.Context(), req, slow(0, &runs)); res.Status != 400 || runs.Load() != 1 {
		t.Errorf("without a token: %d, %d runs", res.Status, runs.Load())
	}
}

// A table that hangs takes little of an observed request's time, and the client
// learns that its key was ignored.
func TestObserveDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := idemtest.Faulty(new(idem.MemoryStore), func(ctx context.Context, _ idemtest.Call) idemtest.Fault {
			<-ctx.Done()
			return idemtest.Fault{Err: ctx.Err()}
		})
		e := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begun := time.Now()
		var waited time.Duration
		res, err := e.Serve(ctx, keyed("k"), func(context.Context) (idem.Response, error) {
			waited = time.Since(begun)
			return idem.Response{Status: 201}, nil
		})
		if err != nil || res.Status != 201 || res.Header.Get("Idempotency-Status") != "ignored" {
			t.Errorf("got %+v, %v", res, err)
		}
		if total := time.Since(begun); waited > 2500*time.Millisecond || total > 5*time.Second {
			t.Errorf("the handler began after %v, the answer came after %v", waited, total)
		}
	})
}

// countingLoads counts the reads of a store.
type countingLoads struct {
	idem.MemoryStore
	loads atomic.Int64
}

func (s *countingLoads) Load(ctx context.Context, pk string) (*store.Record, error) {
	s.loads.Add(1)
	return s.MemoryStore.Load(ctx, pk)
}

// waiting is a running request, for which other requests with its key wait.
type waiting struct {
	store  *countingLoads
	engine *idem.Engine
	runs   *atomic.Int64
	ctx    context.Context // 30 s
	first  *sync.WaitGroup
}

// waitFor begins a request whose handler runs for the given time, and ends the
// request with the test.
func waitFor(t *testing.T, handler time.Duration) waiting {
	t.Helper()
	s := waiting{store: &countingLoads{}, runs: new(atomic.Int64), first: new(sync.WaitGroup)}
	s.engine = idem.New(s.store, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	s.ctx = ctx
	s.first.Go(func() { _, _ = s.engine.Serve(ctx, keyed("k"), slow(handler, s.runs)) })
	t.Cleanup(func() {
		s.first.Wait()
		cancel()
	})
	synctest.Wait()
	return s
}

// wait sends the same request.
func (s waiting) wait(ctx context.Context) (idem.Result, error) {
	return s.engine.Serve(ctx, keyed("k"), slow(0, s.runs))
}

// A waiting attempt reads the record less and less often.
func TestWaitingBacksOff(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		handler time.Duration
		reads   int64
	}{
		{50 * time.Millisecond, 1}, {1800 * time.Millisecond, 5}, {9 * time.Second, 16},
	} {
		t.Run(tc.handler.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := waitFor(t, tc.handler)
				begun := time.Now()
				res, err := s.wait(s.ctx)
				if err != nil || !res.Replayed || s.runs.Load() != 1 {
					t.Errorf("replayed %t, %v, %d runs", res.Replayed, err, s.runs.Load())
				}
				if n := s.store.loads.Load(); n > tc.reads {
					t.Errorf("waiting for %v took %d reads, want at most %d", tc.handler, n, tc.reads)
				}
				if late := time.Since(begun) - tc.handler; late > 800*time.Millisecond {
					t.Errorf("the answer came %v late", late)
				}
			})
		})
	}
}

// A wait ends when its client has gone.
func TestWaitingEndsWithItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := waitFor(t, 8*time.Second)
		begun := time.Now()
		ctx, gone := context.WithCancel(s.ctx)
		defer time.AfterFunc(time.Second, gone).Stop()
		res, err := s.wait(ctx)
		if waited := time.Since(begun); err != nil || res.Status != http.StatusConflict || waited != time.Second {
			t.Errorf("%d, %v after %v, want in flight as soon as the client is gone", res.Status, err, waited)
		}
		s.first.Wait()
		if n := s.runs.Load(); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

// A record that a waiting request can't read or judge ends the wait: a retry would be told the same.
func TestWaitingEndsWithItsRecord(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"judge": nil, "read": store.ErrCorrupt} {
		synctest.Test(t, func(t *testing.T) {
			s := waitFor(t, 8*time.Second)
			damaged := &spoilt{Store: s.store, load: func(context.Context, string) (*store.Record, error) { return &store.Record{State: store.Done}, err }}
			e := idem.New(damaged, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait })
			begun := time.Now()
			res, err := e.Serve(s.ctx, keyed("k"), slow(0, s.runs))
			if waited := time.Since(begun); err != nil || res.Status != http.StatusInternalServerError || waited > time.Second {
				t.Errorf("%s: %d, %v after %v, want 500 at the first look", name, res.Status, err, waited)
			}
		})
	}
}

// Retry-After tells when a retry makes sense, not when the lease ends: most
// handlers take much less time.
func TestRetryAfterIsCapped(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  func(*idem.Options)
		left time.Duration // rest of the lease, with its margin
		want string
	}{
		"default":           {func(*idem.Options) {}, time.Minute, "5"},
		"less is left":      {func(*idem.Options) {}, 3500 * time.Millisecond, "4"},
		"almost none":       {func(*idem.Options) {}, 300 * time.Millisecond, "1"},
		"an option":         {func(o *idem.Options) { o.MaxRetryAfter = 20 * time.Second }, time.Minute, "20"},
		"as long as it may": {func(o *idem.Options) { o.MaxRetryAfter = time.Hour }, time.Minute, "60"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var st idem.MemoryStore
				held, _ := annsRecord(t)
				held.Lease = time.Now().Add(tc.left)
				if _, err := st.Claim(t.Context(), store.Claim{Next: held, Now: time.Now()}); err != nil {
					t.Fatal(err)
				}
				accept := func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" }
				serve := func(status int, set ...func(*idem.Options)) {
					res, err := idem.New(&st, append([]func(*idem.Options){callertest.Anybody}, set...)...).Serve(t.Context(), ann, slow(0, new(atomic.Int64)))
					if got := res.Header.Get("Retry-After"); err != nil || res.Status != status || got != tc.want {
						t.Errorf("%d, Retry-After %q, %v; want %d, %q", res.Status, got, err, status, tc.want)
					}
				}
				serve(http.StatusConflict, tc.set)
				serve(http.StatusAccepted, tc.set, accept)
				r := ann
				r.Method = http.MethodGet
				if got := idem.New(&st, callertest.Anybody, tc.set, accept).ServeStatus(t.Context(), r).Header.Get("Retry-After"); got != tc.want {
					t.Errorf("status: Retry-After %q, want %q", got, tc.want)
				}
			})
		})
	}
}
