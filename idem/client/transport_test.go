package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
)

// A26: a server that drops twice and then answers.
func TestA26_DroppedTwiceThenAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body := string(filled(1 << 20))
		s := &script{steps: []step{failing(errReset), failing(io.ErrUnexpectedEOF), answer(201)}}
		resp, got, err := roundTrip(t, client.New(s), request(t, "POST", body))
		if err != nil || resp.StatusCode != 201 || got != "answer" {
			t.Fatalf("%v, %q, %v", resp, got, err)
		}
		seen := s.attempts()
		if len(seen) != 3 {
			t.Fatalf("%d attempts, want 3", len(seen))
		}
		for i, a := range seen {
			if a.Body != body {
				t.Errorf("attempt %d: body of %d bytes, want all %d", i+1, len(a.Body), len(body))
			}
			if a.Key != seen[0].Key || !uuid4.MatchString(a.Key) {
				t.Errorf("attempt %d: key %q, want the first one's, a UUIDv4", i+1, a.Key)
			}
		}
		// initial 500 ms: the first wait is exactly 500 ms, the second 500 ms to 1 s.
		if got := seen[1].At.Sub(seen[0].At); got != 500*time.Millisecond {
			t.Errorf("first wait %v, want 500ms", got)
		}
		if got := seen[2].At.Sub(seen[1].At); got < 500*time.Millisecond || got > time.Second {
			t.Errorf("second wait %v, want 500ms to 1s", got)
		}
	})
}

// A27: the client obeys the server's Retry-After and should-retry header.
func TestA27_ServerSaysWhenAndWhether(t *testing.T) {
	t.Parallel()
	t.Run("Retry-After: 2 is waited for", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{answer(503, "Retry-After", "2"), answer(200)}}
			if got := status(t, client.New(s), request(t, "POST", "x")); got != 200 {
				t.Errorf("status %d", got)
			}
			if wait := s.attempts()[1].At.Sub(s.attempts()[0].At); wait < 2*time.Second || wait > 3*time.Second {
				t.Errorf("waited %v, want 2s and a little", wait)
			}
		})
	})
	t.Run("should-retry false is final", func(t *testing.T) {
		t.Parallel()
		s := &script{steps: []step{answer(500, "Stripe-Should-Retry", "false")}}
		if got := status(t, client.New(s), request(t, "POST", "x")); got != 500 || len(s.attempts()) != 1 {
			t.Errorf("status %d after %d attempts, want 500 after 1", got, len(s.attempts()))
		}
	})
	t.Run("400 is never retried", func(t *testing.T) {
		t.Parallel()
		s := &script{steps: []step{answer(400)}}
		if got := status(t, client.New(s), request(t, "POST", "x")); got != 400 || len(s.attempts()) != 1 {
			t.Errorf("status %d after %d attempts, want 400 after 1", got, len(s.attempts()))
		}
	})
	t.Run("cancelling stops the wait at once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{answer(503, "Retry-After", "30")}}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(7*time.Second, cancel)
			start := time.Now()
			e := failure(t, client.New(s), request(t, "POST", "x").WithContext(ctx))
			if !errors.Is(e, context.Canceled) || time.Since(start) != 7*time.Second || len(s.attempts()) != 1 {
				t.Errorf("%v after %v and %d attempts, want cancelled after 7s and 1", e, time.Since(start), len(s.attempts()))
			}
			if !strings.Contains(e.Error(), "status 503") {
				t.Errorf("%v, want what is waited for", e)
			}
			if e.Key != s.attempts()[0].Key || !e.Unknown {
				t.Errorf("the error must have the key and say that the outcome is unknown: %+v", e)
			}
			s.allClosed(t)
		})
	})
}

