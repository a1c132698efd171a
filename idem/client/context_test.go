package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem/client"
)

func TestContext(t *testing.T) {
	t.Parallel()
	t.Run("cancelled before: nothing is sent", func(t *testing.T) {
		t.Parallel()
		s := &script{steps: []step{answer(200)}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e := failure(t, client.New(s), request(t, "POST", "x").WithContext(ctx))
		if !errors.Is(e, context.Canceled) || len(s.attempts()) != 0 || e.Unknown {
			t.Errorf("%+v after %d attempts", e, len(s.attempts()))
		}
	})
	t.Run("cancelled during an attempt: no retry", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{hanging}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			e := failure(t, client.New(s), request(t, "POST", "x").WithContext(ctx))
			if !errors.Is(e, context.DeadlineExceeded) || !e.Timeout() || len(s.attempts()) != 1 || !e.Unknown || e.GaveUp != "" || strings.Count(e.Error(), "deadline") != 1 {
				t.Errorf("%+v after %d attempts", e, len(s.attempts()))
			}
		})
	})
	t.Run("cancelled, and the transport says something else", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
				_, _ = hanging(req)
				return nil, errReset
			}}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			e := failure(t, client.New(s), request(t, "POST", "x").WithContext(ctx))
			if !errors.Is(e, context.DeadlineExceeded) || !errors.Is(e, errReset) || len(s.attempts()) != 1 {
				t.Errorf("%v after %d attempts", e, len(s.attempts()))
			}
		})
	})
	t.Run("an attempt's context ends with its answer's body", func(t *testing.T) {
		t.Parallel()
		for name, end := range map[string]func(*http.Response){
			"read":   func(r *http.Response) { _, _ = io.ReadAll(r.Body) },
			"closed": func(r *http.Response) { _ = r.Body.Close() },
		} {
			var ctx context.Context
			s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
				ctx = req.Context()
				return answer(200)(req)
			}}}
			resp, err := client.New(s).RoundTrip(request(t, "GET", ""))
			if err != nil {
				t.Fatal(err)
			}
			before := ctx.Err()
			end(resp)
			if before != nil || ctx.Err() == nil {
				t.Errorf("%s: %v before, %v after", name, before, ctx.Err())
			}
			_ = resp.Body.Close()
		}
	})
	t.Run("or with its error", func(t *testing.T) {
		t.Parallel()
		var ctx context.Context
		s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
			ctx = req.Context()
			return nil, errReset
		}}}
		if _ = failure(t, client.New(s, func(o *client.Options) { o.MaxRetries = -1 }), request(t, "GET", "")); ctx.Err() == nil {
			t.Error("it goes on")
		}
	})
	t.Run("a wait beyond the deadline isn't begun", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := &counts{}
			s := &script{steps: []step{answer(503, "Retry-After", "10")}}
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
			defer cancel()
			start := time.Now()
			got := status(t, client.New(s, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, "POST", "x").WithContext(ctx))
			if got != 503 || !time.Now().Equal(start) || c.of("gave up deadline") != 1 {
				t.Errorf("status %d after %v, %v; want the 503 at once", got, time.Since(start), c.n)
			}
		})
	})
	t.Run("Request.Cancel stops the wait", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{failing(errReset)}}
			cancel := make(chan struct{})
			time.AfterFunc(100*time.Millisecond, func() { close(cancel) })
			req := request(t, "POST", "x")
			req.Cancel = cancel //nolint:staticcheck // deprecated, but http.Client uses it
			e := failure(t, client.New(s), req)
			if !errors.Is(e, context.Canceled) || !errors.Is(e, errReset) || len(s.attempts()) != 1 {
				t.Errorf("%v after %d attempts", e, len(s.attempts()))
			}
		})
	})
}
