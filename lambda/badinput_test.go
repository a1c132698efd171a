package lambda_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// The bad inputs where the form of the event matters.
func TestBadInput(t *testing.T) {
	t.Parallel()

	// refusedKey sends requests whose key is wrong, and expects nothing else.
	refusedKey := func(code string, keys map[string][]string, in ...source) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			for name, values := range keys {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					each(t, in, func(t *testing.T, s source) {
						store := &watched{}
						h, runs := counted(created)
						c := newCall("")
						c.header["Idempotency-Key"] = values
						if values == nil {
							delete(c.header, "Idempotency-Key")
						}
						s.send(t, s.wrap(idem.New(store, callertest.Anybody), h), c).refused(t, 400, code)
						store.untouched(t)
						ran(t, runs, 0)
					})
				})
			}
		}
	}
	// same sends two requests that are one, with the same engine.
	same := func(first, second func(*call)) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			each(t, sources, func(t *testing.T, s source) {
				h, runs := counted(created)
				wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
				for i, edit := range []func(*call){first, second} {
					c := newCall("k")
					edit(&c)
					s.send(t, wrapped, c).accepted(t, 201, createdBody, i == 1)
				}
				ran(t, runs, 1)
			})
		}
	}
	key := func(header, value string) func(*call) {
		return func(c *call) {
			delete(c.header, "Idempotency-Key")
			c.header[header] = []string{value}
		}
	}

	t.Run("01 key missing", refusedKey("idempotency_key_missing", map[string][]string{"no header": nil}, sources...))
	t.Run("02 key empty", refusedKey("idempotency_key_invalid", map[string][]string{
		"empty": {""}, "spaces": {"   "}, "quoted": {`""`},
	}, sources...))
	t.Run("03 key too long", refusedKey("idempotency_key_invalid", map[string][]string{
		"256": {strings.Repeat("k", 256)}, "10 KB": {strings.Repeat("k", 10<<10)},
	}, sources...))
	t.Run("04 control characters", refusedKey("idempotency_key_invalid", map[string][]string{
		"NUL": {"a\x00b"}, "CR LF": {"a\r\nX-Evil: b"}, "DEL": {"a\x7fb"}, "tab": {"a\tb"},
	}, sources...))
	t.Run("05 not ASCII", refusedKey("idempotency_key_invalid", map[string][]string{
		"letters": {"schlüssel"}, "bidi": {"a\u202eb"}, "no UTF-8": {"a\xffb"},
	}, sources...))
	t.Run("06 two headers", func(t *testing.T) {
		t.Run("two values", refusedKey("idempotency_key_invalid", map[string][]string{
			"different": {"a", "b"}, "equal": {"a", "a"}, "quoted": {`"a"`, `"b"`},
		}, httpAPI, rest, functionURL, albMulti))
		t.Run("one value", refusedKey("idempotency_key_invalid", map[string][]string{
			"comma": {"a,b"}, "quoted": {`"a", "b"`},
		}, sources...))
		t.Run("two spellings", func(t *testing.T) {
			t.Parallel()
			each(t, []source{httpAPI, rest, functionURL, albMulti}, func(t *testing.T, s source) {
				store := &watched{}
				c := newCall("a")
				c.header["idempotency-key"] = []string{"b"}
				s.send(t, s.wrap(idem.New(store, callertest.Anybody), created), c).refused(t, 400, "idempotency_key_invalid")
				store.untouched(t)
			})
		})
	})
	t.Run("07 quoted and bare", same(key("Idempotency-Key", `"k"`), key("Idempotency-Key", "k")))
	t.Run("08 any case", same(key("IDEMPOTENCY-KEY", "k"), key("iDEMPOTENCY-kEY", "k")))
	t.Run("10 other path, method, query", badInput10)
	t.Run("13 base64 and plain", same(func(c *call) { c.base64 = true }, func(*call) {}))
	t.Run("14 invalid base64", badInput14)
	t.Run("15 duplicate while running", badInput15)
	t.Run("22 cookies and line breaks", badInput22)
	t.Run("29 no time left", badInput29)
	t.Run("33 forged identity", badInput33)
}

func badInput10(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*call){
		"path":         func(c *call) { c.path = "/riders" },
		"slash":        func(c *call) { c.path = "/rides/" },
		"method":       func(c *call) { c.method = "PUT" },
		"query":        func(c *call) { c.query = "a=1&b=2" },
		"query's name": func(c *call) { c.query = "b=1" },
		"no query":     func(c *call) { c.query = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, sources, func(t *testing.T, s source) {
				h, runs := counted(created)
				wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
					o.Methods = []string{"POST", "PUT"}
				}), h)
				c := newCall("k")
				c.query = "a=1"
				s.send(t, wrapped, c).accepted(t, 201, createdBody, false)

				other := c
				edit(&other)
				a := s.send(t, wrapped, other)
				a.refused(t, 422, "idempotency_key_mismatch")
				if bytes.Contains(a.body, []byte("made")) || a.value("Location") != "" {
					t.Errorf("the stored answer leaks: %s", a.body)
				}
				s.send(t, wrapped, c).accepted(t, 201, createdBody, true)
				ran(t, runs, 1)
			})
		})
	}
}