func TestOtherMethodsPassUntouched(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{failing(errReset)}}
	c := &counts{}
	tr := client.New(s, func(o *client.Options) { o.Methods, o.Hooks = []string{"POST"}, c.hooks() })
	for _, method := range []string{"PATCH", "CHARGE", "CONNECT"} {
		if _, err := tr.RoundTrip(request(t, method, "x")); err != errReset { //nolint:errorlint // the very same error
			t.Errorf("%s: %v, want the base transport's own error", method, err)
		}
	}
	if len(s.attempts()) != 3 || c.of("attempt") != 0 {
		t.Errorf("%d attempts, %d events, want 3 and none", len(s.attempts()), c.of("attempt"))
	}
}

func TestGivesBackWhatItLastGot(t *testing.T) {
	t.Parallel()
	t.Run("an answer", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := &counts{}
			s := &script{steps: []step{answerBody(500, "one"), answerBody(503, "two"), answerBody(502, "three")}}
			resp, body, err := roundTrip(t, client.New(s, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, "POST", "x"))
			if err != nil || resp.StatusCode != 502 || body != "three" {
				t.Errorf("%v, %q, %v, want the last answer", resp, body, err)
			}
			if resp.Request.Header.Get(keyHeader) != s.attempts()[0].Key {
				t.Error("the response's request must have the key")
			}
			if resp.Request.Context().Err() != nil {
				t.Error("the response's request must not have an ended context")
			}
			if c.of("attempt") != 3 || c.of("retry status") != 2 || c.of("gave up retries") != 1 || c.of("key") != 1 {
				t.Errorf("hooks %v", c.n)
			}
			s.allClosed(t)
		})
	})
	t.Run("an error", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{failing(errReset)}}
			e := failure(t, client.New(s), request(t, "POST", "x"))
			want := &client.Error{Key: s.attempts()[0].Key, Attempts: 3, Unknown: true, GaveUp: "retries", Err: errReset}
			if *e != *want {
				t.Errorf("%+v, want %+v", e, want)
			}
			if strings.Contains(e.Error(), e.Key) {
				t.Errorf("the message has the key in it: %v", e)
			}
		})
	})
	t.Run("no retries by option", func(t *testing.T) {
		t.Parallel()
		s := &script{steps: []step{answer(503)}}
		status(t, client.New(s, func(o *client.Options) { o.MaxRetries = -1 }), request(t, "POST", "x"))
		if len(s.attempts()) != 1 {
			t.Errorf("%d attempts, want 1", len(s.attempts()))
		}
	})
}

func TestDefaultsAndMistakes(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	if client.New(nil) == nil {
		t.Error("no transport")
	}
	_ = client.New(nil, func(o *client.Options) { // the limits themselves
		o.KeyLifetime, o.InitialDelay, o.MaxDelay, o.MaxRetryAfter = 2*time.Second+1, year, year, year
		o.BudgetRatio, o.BudgetPerSecond, o.MaxBuffer, o.MaxAnswer = 1, 1e9, 1<<50-1, 1<<50-1
	})
	for name, set := range map[string]func(*client.Options){
		"header name":      func(o *client.Options) { o.KeyHeader = "Idempotency Key" },
		"GET":              func(o *client.Options) { o.Methods = []string{"GET"} },
		"HEAD":             func(o *client.Options) { o.Methods = []string{"HEAD"} },
		"OPTIONS":          func(o *client.Options) { o.Methods = []string{"OPTIONS"} },
		"TRACE":            func(o *client.Options) { o.Methods = []string{"TRACE"} },
		"no method":        func(o *client.Options) { o.Methods = []string{"PO ST"} },
		"lower case":       func(o *client.Options) { o.Methods = []string{"post"} },
		"empty method":     func(o *client.Options) { o.Methods = []string{""} },
		"initial delay":    func(o *client.Options) { o.InitialDelay = -1 },
		"max below it":     func(o *client.Options) { o.MaxDelay = time.Millisecond },
		"retry-after":      func(o *client.Options) { o.MaxRetryAfter = -1 },
		"attempt timeout":  func(o *client.Options) { o.AttemptTimeout = -1 },
		"lifetime":         func(o *client.Options) { o.KeyLifetime = 2 * time.Second },
		"ratio":            func(o *client.Options) { o.BudgetRatio = 1.5 },
		"negative ratio":   func(o *client.Options) { o.BudgetRatio = -1 },
		"per second":       func(o *client.Options) { o.BudgetPerSecond = -1 },
		"years of delay":   func(o *client.Options) { o.MaxDelay = year + 1 },
		"years of waiting": func(o *client.Options) { o.MaxRetryAfter = year + 1 },
		"endless budget":   func(o *client.Options) { o.BudgetPerSecond = 2e9 },
		"nil journal":      func(o *client.Options) { o.Journal = (*client.FileJournal)(nil) },
		"buffer too large": func(o *client.Options) { o.MaxBuffer = 1 << 50 },
		"answer too large": func(o *client.Options) { o.MaxAnswer = 1 << 50 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "client: New: ") {
					t.Errorf("panicked with %q, want a message", p)
				}
			}()
			client.New(nil, set)
		})
	}
}

