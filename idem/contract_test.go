package idem_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// What Options.KeyFrom finds goes through the same rules as a header's key, and without a
// find the header counts.
func TestKeyFrom(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, tc := range map[string]struct {
		key    string
		err    error
		status int
		stored int
	}{
		"a key":            {"a!b", nil, 201, 1},
		"no find":          {"", idem.ErrKeyMissing, 201, 1},
		"an empty key":     {"", nil, 400, 0},
		"a space in it":    {"a b", nil, 400, 0},
		"too long":         {strings.Repeat("k", 256), nil, 400, 0},
		"it can't be said": {"a", down, 500, 0},
	} {
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.KeyFrom = func(*idem.Request) (string, error) { return tc.key, tc.err } })
		r := request
		r.Key, r.Header = "", http.Header{idem.KeyHeader: {"k"}}
		res, err := e.Serve(t.Context(), r, answers(201))
		if err != nil || res.Status != tc.status || len(mem.Records()) != tc.stored {
			t.Errorf("%s: %d %s, %v, %d records", name, res.Status, res.Body, err, len(mem.Records()))
		}
	}
}

// Who sends a key that breaks a rule learns the rules of this engine.
func TestAnInvalidKeyHearsTheRules(t *testing.T) {
	t.Parallel()
	const quotes = "in double quotes"
	for want, opt := range map[string]func(*idem.Options){
		"of 1 to 255 visible ASCII characters, for instance a UUID.": func(*idem.Options) {},
		"of 2 to 255 ":  func(o *idem.Options) { o.MinKey = 2 },
		"of 1 to 254 ":  func(o *idem.Options) { o.MaxKey = 254 },
		"of 22 to 255 ": idem.OneScope,
		quotes:          idem.IETF,
	} {
		r := request
		r.Key, r.Header = "", http.Header{idem.KeyHeader: {"schlüssel"}}
		res, err := idem.New(&idem.MemoryStore{}, opt).Serve(t.Context(), r, never(t))
		if err != nil || res.Status != 400 || !strings.Contains(string(res.Body), want) || want != quotes && strings.Contains(string(res.Body), quotes) {
			t.Errorf("%d %s, %v; want %q", res.Status, res.Body, err, want)
		}
	}
}

// Options.Problem gets the handler's own error, and its headers can't split the answer.
func TestProblemGetsTheCause(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
		o.Problem = func(p idem.Problem) idem.Response {
			if !errors.Is(p.Err, down) || p.Status != 500 {
				t.Errorf("got %+v", p)
			}
			return idem.Response{Status: p.Status, Header: http.Header{"x-a": {"1"}, "X-B": {"a\nb"}}}
		}
	})
	res, err := e.Serve(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) { return idem.Response{}, down })
	if err != nil || res.Header.Get("X-A") != "1" || res.Header.Get("X-B") != "" {
		t.Errorf("%+v, %v", res, err)
	}
}

// A header map that a handler shares among its answers stays as it is.
func TestSharedHeadersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	shared := http.Header{"X-A": {"1"}}
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	get := keyed("k")
	get.Method = http.MethodGet
	for _, r := range []idem.Request{get, keyed("k")} {
		r.Header = http.Header{idem.KeyHeader: {"k"}}
		if _, err := e.Serve(t.Context(), r, func(context.Context) (idem.Response, error) { return idem.Response{Header: shared}, nil }); err != nil || len(shared) != 1 {
			t.Errorf("%s: %v, %v", r.Method, shared, err)
		}
	}
}

