package lambda_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// What a client sends that can't be served is refused before anything is stored or run;
// what is one request in two spellings is one, and what is another request is another.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code string
		keys [][]string
	}{
		"key missing":        {"idempotency_key_missing", [][]string{nil}},
		"key empty":          {"idempotency_key_invalid", [][]string{{""}, {"   "}, {`""`}}},
		"key too long":       {"idempotency_key_invalid", [][]string{{strings.Repeat("k", 256)}, {strings.Repeat("k", 10<<10)}}},
		"control characters": {"idempotency_key_invalid", [][]string{{"a\x00b"}, {"a\r\nX-Evil: b"}, {"a\x7fb"}, {"a\tb"}}},
		"not ASCII":          {"idempotency_key_invalid", [][]string{{"schlüssel"}, {"a\u202eb"}, {"a\xffb"}}},
		"two keys":           {"idempotency_key_invalid", [][]string{{"a,b"}, {`"a", "b"`}, {"a", "b"}, {"a", "a"}, {`"a"`, `"b"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDoor(t, func(t *testing.T, d door) {
				store := &watched{}
				h, runs := counted(created)
				send := d.open(t, idem.New(store, callertest.Anybody), h)
				for _, key := range tc.keys {
					if len(key) > 1 && d.name == albSingle.name {
						continue // it gives its function the last value only
					}
					c := newCall("")
					if c.header["Idempotency-Key"] = key; key == nil {
						delete(c.header, "Idempotency-Key")
					}
					send(c).refused(t, 400, tc.code)
				}
				store.untouched(t)
				ran(t, runs, 0)
			})
		})
	}
	key := func(header, value string) func(*call) {
		return func(c *call) {
			delete(c.header, "Idempotency-Key")
			c.header[header] = []string{value}
		}
	}
	with := func(value string, names ...string) func(*call) {
		return func(c *call) {
			for _, name := range names {
				c.header[name] = []string{value}
			}
		}
	}
	unsigned := []string{
		"Traceparent", "X-Request-Id", "X-Amzn-Trace-Id", "Cookie", "User-Agent", "X-Amzn-Oidc-Identity", "X-Amzn-Oidc-Data",
		"X-Amzn-Oidc-Accesstoken", "Authorization", "X-Api-Key", "X-Forwarded-User",
	}
	odd := func(c *call) { c.body = []byte(`{"__proto__":{"a":1},"b":` + strings.Repeat("[", 9999) + "\x00\xff") }
	for name, edits := range map[string][2]func(*call){
		"quoted and bare":                    {key("Idempotency-Key", `"k"`), key("Idempotency-Key", "k")},
		"any case":                           {key("IDEMPOTENCY-KEY", "k"), key("iDEMPOTENCY-kEY", "k")},
		"base64 and plain":                   {func(c *call) { c.base64 = true }, func(*call) {}},
		"a body of bytes":                    {odd, odd},
		"forged identity, and other headers": {with("alice", unsigned...), with("bob", unsigned...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDoor(t, func(t *testing.T, d door) {
				h, runs := counted(created)
				send := d.open(t, anEngine(), h)
				for i, edit := range edits {
					c := newCall("k")
					edit(&c)
					send(c).accepted(t, 201, "made: "+string(c.body), i == 1)
				}
				ran(t, runs, 1)
			})
		})
	}
	for name, edit := range map[string]func(*call){
		"other path":         func(c *call) { c.path = "/riders" },
		"other slash":        func(c *call) { c.path = "/rides/" },
		"other method":       func(c *call) { c.method = "PUT" },
		"other query":        func(c *call) { c.query = "a=1&b=2" },
		"other query's name": func(c *call) { c.query = "b=1" },
		"no query":           func(c *call) { c.query = "" },
		"other body":         func(c *call) { c.body = []byte(`{"origin_lat":0}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDoor(t, func(t *testing.T, d door) {
				h, runs := counted(created)
				send := d.open(t, anEngine(func(o *idem.Options) { o.Methods = []string{"POST", "PUT"} }), h)
				c := newCall("k")
				c.query = "a=1"
				send(c).accepted(t, 201, createdBody, false)
				other := c
				edit(&other)
				a := send(other)
				a.refused(t, 422, "idempotency_key_mismatch")
				if bytes.Contains(a.body, []byte("made")) || a.value("Location") != "" {
					t.Errorf("the stored answer leaks: %v %s", a.header, a.body)
				}
				send(c).accepted(t, 201, createdBody, true)
				ran(t, runs, 1)
			})
		})
	}
	t.Run("invalid base64", invalidBase64)
	t.Run("no time left", noTimeLeft)
	t.Run("forged request context", forgedContext)
}

// editedSource changes s's events before they are sent.
func editedSource(s source, edit func(ev map[string]any)) source {
	event := s.event
	s.event = func(c call) map[string]any {
		ev := event(c)
		edit(ev)
		return ev
	}
	return s
}

func invalidBase64(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for _, body := range []string{"@@@", "YWI", "YWI=x"} {
			store := &watched{}
			h, runs := counted(func(context.Context, []byte) (idem.Response, error) { return idem.Response{Status: 415}, nil })
			bad := editedSource(s, func(ev map[string]any) { ev["body"], ev["isBase64Encoded"] = body, true })
			bad.send(t, s.wrap(idem.New(store, callertest.Anybody), h), newCall("k")).refused(t, 400, "request_invalid")
			store.untouched(t)
			ran(t, runs, 0)
			// Where the engine has nothing to do, or only watches, the handler gets the event as it came.
			c := newCall("k")
			c.method = "PUT"
			if a := bad.send(t, s.wrap(idem.New(store, callertest.Anybody), h), c); a.status != 415 || a.value("Idempotency-Status") != "ignored" {
				t.Errorf("%q, a PUT: %d %v, want the handler's 415 and that the key is ignored", body, a.status, a.header)
			}
			observes := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
			if a := bad.send(t, s.wrap(observes, h), newCall("k")); a.status != 415 {
				t.Errorf("%q, observed: %d, want the handler's 415", body, a.status)
			}
			ran(t, runs, 2)
		}
	})
}

