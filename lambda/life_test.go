package lambda_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// answering is a handler that answers with this status and body.
func answering(status int, body string) handler {
	return func(context.Context, []byte) (idem.Response, error) {
		return idem.Response{Status: status, Body: []byte(body)}, nil
	}
}

// The life of a key through every source: what its next request gets after each answer.
func TestLifeOfAKey(t *testing.T) {
	t.Parallel()
	const odd = "{\"a\": \"ü\u2028<&>\"}\r\n\x00\t" // JSON must not touch it on its way
	errBoom := errors.New("boom: secret")
	fails := func(context.Context, []byte) (idem.Response, error) { return idem.Response{}, errBoom }
	panics := func(context.Context, []byte) (idem.Response, error) { panic("boom: secret") }
	later := func(d time.Duration) func(*time.Time) { return func(now *time.Time) { *now = now.Add(d) } }
	mode := func(m idem.KeyMode) func(*idem.Options) { return func(o *idem.Options) { o.Key = m } }
	strict := idem.IETF
	without := func(c *call) { delete(c.header, "Idempotency-Key") }
	quoted := func(c *call) { c.header["Idempotency-Key"] = []string{`"k"`} }
	other := func(c *call) { quoted(c); c.body = []byte("{}") }
	type step struct {
		does     handler // nil: created
		edit     func(*call)
		after    func(*time.Time)
		status   int
		body     string // in the answer
		replayed bool
		runs     int64 // so far
	}
	again := func(status int, body string) step { return step{status: status, body: body, replayed: true, runs: 1} }
	for name, tc := range map[string]struct {
		opt   func(*idem.Options)
		steps []step
	}{
		"replayed":       {nil, []step{{does: answering(201, odd), status: 201, body: odd, runs: 1}, again(201, odd), again(201, odd)}},
		"declined":       {nil, []step{{does: answering(402, "declined"), status: 402, body: "declined", runs: 1}, again(402, "declined")}},
		"refused":        {nil, []step{{does: answering(422, "no"), status: 422, body: "no", runs: 1}, {status: 201, body: createdBody, runs: 2}}},
		"an error":       {nil, []step{{does: fails, status: 500, body: `"internal_error"`, runs: 1}, {status: 201, body: createdBody, runs: 2}}},
		"a panic":        {nil, []step{{does: panics, status: 500, body: `"internal_error"`, runs: 1}, {status: 201, body: createdBody, runs: 2}}},
		"5xx, v1":        {idem.StripeV1, []step{{does: answering(500, "a"), status: 500, body: "a", runs: 1}, again(500, "a")}},
		"5xx, v2":        {idem.Stripe, []step{{does: answering(500, "a"), status: 500, body: "a", runs: 1}, {status: 201, body: createdBody, runs: 2}}},
		"expired":        {nil, []step{{status: 201, runs: 1}, {after: later(defaults.Retention + time.Minute), status: 201, runs: 2}}},
		"IETF mismatch":  {idem.IETF, []step{{edit: quoted, status: 201, runs: 1}, {edit: other, status: 422, body: `"Idempotency-Key is already used"`, runs: 1}}},
		"Stripe's":       {idem.Stripe, []step{{edit: quoted, status: 201, runs: 1}, {edit: other, status: 400, body: `"idempotency_error"`, runs: 1}}},
		"optional key":   {mode(idem.KeyOptional), []step{{edit: without, status: 201, runs: 1}, {edit: without, status: 201, runs: 2}}},
		"generated key":  {mode(idem.KeyGenerate), []step{{edit: without, status: 201, runs: 1}, {edit: without, status: 201, runs: 2}}},
		"strict key":     {strict, []step{{status: 201, edit: quoted, runs: 1}, again(201, createdBody)}},
		"strict, refuse": {strict, []step{{status: 400, body: "idempotency_key_invalid"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, sources, func(t *testing.T, s source) {
				now, does := time.Now(), handler(nil)
				h, runs := counted(func(ctx context.Context, body []byte) (idem.Response, error) { return does(ctx, body) })
				wrapped := s.wrap(anEngine(func(o *idem.Options) {
					o.Now, o.Logger = func() time.Time { return now }, slog.New(slog.DiscardHandler)
					if tc.opt != nil {
						tc.opt(o)
					}
				}), h)
				for i, step := range tc.steps {
					if does = step.does; does == nil {
						does = created
					}
					c := newCall("k")
					if step.edit != nil {
						step.edit(&c)
					}
					if step.after != nil {
						step.after(&now)
					}
					a := s.send(t, wrapped, c)
					if a.status != step.status || !strings.Contains(string(a.body), step.body) || strings.Contains(string(a.body), "secret") ||
						(a.value(idem.ReplayedHeader) == "true") != step.replayed {
						t.Errorf("request %d: got %d %s, replayed %q; want %+v", i+1, a.status, a.body, a.value(idem.ReplayedHeader), step)
					}
					ran(t, runs, step.runs)
				}
			})
		})
	}
}

