package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem/client"
)

func TestAttemptTimeout(t *testing.T) {
	t.Parallel()
	slowBody := func(req *http.Request) (*http.Response, error) {
		resp, err := answer(200)(req)
		resp.Body = io.NopCloser(readFunc(func([]byte) (int, error) {
			<-req.Context().Done()
			return 0, context.Cause(req.Context())
		}))
		return resp, err
	}
	timeout := func(o *client.Options) { o.AttemptTimeout = 3 * time.Second }
	t.Run("no headers in time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := &counts{}
			s := &script{steps: []step{hanging, answer(200)}}
			start := time.Now()
			got := status(t, client.New(s, timeout, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, "POST", "x"))
			if got != 200 || c.of("retry timeout") != 1 || time.Since(start) != 3500*time.Millisecond {
				t.Errorf("status %d after %v, %v", got, time.Since(start), c.n)
			}
		})
	})
	t.Run("a keyed answer whose body hangs", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{slowBody, answer(200)}}
			if _, body, err := roundTrip(t, client.New(s, timeout), request(t, "POST", "x")); body != "answer" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
			s.allClosed(t)
		})
	})
	t.Run("it ends with the headers where there is no key", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
				resp, err := answer(200)(req)
				resp.Body = io.NopCloser(io.MultiReader(readFunc(func([]byte) (int, error) {
					select {
					case <-time.After(time.Hour):
						return 0, io.EOF
					case <-req.Context().Done():
						return 0, context.Cause(req.Context())
					}
				}), strings.NewReader("late")))
				return resp, err
			}}}
			if _, body, err := roundTrip(t, client.New(s, timeout), request(t, "GET", "")); body != "late" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
		})
	})
	t.Run("whatever the transport makes of it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			for _, late := range []step{failing(context.Canceled), failing(errReset), answer(400)} {
				for _, method := range []string{"POST", "GET"} {
					s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
						_, _ = hanging(req)
						return late(req)
					}, answer(201)}}
					if got := status(t, client.New(s, timeout), request(t, method, "x")); got != 201 {
						t.Errorf("status %d", got)
					}
					s.allClosed(t)
				}
			}
		})
	})
	t.Run("the error is a timeout", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			const told = "client: gave up after attempt 1 (retries): attempt timed out: i/o timeout"
			for want, after := range map[string]func(*http.Request) (*http.Response, error){
				told:                                func(req *http.Request) (*http.Response, error) { return nil, context.Cause(req.Context()) },
				told + ": connection reset by peer": failing(errReset),
			} {
				e := failure(t, client.New(&script{steps: []step{func(req *http.Request) (*http.Response, error) {
					_, _ = hanging(req)
					return after(req)
				}}}, timeout, func(o *client.Options) { o.MaxRetries = -1 }), request(t, "POST", "x"))
				if !errors.Is(e, os.ErrDeadlineExceeded) || !e.Timeout() || errors.Is(e, context.DeadlineExceeded) || e.Error() != want {
					t.Errorf("%v, want %s", e, want)
				}
			}
			// An answer that came too late.
			if e := failure(t, client.New(&script{steps: []step{func(req *http.Request) (*http.Response, error) {
				_, _ = hanging(req)
				return answer(200)(req)
			}}}, timeout, func(o *client.Options) { o.MaxRetries = -1 }), request(t, "POST", "x")); e.Error() != told {
				t.Errorf("%v, want %s", e, told)
			}
		})
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