// The defaults, to the byte and within their bounds.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for size, sent := range map[int]int{4 << 20: 1, 4<<20 + 1: 0} {
		s := &script{steps: []step{answer(200)}}
		req := request(t, "POST", "")
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(bytes.NewReader(filled(size))), nil, -1
		if resp, err := client.New(s).RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
		if len(s.attempts()) != sent {
			t.Errorf("a body of %d bytes is sent %d times, want %d", size, len(s.attempts()), sent)
		}
	}
	for size, whole := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		s := &script{steps: []step{answerBody(200, string(filled(size)))}}
		resp, err := client.New(s).RoundTrip(request(t, "POST", "x"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.bodies[0].isClosed(); got != whole {
			t.Errorf("an answer of %d bytes is read to its end: %t, want %t", size, got, whole)
		}
		_ = resp.Body.Close()
	}
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{failing(errReset)}}
		_ = failure(t, client.New(s, func(o *client.Options) { o.MaxRetries, o.NoBudget = 50, true }), request(t, "POST", "x"))
		var longest time.Duration
		for i, a := range s.attempts()[1:] {
			longest = max(longest, a.At.Sub(s.attempts()[i].At))
		}
		if longest > 5*time.Second || longest < 4*time.Second {
			t.Errorf("the longest wait of 50 is %v, want nearly 5 s", longest)
		}
	})
}

// A variable that holds no transport is no transport either.
func TestNilTransportIsTheDefault(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var none *http.Transport
	if got := status(t, client.New(none), requestTo(t, server.URL)); got != 404 {
		t.Errorf("status %d", got)
	}
}

// Client and server use the same header names, though neither package imports the
// other.
func TestSpeaksTheServersLanguage(t *testing.T) {
	t.Parallel()
	if keyHeader != idem.KeyHeader { // in which the scripts of these tests find the key
		t.Error("the key header differs from the server's")
	}
	synctest.Test(t, func(t *testing.T) {
		c := &counts{}
		s := &script{steps: []step{answer(503, "Idempotency-Expires", time.Now().Add(time.Second).UTC().Format(http.TimeFormat)), answer(200)}}
		tr := client.New(s, func(o *client.Options) { o.Hooks = c.hooks() })
		status(t, tr, request(t, "POST", "x"))
		s.steps = []step{answer(200, idem.ReplayedHeader, "true")}
		status(t, tr, request(t, "POST", "x"))
		if c.of("gave up lifetime") != 1 || c.of("replayed") != 1 {
			t.Errorf("hooks %v", c.n)
		}
	})
}

func TestCloseIdleConnections(t *testing.T) {
	t.Parallel()
	closed := 0
	(&http.Client{Transport: client.New(closer{&closed})}).CloseIdleConnections()
	client.New(&script{}).CloseIdleConnections() // the script has no such method
	if closed != 1 {
		t.Errorf("closed %d times, want 1", closed)
	}
}

type closer struct{ n *int }

func (c closer) RoundTrip(*http.Request) (*http.Response, error) { return nil, errReset }
func (c closer) CloseIdleConnections()                           { *c.n++ }