// The first answer has the handler's headers, and tells the key and its end; it costs one claim
// and one commit.
func TestFirstAnswer(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		store := &watched{}
		a := s.send(t, s.wrap(idem.New(store, callertest.Anybody), created), newCall(strings.Repeat("k", 255)))
		if a.value("Location") != "/rides/1" || a.value("Content-Type") != "application/json" {
			t.Errorf("the handler's headers came out as %v", a.header)
		}
		ends, err := http.ParseTime(a.value("Idempotency-Expires"))
		if a.value("Idempotency-Key") != strings.Repeat("k", 255) || err != nil || time.Until(ends) < 23*time.Hour {
			t.Errorf("the key or its end isn't told: %v", a.header)
		}
		if c, f := store.claims.Load(), store.commits.Load(); c != 1 || f != 1 {
			t.Errorf("%d claims and %d commits, want one of each", c, f)
		}
	})
}

// Equal keys on two routes: a mismatch, or two operations if Options.Scope returns the path as
// well.
func TestKeyOnAnotherRoute(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for _, byRoute := range []bool{false, true} {
			h, runs := counted(created)
			wrapped := s.wrap(anEngine(func(o *idem.Options) {
				if byRoute {
					o.Scope = func(_ context.Context, r *idem.Request) (string, error) { return r.Path, nil }
				}
			}), h)
			tips := editedSource(s, func(ev map[string]any) {
				if _, ok := ev["resource"]; ok {
					ev["resource"] = "/tips"
				}
				if ev["routeKey"] == "POST /rides" {
					ev["routeKey"] = "POST /tips"
				}
			})
			other := newCall("k")
			other.path = "/tips"
			s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, false)
			if a := tips.send(t, wrapped, other); byRoute {
				a.accepted(t, 201, createdBody, false)
				ran(t, runs, 2)
			} else {
				a.refused(t, 422, "idempotency_key_mismatch")
				ran(t, runs, 1)
			}
			s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, true)
		}
	})
}

// Phases that are committed don't run again when the client retries.
func TestPhasesOfARetry(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		rides, calls := 0, 0
		wrapped := s.wrap(anEngine(), func(ctx context.Context, body []byte) (idem.Response, error) {
			if _, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { rides++; return rides, nil }); err != nil {
				return idem.Response{}, err
			}
			if _, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (int, error) {
				if calls++; calls <= 2 {
					return 0, errors.New("503: secret")
				}
				return calls, nil
			}); err != nil {
				return idem.Response{}, err
			}
			return created(ctx, body)
		})
		for range 2 {
			a := s.send(t, wrapped, newCall("k"))
			a.refused(t, 500, "internal_error")
			if !strings.Contains(string(a.body), "Retry with the same key") || strings.Contains(string(a.body), "secret") {
				t.Errorf("the answer says %s", a.body)
			}
		}
		s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, false)
		s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, true)
		if rides != 1 || calls != 3 {
			t.Errorf("%d rides and %d calls, want 1 and 3", rides, calls)
		}
	})
}

// ModeObserve answers every request by its handler, and says what it would have done.
func TestObserve(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		var would []error
		h, runs := counted(created)
		wrapped := s.wrap(anEngine(func(o *idem.Options) {
			o.Mode, o.Logger = idem.ModeObserve, slog.New(slog.DiscardHandler)
			o.Hooks.Observed = func(_ context.Context, ev idem.Event) { would = append(would, ev.Err) }
		}), h)
		without, changed := newCall(""), newCall("k")
		delete(without.header, "Idempotency-Key")
		changed.body = []byte("another")
		for i, c := range []call{newCall("k"), newCall("k"), changed, without, newCall("no good")} {
			a := s.send(t, wrapped, c)
			a.accepted(t, 201, "made: "+string(c.body), false)
			if a.value("Idempotency-Key") != "" || a.value("Idempotency-Expires") != "" {
				t.Errorf("answer %d tells of a key that nothing is done with: %v", i+1, a.header)
			}
			ran(t, runs, int64(i+1))
		}
		for i, want := range []error{idem.ErrReplay, idem.ErrMismatch, idem.ErrKeyMissing, idem.ErrKeyInvalid} {
			if len(would) != 4 || !errors.Is(would[i], want) {
				t.Errorf("would have been %v, want %v at %d", would, want, i)
			}
		}
	})
}