// Under ACP each answer has its request's Request-Id, and no other contract's does.
func TestRequestIDsAreEchoed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		preset func(*idem.Options)
		ids    []string
		want   string
	}{
		"one":              {idem.ACP, []string{"req_1"}, "req_1"},
		"none":             {idem.ACP, nil, ""},
		"two":              {idem.ACP, []string{"req_1", "req_2"}, ""},
		"one that splits":  {idem.ACP, []string{"req_1\nreq_2"}, ""},
		"another contract": {func(*idem.Options) {}, []string{"req_1"}, ""},
	} {
		e := idem.New(&idem.MemoryStore{}, tc.preset)
		r := request
		r.Key = ""
		for i, key := range []string{"", "k", "k"} { // refused, answered, replayed
			r.Header = http.Header{"Request-Id": tc.ids}
			if key != "" {
				r.Header[idem.KeyHeader] = []string{key}
			}
			res, err := e.Serve(t.Context(), r, func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil })
			if err != nil || res.Header.Get("Request-Id") != tc.want || (res.Status == 201) != (i > 0) {
				t.Errorf("%s, answer %d: %d %v, %v", name, i, res.Status, res.Header, err)
			}
		}
	}
}

// A disabled engine leaves everything to the handlers, without a store.
func TestDisabledEngine(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]idem.KeyMode{"required": idem.KeyRequired, "generated": idem.KeyGenerate} {
		e := idem.New(nil, func(o *idem.Options) { o.Mode, o.Key, o.Fingerprint.SkipPath = idem.ModeOff, key, true })
		for _, r := range []idem.Request{{}, keyed("k")} {
			if res, err := e.Do(t.Context(), r, answers(400)); err != nil || !res.Passed || res.Status != 400 {
				t.Errorf("%s, key %q: %+v, %v", name, r.Key, res, err)
			}
		}
		if err := errors.Join(e.AddOperation("Direct", "a"), e.AddOperation("Direct", "a"), e.CheckRoute("GET /{id}")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e.Acts("POST", http.Header{idem.KeyHeader: {"k"}}) || !e.Keeps(400) {
			t.Errorf("%s: acts", name)
		}
	}
}

// A request without a header may have its key elsewhere.
func TestActsOnKeysElsewhere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt  func(*idem.Options)
		want bool
	}{
		"optional":            {func(o *idem.Options) { o.Key = idem.KeyOptional }, false},
		"optional, in a form": {func(o *idem.Options) { o.Key, o.KeyFrom = idem.KeyOptional, idem.FormKey("k") }, true},
		"required":            {func(*idem.Options) {}, true},
	} {
		if got := idem.New(&idem.MemoryStore{}, callertest.Anybody, tc.opt).Acts("POST", nil); got != tc.want {
			t.Errorf("%s: acts %t, want %t", name, got, tc.want)
		}
	}
}

// Do takes the tenant of its context, so that a handler's own operations are no other
// tenant's.
func TestDoTakesItsContextsTenant(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	of := func(tenant string) context.Context {
		return idem.WithSender(t.Context(), &idem.Request{Tenant: tenant})
	}
	own := request
	own.Tenant = "a"
	for i, tc := range []struct {
		tenant   string
		r        idem.Request
		replayed bool
	}{{"a", request, false}, {"b", request, false}, {"", request, false}, {"b", request, true}, {"b", own, true}} {
		if res, err := e.Do(of(tc.tenant), tc.r, answers(201)); err != nil || res.Replayed != tc.replayed {
			t.Errorf("call %d: %+v, %v", i, res, err)
		}
	}
}

// Only Serve answers 202: the caller of Do wants a result or an error.
func TestDoIsNotAccepted(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
	_, err := e.Do(t.Context(), request, func(context.Context) (idem.Response, error) {
		if res, err := e.Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrInFlight) {
			t.Errorf("Do: %+v, %v", res, err)
		}
		if res, err := e.Serve(t.Context(), request, never(t)); err != nil || res.Status != 202 {
			t.Errorf("Serve: %+v, %v", res, err)
		}
		return idem.Response{}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A status that no transport can send is a mistake of the handler, and no record has it.
func TestStatusThatCannotBeSent(t *testing.T) {
	t.Parallel()
	for status, fine := range map[int]bool{0: true, 99: false, 100: true, 999: true, 1000: false, -1: false} {
		var mem idem.MemoryStore
		_, err := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Stored = func(idem.Response) bool { return true } }).Do(t.Context(), request, answers(status))
		if rec := onlyRecord(t, &mem); (err == nil) != fine || !fine && !errors.Is(err, idem.ErrResult) || fine != (rec.State == store.Done) {
			t.Errorf("%d: %v, the record is %v", status, err, rec.State)
		}
	}
}