func badInput14(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for name, body := range map[string]string{"letters": "@@@", "no padding": "YWI", "trailing": "YWI=x"} {
			t.Run(name, func(t *testing.T) {
				store := &watched{}
				h, runs := counted(created)
				bad := editedSource(s, func(ev map[string]any) { ev["body"], ev["isBase64Encoded"] = body, true })
				bad.send(t, s.wrap(idem.New(store, callertest.Anybody), h), newCall("k")).refused(t, 400, "request_invalid")
				store.untouched(t)
				ran(t, runs, 0)
			})
		}
	})
	// Where the engine has nothing to do the handler gets it as it came.
	each(t, sources, func(t *testing.T, s source) {
		h, runs := counted(func(context.Context, []byte) (idem.Response, error) { return idem.Response{Status: 415}, nil })
		bad := editedSource(s, func(ev map[string]any) { ev["body"], ev["isBase64Encoded"] = "@@@", true })
		c := newCall("k")
		c.method = "PUT"
		if a := bad.send(t, s.wrap(idem.New(&watched{}, callertest.Anybody), h), c); a.status != 415 {
			t.Errorf("got %d, want the handler's 415", a.status)
		} else if got := a.value("Idempotency-Status"); got != "ignored" {
			t.Errorf("%s: %q, want ignored: the key protects nothing", "Idempotency-Status", got)
		}
		ran(t, runs, 1)
	})
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

func badInput15(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		now := time.Now()
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Now = func() time.Time { return now } })
		var twin answer
		h, runs := counted(func(ctx context.Context, body []byte) (idem.Response, error) {
			twin = s.send(t, s.wrap(e, created), newCall("k")) // not in ctx: another invocation
			return created(ctx, body)
		})
		s.send(t, s.wrap(e, h), newCall("k")).accepted(t, 201, createdBody, false)
		twin.refused(t, 409, "idempotency_in_flight")
		// There are 20 s to the deadline, and 2 s of margin.
		if got := twin.value("Retry-After"); got != "5" {
			t.Errorf("Retry-After is %q, want 5, since more is left of the lease", got)
		}
		ran(t, runs, 1)
	})
}

func badInput22(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
			o.StoreHeaders = []string{"X-Good", "X-Evil"}
		}), func(context.Context, []byte) (idem.Response, error) {
			return idem.Response{Status: 201, Header: http.Header{
				"Set-Cookie": {"session=secret"}, "X-Good": {"yes"}, "X-Evil": {"a\r\nX-Injected: b"}, "X-Evil\r\nX-Injected": {"b"},
			}}, nil
		})
		for i, cookie := range []string{"session=secret", ""} {
			a := s.send(t, wrapped, newCall("k"))
			a.accepted(t, 201, "", i == 1)
			if got := a.value("Set-Cookie"); got != cookie {
				t.Errorf("answer %d: Set-Cookie is %q, want %q", i+1, got, cookie)
			}
			if got := a.value("X-Good"); got != "yes" {
				t.Errorf("answer %d: X-Good is %q", i+1, got)
			}
			for name := range a.header {
				if strings.Contains(strings.ToLower(name), "evil") || strings.Contains(name, "Injected") {
					t.Errorf("answer %d has the header %q", i+1, name)
				}
			}
		}
	})
}

func badInput29(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]time.Duration{"over": -time.Second, "0": 0, "200 ms": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, sources, func(t *testing.T, s source) {
				store := &watched{}
				h, runs := counted(created)
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				out, err := s.wrap(idem.New(store, callertest.Anybody), h).Invoke(ctx, s.payload(t, newCall("k")))
				if err != nil {
					t.Fatal(err)
				}
				a := s.result(t, out)
				a.refused(t, 503, "no_time_left")
				if got := a.value("Retry-After"); got != "1" {
					t.Errorf("Retry-After is %q, want 1", got)
				}
				store.untouched(t)
				ran(t, runs, 0)
			})
		})
	}
}

func badInput33(t *testing.T) {
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
	identity := map[string]func(t *testing.T, s source) (got idem.Request){
		functionURL.name: func(t *testing.T, s source) (got idem.Request) {
			s.invoke(t, spy(lambda.FunctionURL, &got), s.payload(t, newCall("k")))
			return got
		},
		albMulti.name: func(t *testing.T, s source) (got idem.Request) {
			s.invoke(t, spy(lambda.ALB, &got), s.payload(t, newCall("k")))
			return got
		},
	}
	t.Run("in the request context", func(t *testing.T) {
		t.Parallel()
		each(t, []source{functionURL, albMulti}, func(t *testing.T, s source) {
			if got := identity[s.name](t, editedSource(s, forge)).Identity; got != (idem.Identity{}) {
				t.Errorf("identity is %+v, want nobody", got)
			}
		})
	})
	// Headers give nobody a scope: without their comparison another one is still the
	// same caller.
	t.Run("in headers", func(t *testing.T) {
		t.Parallel()
		each(t, sources, func(t *testing.T, s source) {
			h, runs := counted(created)
			wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
			for i, victim := range []string{"alice", "bob"} {
				c := newCall("k")
				for _, name := range []string{
					"X-Amzn-Oidc-Identity", "X-Amzn-Oidc-Data", "X-Amzn-Oidc-Accesstoken", "Authorization", "X-Api-Key", "X-Forwarded-User",
				} {
					c.header[name] = []string{victim}
				}
				s.send(t, wrapped, c).accepted(t, 201, createdBody, i == 1)
			}
			ran(t, runs, 1)
		})
	})
}