// Of an answer's headers only listed ones are stored, and no lines break out of one.
func TestSecretsAreNotReplayed(t *testing.T) {
	t.Parallel()
	kept := map[string]string{"Content-Type": "text/csv", "Location": "/rides/7", "X-Ride-Id": "7"}
	secrets := map[string]string{
		"Set-Cookie": "session=secret", "Authorization": "Bearer secret", "Www-Authenticate": "secret", "X-Amzn-Remapped-Authorization": "secret",
		"X-Session-Token": "secret",
	}
	eachDoor(t, func(t *testing.T, d door) {
		send := d.open(t, anEngine(func(o *idem.Options) { o.StoreHeaders = []string{"x-ride-id", "X-Evil"} }),
			func(context.Context, []byte) (idem.Response, error) {
				r := idem.Response{Status: 201, Header: http.Header{"X-Evil": {"a\r\nX-Injected: b"}, "X-Evil\r\nX-Injected": {"b"}}}
				for _, m := range []map[string]string{kept, secrets} {
					for name, value := range m {
						r.Header.Set(name, value)
					}
				}
				return r, nil
			})
		for i := range 2 {
			a := send(newCall("k"))
			a.accepted(t, 201, "", i == 1)
			for name, value := range kept {
				if got := a.value(name); got != value {
					t.Errorf("answer %d: %s is %q, want %q", i+1, name, got, value)
				}
			}
			for name, value := range secrets {
				if got := a.value(name); got != value && i == 0 || got != "" && i == 1 {
					t.Errorf("answer %d: %s is %q", i+1, name, got)
				}
			}
			for name := range a.header {
				if strings.Contains(strings.ToLower(name), "evil") || strings.Contains(name, "Injected") {
					t.Errorf("answer %d has the header %q", i+1, name)
				}
			}
		}
	})
}

// An answer stored through one source must come out right through every other,
// for the same request in each one's spelling.
func TestReplayAcrossSources(t *testing.T) {
	t.Parallel()
	const png, cookies = "\x89PNG\r\n\x1a\n\x00\xff", "a=1; Path=/, b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT"
	handle := func(context.Context, []byte) (idem.Response, error) {
		return idem.Response{Status: 201, Body: []byte(png), Header: http.Header{
			"Content-Type": {"image/png"}, "Link": {"</rides/1>; rel=self", "</rides>; rel=up"},
			"Set-Cookie": {"a=1; Path=/", "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT"}, "X-Secret": {"not stored"},
		}}, nil
	}
	request := func() call {
		c := newCall("k")
		c.path, c.query = "/riders/zo%C3%AB%40example.com/rides%20now", "tag=b%20c&dry_run=false"
		c.header = http.Header{ // as sent; most sources spell it anew
			"IDEMPOTENCY-key": {"k"}, "Content-Type": {"application/json"}, "X-Tag": {"one", "two"}, "Cookie": {"session=7f3a; theme=dark"},
		}
		return c
	}
	for _, first := range sources {
		for _, second := range sources {
			t.Run(first.name+" then "+second.name, func(t *testing.T) {
				t.Parallel()
				h, runs := counted(handle)
				e := anEngine() // they have hosts of their own
				was := first.send(t, first.wrap(e, h), request())
				was.accepted(t, 201, png, false)
				want := cookies
				if first.name == albSingle.name {
					_, want, _ = strings.Cut(cookies, ", ") // it has room for one
				}
				if was.value("Link") != "</rides/1>; rel=self, </rides>; rel=up" || was.value("Set-Cookie") != want {
					t.Errorf("first: got %v, want the cookies %q", was.header, want)
				}
				c := request()
				c.base64, c.query = true, "dry_run=false&tag=b+c"
				is := second.send(t, second.wrap(e, h), c)
				is.accepted(t, 201, png, true)
				for _, name := range []string{"Content-Type", "Link", "Idempotency-Key", "Idempotency-Expires"} {
					if got, want := is.value(name), was.value(name); got != want || want == "" {
						t.Errorf("replay: %s is %q, was %q", name, got, want)
					}
				}
				if is.value("Set-Cookie")+is.value("X-Secret") != "" {
					t.Errorf("replay: got %v, want neither cookies nor X-Secret", is.header)
				}
				ran(t, runs, 1)
			})
		}
	}
}