// A record has texts in UTF-8 only: others would be changed, and a sealed record could never be
// read again. A request with others is refused before its claim.
func TestTextsOfARecordAreUTF8(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(r *idem.Request, s string){
		"operation": func(r *idem.Request, s string) { r.Operation = s },
		"tenant":    func(r *idem.Request, s string) { r.Tenant = s },
		"route":     func(r *idem.Request, s string) { r.Route = s },
		"function":  func(r *idem.Request, s string) { r.Handler.Function = s },
		"handler":   func(r *idem.Request, s string) { r.Handler.Name = s },
		"kind":      func(r *idem.Request, s string) { r.Identity.Kind = s },
	} {
		for text, want := range map[string]error{"héllo": nil, "h\xe9llo": idem.ErrRequest} {
			var mem idem.MemoryStore
			r := request
			set(&r, text)
			_, err := idem.New(&mem, callertest.Anybody).Do(t.Context(), r, answers(201))
			if !errors.Is(err, want) || (len(mem.Records()) == 0) != (want != nil) {
				t.Errorf("the %s is %q: got %v and %d records, want %v", name, text, err, len(mem.Records()), want)
			}
		}
	}
}

func TestHandlersNeedNames(t *testing.T) {
	t.Parallel()
	resumable := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Resumable, o.Function = true, "f" })
	plain := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	for i, tc := range []struct {
		e          *idem.Engine
		name, want string
	}{
		{plain, "", ""}, {plain, "", ""}, {resumable, "a", ""}, {resumable, "b", ""}, {resumable, "", "no name"}, {resumable, "a", `"a"`}, {resumable, "b", `"b"`}, {plain, "\xff", "not UTF-8"},
	} {
		if err := tc.e.AddHandler(tc.name); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("handler %d: %v, want %q", i, err, tc.want)
		}
	}
	var mem idem.MemoryStore
	first, second := idem.New(&mem, callertest.Anybody), idem.New(&mem, callertest.Anybody)
	other := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Namespace = "other" })
	for i, tc := range []struct {
		e                *idem.Engine
		kind, name, want string
	}{
		{first, "Direct", "a", ""},
		{first, "Direct", "b", ""},
		{first, "SQS", "a", ""},
		{second, "Direct", "a", ""},
		{first, "Direct", "a", `"a"`},
		{first, "Direct", "b", `"b"`},
		{first, "Direct", "", ""},
		{first, "SQS", "", ""},
		{other, "Direct", "", ""},
		{second, "Direct", "", "without a name"},
		{first, "Direct", "", "without a name"},
	} {
		if err := tc.e.AddOperation(tc.kind, tc.name); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("operation %d: %v, want %q", i, err, tc.want)
		}
	}
}

// A source that delivers after the key is forgotten is worth a warning, unless the program
// has thought of it.
func TestSourceThatKeepsForLonger(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keeps time.Duration
		opt   func(*idem.Options)
		warns bool
	}{
		"longer":       {3*time.Hour + 1, func(*idem.Options) {}, true},
		"as long":      {3 * time.Hour, func(*idem.Options) {}, false},
		"unknown":      {0, func(*idem.Options) {}, false},
		"not followed": {4 * time.Hour, func(o *idem.Options) { o.Mode = idem.ModeOff }, false},
	} {
		var log bytes.Buffer
		idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
			o.Retention, o.Tombstone, o.Logger = 2*time.Hour, time.Hour, slog.New(slog.NewTextHandler(&log, nil))
		}, tc.opt).AddSource("orders", tc.keeps)
		if got := strings.Contains(log.String(), "source=orders"); got != tc.warns {
			t.Errorf("%s: %q", name, log.String())
		}
	}
}

