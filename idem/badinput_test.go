package idem_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// Bad inputs that don't concern event formats, stores or key parsers. Numbers 1–8
// are in key_test.go and lambda/badinput_test.go, with 10, 13–15, 22, 29 and 33;
// 16, 24, 27 and 28 are in dynamo.
func TestBadInput(t *testing.T) {
	t.Parallel()
	ask := func(t *testing.T, e *idem.Engine, r idem.Request, fn func(context.Context) (idem.Response, error)) idem.Result {
		t.Helper()
		r.Header = http.Header{idem.KeyHeader: {r.Key}, "Content-Type": {"application/json"}}
		r.Key = ""
		res, err := e.Serve(t.Context(), r, fn)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	with := func(change func(*idem.Request)) idem.Request {
		r := request
		change(&r)
		return r
	}
	secret := func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Body: []byte("secret")}, nil
	}
	const runs, refused = true, false
	for name, tt := range map[string]struct {
		options func(*idem.Options)
		second  idem.Request
		runs    bool
		status  int
	}{
		"09 same key, other body":                 {nil, with(func(r *idem.Request) { r.Body = []byte("[]") }), refused, 422},
		"10 same key, other path":                 {nil, with(func(r *idem.Request) { r.Path = "/x" }), refused, 422},
		"11 same key, other tenant, same body":    {nil, with(func(r *idem.Request) { r.Scope = "other" }), runs, 201},
		"12 same JSON, other white space":         {nil, with(func(r *idem.Request) { r.Body = []byte("{ }") }), refused, 422},
		"12 the same, canonical":                  {func(o *idem.Options) { o.Fingerprint.CanonicalJSON = true }, with(func(r *idem.Request) { r.Body = []byte("{ }") }), refused, 201},
		"19 key that names another tenant":        {nil, with(func(r *idem.Request) { r.Key = "v1#s#k" }), runs, 201},
		"19 key and scope that join to the first": {nil, with(func(r *idem.Request) { r.Scope, r.Key = "", "sk" }), runs, 201},
		"20 body of 6 MB":                         {func(o *idem.Options) { o.Fingerprint.CanonicalJSON = true }, with(func(r *idem.Request) { r.Body = bytes.Repeat([]byte("["), 6<<20) }), refused, 422},
		"20 body 100 deep": {func(o *idem.Options) { o.Fingerprint.CanonicalJSON = true }, with(func(r *idem.Request) {
			r.Body = []byte(strings.Repeat(`{"__proto__":`, 100) + "1" + strings.Repeat("}", 100))
		}), refused, 422},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := tt.options
			if options == nil {
				options = func(*idem.Options) {}
			}
			engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, options)
			ask(t, engine, request, secret)
			ran := false
			res := ask(t, engine, tt.second, func(ctx context.Context) (idem.Response, error) {
				ran = true
				return answers(201)(ctx)
			})
			if res.Status != tt.status || ran != tt.runs {
				t.Errorf("got %d %s, ran %t", res.Status, res.Body, ran)
			}
			if strings.Contains(string(res.Body), "secret") != (tt.status == 201 && !tt.runs) {
				t.Errorf("the first answer's body: %s", res.Body)
			}
			if again := ask(t, engine, request, never(t)); !again.Replayed || string(again.Body) != "secret" {
				t.Errorf("the first request's replay is %d %s", again.Status, again.Body)
			}
		})
	}

	t.Run("18 retry after expiry, the record still there", func(t *testing.T) {
		t.Parallel()
		now := time.Now()
		engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Now = func() time.Time { return now } })
		ask(t, engine, request, secret)
		now = now.Add(defaults.Retention + 2*time.Second)
		if res := ask(t, engine, request, answers(200)); res.Status != 200 || res.Replayed {
			t.Errorf("got %d, replayed %t", res.Status, res.Replayed)
		}
	})
	t.Run("21 binary answer of 6 MB", func(t *testing.T) {
		t.Parallel()
		body := bytes.Repeat([]byte{0, 0xff, '"'}, 2<<20)
		engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })
		for _, fn := range []func(context.Context) (idem.Response, error){
			func(context.Context) (idem.Response, error) { return idem.Response{Body: body}, nil }, never(t),
		} {
			if res := ask(t, engine, request, fn); !bytes.Equal(res.Body, body) {
				t.Errorf("%d bytes came back", len(res.Body))
			}
		}
	})
	for name, fail := range map[string]func(context.Context) (idem.Response, error){
		"23 handler returns an error": func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") },
		"23 handler returns a 500":    answers(500),
		"23 handler panics":           func(context.Context) (idem.Response, error) { panic("down") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := idem.New(&idem.MemoryStore{}, callertest.Anybody)
			if res := ask(t, engine, request, fail); res.Status != 500 {
				t.Errorf("got %d", res.Status)
			}
			if res := ask(t, engine, request, answers(201)); res.Status != 201 || res.Replayed {
				t.Errorf("the retry got %d, replayed %t: a cached failure", res.Status, res.Replayed)
			}
		})
	}
}