// One key, all sources, all at once: one of them runs the handler.
func TestConcurrentSources(t *testing.T) {
	t.Parallel()
	const rounds = 10
	h, runs := counted(created)
	e := anEngine() // they have hosts of their own
	outs, errs := make([][]byte, rounds*len(sources)), make([]error, rounds*len(sources))
	var wg sync.WaitGroup
	for i := range outs {
		s := sources[i%len(sources)]
		payload := s.payload(t, newCall("k"))
		wg.Go(func() { outs[i], errs[i] = s.wrap(e, h).Invoke(t.Context(), payload) })
	}
	wg.Wait()
	first := 0
	for i, out := range outs {
		if errs[i] != nil {
			t.Errorf("Invoke: %v", errs[i])
			continue
		}
		switch a := sources[i%len(sources)].result(t, out); {
		case a.status == http.StatusConflict:
			a.refused(t, 409, "idempotency_in_flight")
		case a.value(idem.ReplayedHeader) == "true":
			a.accepted(t, 201, createdBody, true)
		default:
			a.accepted(t, 201, createdBody, false)
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d answers that are no replays, want 1", first)
	}
	ran(t, runs, 1)
}

// A duplicate of a running request is told when to come again, or waits for the answer.
func TestDuplicateWhileRunning(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d door) {
		var send func(call) answer
		var twin answer
		now := time.Now()
		h, runs := counted(func(ctx context.Context, body []byte) (idem.Response, error) {
			twin = send(newCall("k")) // not in ctx: another invocation
			return created(ctx, body)
		})
		send = d.open(t, anEngine(func(o *idem.Options) { o.Now = func() time.Time { return now } }), h)
		send(newCall("k")).accepted(t, 201, createdBody, false)
		twin.refused(t, 409, "idempotency_in_flight")
		if got := twin.value("Retry-After"); got != "5" {
			t.Errorf("Retry-After is %q, want 5, since more is left of the lease", got)
		}
		ran(t, runs, 1)
	})
	each(t, sources, func(t *testing.T, s source) {
		store := &looked{seen: make(chan struct{})}
		h, runs := counted(func(ctx context.Context, body []byte) (idem.Response, error) {
			<-store.seen // the provider hangs until somebody waits
			return created(ctx, body)
		})
		wrapped := s.wrap(idem.New(store, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait }), h)
		answers := make([]answer, 2)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = s.send(t, wrapped, newCall("k")) })
		}
		wg.Wait()
		first, second := answers[0], answers[1]
		if first.value(idem.ReplayedHeader) != "" {
			first, second = second, first
		}
		first.accepted(t, 201, createdBody, false)
		second.accepted(t, 201, createdBody, true)
		ran(t, runs, 1)
	})
}

// looked is a store that tells when somebody looks at a record.
type looked struct {
	idem.MemoryStore
	once sync.Once
	seen chan struct{}
}

func (l *looked) Load(ctx context.Context, pk string) (*store.Record, error) {
	defer l.once.Do(func() { close(l.seen) })
	return l.MemoryStore.Load(ctx, pk)
}

// status makes the status resource for a source.
func (s source) status(e *idem.Engine) awslambda.Handler {
	switch s.name {
	case "HTTPAPI":
		return lambda.StatusHandler(e, lambda.HTTPAPI)
	case "REST":
		return lambda.StatusHandler(e, lambda.REST)
	case "FunctionURL":
		return lambda.StatusHandler(e, lambda.FunctionURL)
	}
	return lambda.StatusHandler(e, lambda.ALB)
}

// In 202 mode a duplicate gets a Location, under which the operation can be seen by its caller,
// and by nobody else.
func TestStatusResource(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		e := anEngine(accepting)
		get, post := newCall(""), newCall(`a/b%"c:d?`)
		get.method, get.path, get.header, get.body = "GET", "/operations/a%2Fb%25%22c:d%3F", http.Header{}, nil
		get.user, post.user = "jane", "jane"
		resource := s.status(e)
		s.send(t, resource, get).refused(t, http.StatusNotFound, "idempotency_key_unknown")
		var h awslambda.Handler
		h = s.wrap(e, func(ctx context.Context, body []byte) (idem.Response, error) {
			twin := s.send(t, h, post) // not in ctx: another invocation
			if twin.status != http.StatusAccepted || twin.value("Location") != get.path || twin.value("Retry-After") == "" {
				t.Errorf("in flight: %d %v", twin.status, twin.header)
			}
			if open := s.send(t, resource, get); open.status != http.StatusAccepted || !bytes.Contains(open.body, []byte(`"in_flight"`)) {
				t.Errorf("while open: %d %s", open.status, open.body)
			}
			return created(ctx, body)
		})
		s.send(t, h, post).accepted(t, 201, createdBody, false)
		s.send(t, resource, get).accepted(t, 201, createdBody, true)
		if s.name != albSingle.name && s.name != albMulti.name { // which verify nobody
			get.user = "omar"
			s.send(t, resource, get).refused(t, http.StatusNotFound, "idempotency_key_unknown")
			get.user = "jane"
		}
		get.method = "POST"
		if a := s.send(t, resource, get); a.status != http.StatusMethodNotAllowed || a.value("Allow") == "" || a.value("Cache-Control") != "no-store" {
			t.Errorf("POST: %d %v", a.status, a.header)
		}
	})
}