func TestCheckRoute(t *testing.T) {
	t.Parallel()
	skips := func(o *idem.Options) { o.Fingerprint.SkipPath = true }
	byRoute := func(o *idem.Options) { o.Fingerprint.SkipPath, o.ScopeRoute = true, true }
	for name, tc := range map[string]struct {
		opt     func(*idem.Options)
		pattern string
		want    string
	}{
		"a keyed method":                {callertest.Anybody, "POST /orders/{id}", ""},
		"any method":                    {callertest.Anybody, "/orders/{id}", ""},
		"a method without keys":         {callertest.Anybody, "GET /orders", "takes keys on POST, PATCH only: add GET"},
		"a wildcard that doesn't count": {skips, "POST /orders/{id}", "SkipPath"},
		"no wildcard":                   {skips, "POST /orders", ""},
		"a wildcard, by route":          {byRoute, "POST /orders/{id}", "SkipPath"}, // whose pattern is the route
		"all below a path":              {skips, "POST /orders/", "SkipPath"},
		"all below a path, by route":    {byRoute, "POST /orders/", ""}, // whose path is the route
	} {
		err := idem.New(&idem.MemoryStore{}, tc.opt).CheckRoute(tc.pattern)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// The level of a request's line says whether people have to act.
func TestLogLevels(t *testing.T) {
	t.Parallel()
	levels := map[slog.Level][]string{
		slog.LevelError: {"Stuck", "Blocked", "Unstored", "Failed", "Unprotected"},
		slog.LevelWarn:  {"TakenOver", "Mismatch", "Limited", "LeaseLost", "Refused", "Released"},
		slog.LevelInfo:  {"Claimed", "Committed", "Finished", "Replayed", "InFlight", "Observed"},
	}
	for level, events := range levels {
		for _, name := range events {
			var log bytes.Buffer
			h := idem.Log(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level})))
			s := idem.Summary{Happened: []idem.Event{{Name: "Claimed", Jobs: 1}, {Name: name, Jobs: 2}}}
			h.Ended(t.Context(), s)
			if got := log.String(); !strings.Contains(got, "level="+level.String()) || !strings.Contains(got, `events="Claimed `+name+`"`) || !strings.Contains(got, "jobs=3") || !strings.Contains(got, `error=""`) {
				t.Errorf("%s: %s", name, got)
			}
			log.Reset()
			above := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level + 1}))
			if idem.Log(above).Ended(t.Context(), s); log.Len() != 0 {
				t.Errorf("%s is logged above its level: %s", name, &log)
			}
		}
	}
	for level, want := range map[slog.Level]bool{slog.LevelDebug: true, slog.LevelInfo: false} {
		var log bytes.Buffer
		idem.Log(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))).Claimed(t.Context(), idem.Event{Name: "Claimed", Err: errors.New("down")})
		if got := strings.Contains(log.String(), "event=Claimed") && strings.Contains(log.String(), "error=down"); got != want {
			t.Errorf("%v: %q", level, &log)
		}
	}
	idem.Log(nil).Claimed(t.Context(), idem.Event{}) // slog.Default()
}

