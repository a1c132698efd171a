package lambda_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// The scenarios where the form of the event matters; those of a key's life are in acceptance_life_test.go.

func withoutKey() call {
	c := newCall("")
	delete(c.header, "Idempotency-Key")
	return c
}

func TestA05MissingKey(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for _, mode := range []idem.KeyMode{idem.KeyRequired, idem.KeyOptional, idem.KeyGenerate} {
			store := &watched{}
			var log bytes.Buffer
			h, runs := counted(created)
			a := s.send(t, s.wrap(idem.New(store, callertest.Anybody, func(o *idem.Options) {
				o.Key, o.Logger = mode, slog.New(slog.NewTextHandler(&log, nil))
			}), h), withoutKey())
			switch mode {
			case idem.KeyRequired:
				a.refused(t, 400, "idempotency_key_missing")
				store.untouched(t)
				ran(t, runs, 0)
			case idem.KeyOptional:
				a.accepted(t, 201, createdBody, false)
				store.untouched(t)
				ran(t, runs, 1)
				if got := a.value("Idempotency-Key"); got != "" {
					t.Errorf("optional: key %q was made", got)
				}
			case idem.KeyGenerate:
				a.accepted(t, 201, createdBody, false)
				ran(t, runs, 1)
				if a.value("Idempotency-Key") == "" || !strings.Contains(log.String(), "without an idempotency key") {
					t.Errorf("generate: no key echoed, or no warning: %v, %s", a.header, &log)
				}
			}
		}
	})
}

func TestA06KeyLength(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		key := strings.Repeat("k", 255)
		a := s.send(t, s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), created), newCall(key))
		a.accepted(t, 201, createdBody, false)
		if got := a.value("Idempotency-Key"); got != key {
			t.Errorf("the echoed key is %q", got)
		}
	})
	// 256, empty, control characters: TestBadInput, 02 to 04.
}

func TestA07StrictKey(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		h, runs := counted(created)
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.StrictKey = true }), h)
		s.send(t, wrapped, newCall(`"k"`)).accepted(t, 201, createdBody, false)
		s.send(t, wrapped, newCall("new")).refused(t, 400, "idempotency_key_invalid")
		s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, true)
		s.send(t, wrapped, newCall(`"k"`)).accepted(t, 201, createdBody, true)
		ran(t, runs, 1)
	})
	// Not strict: TestBadInput, 07.
}

func TestA08TwoUsers(t *testing.T) {
	t.Parallel()
	each(t, []source{httpAPI, rest, functionURL}, func(t *testing.T, s source) {
		n := 0
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), func(context.Context, []byte) (idem.Response, error) {
			n++
			return idem.Response{Status: 201, Body: []byte{'0' + byte(n)}}, nil
		})
		send := func(user string) answer {
			c := newCall("k")
			c.user = user
			return s.send(t, wrapped, c)
		}
		send("alice").accepted(t, 201, "1", false)
		send("bob").accepted(t, 201, "2", false)
		send("").accepted(t, 201, "3", false)
		send("alice").accepted(t, 201, "1", true)
		send("bob").accepted(t, 201, "2", true)
	})
}

// The same user of the same issuer is one caller through both kinds of API.
func TestOneUserTwoAPIs(t *testing.T) {
	t.Parallel()
	h, runs := counted(created)
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	c := newCall("k")
	c.user = "alice"
	httpAPI.send(t, httpAPI.wrap(e, h), c).accepted(t, 201, createdBody, false)
	rest.send(t, rest.wrap(e, h), c).accepted(t, 201, createdBody, true)
	ran(t, runs, 1)
}

func TestA14RefusedRequestKeepsItsKeyFree(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for _, status := range []int{401, 422, 429} {
			h, runs := counted(func(ctx context.Context, body []byte) (idem.Response, error) {
				if string(body) != goldenBody {
					return idem.Response{Status: status, Body: []byte("no")}, nil
				}
				return created(ctx, body)
			})
			wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
			bad := newCall("k")
			bad.body = []byte(`{"origin_lat":1000}`)
			s.send(t, wrapped, bad).accepted(t, status, "no", false)
			s.send(t, wrapped, bad).accepted(t, status, "no", false)
			s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, false)
			s.send(t, wrapped, newCall("k")).accepted(t, 201, createdBody, true)
			ran(t, runs, 3)
		}
	})
}

func TestA15OtherTokenAndTrace(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		h, runs := counted(created)
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
		for i, try := range []string{"first", "second"} {
			c := newCall("k")
			for _, name := range []string{"Authorization", "Traceparent", "X-Request-Id", "X-Amzn-Trace-Id", "Cookie", "User-Agent"} {
				c.header[name] = []string{try}
			}
			s.send(t, wrapped, c).accepted(t, 201, createdBody, i == 1)
		}
		ran(t, runs, 1)
	})
}

// A handler's error is answered: the key is free, and the answer says nothing of the error.
func TestHandlerError(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom: secret")
	each(t, sources, func(t *testing.T, s source) {
		failing := true
		h := func(ctx context.Context, body []byte) (idem.Response, error) {
			if failing {
				return idem.Response{}, boom
			}
			return created(ctx, body)
		}
		store := &idem.MemoryStore{}
		a := s.send(t, s.wrap(idem.New(store, callertest.Anybody), h), newCall("k"))
		a.refused(t, 500, "internal_error")
		if strings.Contains(string(a.body), "secret") {
			t.Errorf("the error leaks: %s", a.body)
		}
		failing = false
		again := s.wrap(idem.New(store, callertest.Anybody), h)
		s.send(t, again, newCall("k")).accepted(t, 201, createdBody, false)
		s.send(t, again, newCall("k")).accepted(t, 201, createdBody, true)
	})
}