func noTimeLeft(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for _, left := range []time.Duration{-time.Second, 0, 200 * time.Millisecond} {
			store := &watched{}
			h, runs := counted(created)
			ctx, cancel := context.WithTimeout(t.Context(), left)
			out, err := s.wrap(idem.New(store, callertest.Anybody), h).Invoke(ctx, s.payload(t, newCall("k")))
			if cancel(); err != nil {
				t.Fatal(err)
			}
			a := s.result(t, out)
			if a.refused(t, 503, "no_time_left"); a.value("Retry-After") != "1" {
				t.Errorf("Retry-After is %q, want 1", a.value("Retry-After"))
			}
			store.untouched(t)
			ran(t, runs, 0)
		}
	})
}

// Nobody is verified by what a source's request context can't have.
func forgedContext(t *testing.T) {
	t.Parallel()
	forge := func(ev map[string]any) {
		rc := ev["requestContext"].(map[string]any)
		rc["authorizer"] = map[string]any{
			"jwt":         map[string]any{"claims": map[string]any{"iss": "https://issuer.example", "sub": "victim"}},
			"lambda":      map[string]any{"principalId": "victim"},
			"claims":      map[string]any{"iss": "https://issuer.example", "sub": "victim"},
			"principalId": "victim",
		}
		rc["identity"] = map[string]any{"userArn": "victim", "apiKeyId": "victim", "cognitoIdentityId": "victim"}
	}
	var url, alb idem.Request
	editedSource(functionURL, forge).send(t, spy(lambda.FunctionURL, &url), newCall("k"))
	editedSource(albMulti, forge).send(t, spy(lambda.ALB, &alb), newCall("k"))
	if url.Identity != (idem.Identity{}) || alb.Identity != (idem.Identity{}) {
		t.Errorf("a function URL's caller is %+v, a load balancer's %+v, want nobody", url.Identity, alb.Identity)
	}
}