// Each refusal has its hook.
func TestHooksOfRefusals(t *testing.T) {
	t.Parallel()
	down := &spoilt{Store: &idem.MemoryStore{}, claim: func(context.Context, store.Claim) (*store.Record, error) { return nil, errors.New("down") }}
	for name, tc := range map[string]struct {
		store store.Store
		opt   func(*idem.Options)
		left  time.Duration
		want  []string
	}{
		"no time":        {&idem.MemoryStore{}, func(*idem.Options) {}, time.Millisecond, []string{"Refused", "Ended"}},
		"over the quota": {&idem.MemoryStore{}, (&gate{wait: 1}).set, time.Minute, []string{"Limited", "Ended"}},
		"failed open":    {down, func(o *idem.Options) { o.Mode = idem.ModeOpen }, time.Minute, []string{"Unprotected", "Ended"}},
		"in flight":      {&idem.MemoryStore{}, func(*idem.Options) {}, time.Minute, []string{"Claimed", "InFlight", "Ended", "Finished", "Ended"}},
		"too large":      {&idem.MemoryStore{}, func(o *idem.Options) { o.Resumable, o.Function, o.MaxInput = true, "f", 1 }, time.Minute, []string{"Refused", "Ended"}},
		"its data can't be compared": {&idem.MemoryStore{}, func(o *idem.Options) {
			o.Fingerprint.Func, o.Fingerprint.FuncName = func(*idem.Request) ([]byte, error) { return nil, errors.New("down") }, "f"
			o.Fingerprint.Known = []idem.Fingerprint{{}}
		}, time.Minute, []string{"Refused", "Ended"}},
	} {
		var told []string
		var ended []idem.Summary
		e := idem.New(tc.store, callertest.Anybody, tc.opt, func(o *idem.Options) { o.Hooks = listening(&told, &ended) })
		ctx, cancel := context.WithTimeout(t.Context(), tc.left)
		_, err := e.Do(ctx, request, func(ctx context.Context) (idem.Response, error) {
			if name == "in flight" {
				_, _ = e.Do(t.Context(), request, never(t))
			}
			return answers(201)(ctx)
		})
		cancel()
		if ran := name == "failed open" || name == "in flight"; !slices.Equal(told, tc.want) || ran != (err == nil) {
			t.Errorf("%s: told %q, want %q; %v", name, told, tc.want, err)
		}
	}
}

// A hook that asks for durations gets them, whichever of the two it is.
func TestEitherHookTimesPhases(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	for name, set := range map[string]func(*idem.Options){
		"Committed": func(o *idem.Options) {
			o.Hooks.Committed = func(_ context.Context, ev idem.Event) { took = append(took, ev.Duration) }
		},
		"Ended": func(o *idem.Options) {
			o.Hooks.Ended = func(_ context.Context, s idem.Summary) { took = append(took, s.Happened[1].Duration) }
		},
	} {
		took = nil
		_, err := do(t, idem.New(&idem.MemoryStore{}, callertest.Anybody, set), answering(func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return err
		}))
		if err != nil || len(took) != 1 || took[0] <= 0 {
			t.Errorf("%s: %v, %v", name, took, err)
		}
	}
}

// The middleware refuses a body that it can't compare as it was sent.
func TestMiddlewareNeedsTheBody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind, body string
		before     func(*http.Request)
		fine       bool
	}{
		"nothing before":     {"text/plain", "1", func(*http.Request) {}, true},
		"no body":            {"text/plain", "", func(*http.Request) {}, true},
		"a parse of no form": {"application/json", "1", func(r *http.Request) { _ = r.ParseForm() }, true},
		"a form, parsed":     {"application/x-www-form-urlencoded", "a=1", func(r *http.Request) { r.ContentLength = -1; _ = r.ParseForm() }, false},
		"parts, parsed":      {"multipart/form-data; boundary=x", "--x--\r\n", func(r *http.Request) { r.ContentLength = -1; _ = r.ParseMultipartForm(1 << 20); r.PostForm = nil }, false},
		"read, in part":      {"text/plain", "123", func(r *http.Request) { _, _ = io.ReadFull(r.Body, make([]byte, 1)) }, false},
		"it can't be read":   {"text/plain", "1", func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(errors.New("reset"))) }, false},
		"it breaks off": {"text/plain", "1", func(r *http.Request) {
			r.ContentLength, r.Body = -1, io.NopCloser(io.MultiReader(strings.NewReader("12"), iotest.ErrReader(errors.New("reset"))))
		}, false},
		"as large as it may":   {"text/plain", "1234567890", func(*http.Request) {}, true},
		"larger than it may":   {"text/plain", "12345678901", func(*http.Request) {}, false},
		"larger, in one piece": {"text/plain", "12345678901", func(r *http.Request) { r.ContentLength = -1 }, false},
	} {
		for _, mode := range []idem.Mode{idem.ModeEnforce, idem.ModeObserve} {
			var told []error
			runs := 0
			e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
				o.MaxRequest, o.Mode = 10, mode
				o.Hooks.Observed = func(_ context.Context, ev idem.Event) { told = append(told, ev.Err) }
			})
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(tc.body))
			r.Header.Set("Content-Type", tc.kind)
			r.Header.Set(idem.KeyHeader, "k")
			tc.before(r)
			w := httptest.NewRecorder()
			e.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ })).ServeHTTP(w, r)
			if observed := mode == idem.ModeObserve; (runs == 1) != (tc.fine || observed) || !observed && (w.Code == 200) != tc.fine || observed && (len(told) == 0) != tc.fine {
				t.Errorf("%s: %d, %d runs, told %v", name, w.Code, runs, told)
			}
		}
	}
}

// A middleware around Stripe's contract names each request; a replay names the first one,
// too.
func TestMiddlewareKeepsRequestIDs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		preset        func(*idem.Options)
		inner         string
		own, original string // of the replay
	}{
		"Stripe":  {idem.StripeV1, "req_1", "req_2", "req_1"},
		"default": {func(*idem.Options) {}, "", "req_2", ""},
	} {
		id := "req_1"
		h := idem.New(&idem.MemoryStore{}, callertest.Anybody, tc.preset).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if got := w.Header().Get("Request-Id"); got != tc.inner {
				t.Errorf("%s: the handler's answer has the id %q", name, got)
			}
		}))
		outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Request-Id", id)
			h.ServeHTTP(w, r)
		})
		ask(t, outer, "POST", "k", "")
		id = "req_2"
		if r := ask(t, outer, "POST", "k", ""); r.Header.Get("Request-Id") != tc.own || r.Header.Get("Original-Request") != tc.original {
			t.Errorf("%s: a replay has %v", name, r.Header)
		}
	}
	h := idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.NotFoundHandler())
	if r := ask(t, h, "GET", "", ""); r.Header.Get("Idempotency-Status") != "" {
		t.Errorf("a request without a key: %v", r.Header)
	}
}

// The adapters' questions.
func TestWhatAdaptersAsk(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	var told []error
	tells := func(_ context.Context, ev idem.Event) { told = append(told, ev.Err) }
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Hooks.Refused, o.Hooks.Observed = tells, tells })
	for err, status := range map[error]int{down: 400, idem.ErrTooLarge: 413} {
		told = nil
		if resp := e.Refuse(t.Context(), request, err); resp.Status != status || len(told) != 1 || !errors.Is(told[0], err) || errors.Is(told[0], idem.ErrRequest) != (status == 400) {
			t.Errorf("%v: %d %s, told %v", err, resp.Status, resp.Body, told)
		}
	}
	if !e.Keeps(201) || e.Keeps(400) || e.StoresRequests() {
		t.Error("keeps other answers than Stored says, or requests")
	}
	told = nil
	observing := func(o *idem.Options) { o.Mode, o.Hooks.Observed = idem.ModeObserve, tells }
	off := idem.New(nil, observing, func(o *idem.Options) { o.Mode = idem.ModeOff })
	if e.Observes(t.Context(), request, down) || off.Observes(t.Context(), request, down) || told != nil {
		t.Errorf("observes, told %v", told)
	}
	if !idem.New(&idem.MemoryStore{}, observing).Observes(t.Context(), request, down) || len(told) != 1 {
		t.Errorf("observes nothing, told %v", told)
	}
	if !idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Resumable, o.Function = true, "f" }).StoresRequests() {
		t.Error("stores no requests")
	}
	for _, h := range []http.Header{nil, {idem.KeyHeader: {"k"}}} {
		if _, err := e.Serve(t.Context(), idem.Request{Method: "GET", Header: h}, func(context.Context) (idem.Response, error) { return idem.Response{}, down }); err != down { //nolint:errorlint // the handler's own
			t.Errorf("a handler's error of a request that passes: %#v", err)
		}
	}
	told = nil
	if res, err := e.Serve(t.Context(), idem.Request{Method: "POST"}, never(t)); err != nil || res.Status != 400 || len(told) != 1 || !errors.Is(told[0], idem.ErrKeyMissing) {
		t.Errorf("without a key: %+v, %v, told %v", res, err, told)
	}
}

// At most 50 jobs wait in a record.
func TestJobsOfARecord(t *testing.T) {
	t.Parallel()
	for n, fine := range map[int]bool{50: true, 51: false} {
		jobs := make([]idem.Job, n)
		for i := range jobs {
			jobs[i] = idem.NewJob("k", i)
		}
		_, err := do(t, idem.New(&idem.MemoryStore{}, callertest.Anybody), answering(func(ctx context.Context) error { return idem.Stage(ctx, jobs...) }))
		if (err == nil) != fine || !fine && !errors.Is(err, idem.ErrWrite) {
			t.Errorf("%d jobs: %v", n, err)
		}
	}
}

// A job is refused before it is staged, if no destination could take it or if it has been
// delivered before.
func TestJobsThatCannotBeStaged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job  idem.Job
		fine bool
	}{
		"a job":              {idem.NewJob(strings.Repeat("k", 128), 1), true},
		"a kind too long":    {idem.NewJob(strings.Repeat("k", 129), 1), false},
		"no kind":            {idem.NewJob("", 1), false},
		"no JSON":            {idem.NewJob("k", make(chan int)), false},
		"JSON that is cut":   {idem.Job{Kind: "k", Args: []byte("{")}, false},
		"JSON but not UTF-8": {idem.Job{Kind: "k", Args: []byte("\"\xff\"")}, false},
		"a group, no UTF-8":  {idem.Job{Kind: "k", Args: []byte("1"), Group: "a\xff"}, false},
		"a kind, no UTF-8":   {idem.Job{Kind: "k\xff", Args: []byte("1")}, false},
		"what SNS takes":     {idem.NewJob("k", strings.Repeat("x", 250<<10-2)), true},
		"what SNS refuses":   {idem.NewJob("k", strings.Repeat("x", 250<<10-1)), false},
		"large if escaped":   {idem.Job{Kind: "k", Args: []byte(`"` + strings.Repeat("<", 50<<10) + `"`)}, false},
		"tried before":       {idem.Job{Kind: "k", Args: []byte("1"), Tries: 1}, false},
		"failed before":      {idem.Job{Kind: "k", Args: []byte("1"), Failed: "down"}, false},
		"begun before":       {idem.Job{Kind: "k", Args: []byte("1"), Begun: time.Unix(1, 0)}, false},
	} {
		for by, stage := range map[string]func(context.Context) error{
			"Stage": func(ctx context.Context) error { return idem.Stage(ctx, tc.job) },
			"Tx.Stage": func(ctx context.Context) error {
				_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Stage(tc.job); return 1, nil })
				return err
			},
		} {
			_, err := do(t, idem.New(&idem.MemoryStore{}, callertest.Anybody), answering(stage))
			if (err == nil) != tc.fine || !tc.fine && !errors.Is(err, idem.ErrWrite) {
				t.Errorf("%s, by %s: %v", name, by, err)
			}
		}
	}
}
