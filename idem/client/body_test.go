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

// stripe/stripe-go #647: a retried POST with an empty body.
func TestBodyIsSentWholeEachTime(t *testing.T) {
	t.Parallel()
	whole := string(filled(1 << 20))
	for name, tt := range map[string]struct {
		method string
		body   io.Reader
		length int64 // declared
		opt    func(*client.Options)
		want   string
		tries  int // number of attempts
	}{
		"GetBody":                   {method: "POST", body: strings.NewReader(whole), length: 1 << 20, want: whole, tries: 3},
		"buffered":                  {method: "POST", body: onlyReader{strings.NewReader(whole)}, want: whole, tries: 3},
		"buffered, length declared": {method: "POST", body: onlyReader{strings.NewReader("abc")}, length: 3, want: "abc", tries: 3},
		"as long as the buffer":     {method: "POST", body: onlyReader{strings.NewReader("abc")}, opt: buffer(3), want: "abc", tries: 3},
		"empty":                     {method: "POST", body: onlyReader{strings.NewReader("")}, tries: 3},
		"none":                      {method: "POST", tries: 3},
		"NoBody":                    {method: "POST", body: http.NoBody, tries: 3},
		"PUT, buffered":             {method: "PUT", body: onlyReader{strings.NewReader("abc")}, want: "abc", tries: 3},
		"PUT, too long":             {method: "PUT", body: onlyReader{strings.NewReader("abcdefgh")}, opt: buffer(3), want: "abcdefgh", tries: 1},
		"PUT, declared too long":    {method: "PUT", body: onlyReader{strings.NewReader("abcd")}, length: 4, opt: buffer(3), want: "abcd", tries: 1},
		"PUT, no buffer":            {method: "PUT", body: onlyReader{strings.NewReader("abcd")}, opt: buffer(-1), want: "abcd", tries: 1},
		"POST, never retried":       {method: "POST", body: onlyReader{strings.NewReader("abcd")}, opt: neverRetry, want: "abcd", tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{failing(errReset)}}
				req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://api.test/", tt.body)
				if err != nil {
					t.Fatal(err)
				}
				if tt.length != 0 {
					req.ContentLength = tt.length
				}
				var body *trackedBody
				if req.Body != nil && req.Body != http.NoBody {
					body = &trackedBody{ReadCloser: req.Body}
					req.Body = body
				}
				if tt.opt == nil {
					tt.opt = func(*client.Options) {}
				}
				e := failure(t, client.New(s, tt.opt), req)
				if len(s.attempts()) != tt.tries || e.Attempts != tt.tries {
					t.Errorf("%d attempts, want %d", len(s.attempts()), tt.tries)
				}
				for i, a := range s.attempts() {
					if a.Body != tt.want {
						t.Errorf("attempt %d: %d bytes, want %d", i+1, len(a.Body), len(tt.want))
					}
				}
				if body != nil && !body.isClosed() {
					t.Error("the caller's body was not closed")
				}
			})
		})
	}
}

func buffer(n int64) func(*client.Options) { return func(o *client.Options) { o.MaxBuffer = n } }

func neverRetry(o *client.Options) { o.MaxRetries, o.MaxBuffer = -1, 3 }

func TestBodyIsRefused(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]int64{"found too long": 0, "declared too long": 4} {
		for option, opt := range map[string]func(*client.Options){"buffer": buffer(3), "no buffer": buffer(-1)} {
			t.Run(name+", "+option, func(t *testing.T) {
				t.Parallel()
				s := &script{steps: []step{answer(200)}}
				req := request(t, "POST", "")
				body := &trackedBody{ReadCloser: io.NopCloser(strings.NewReader("abcd"))}
				req.Body, req.GetBody, req.ContentLength = body, nil, length
				e := failure(t, client.New(s, opt), req)
				if !errors.Is(e, client.ErrBody) || len(s.attempts()) != 0 || e.Unknown || !body.isClosed() {
					t.Errorf("%+v after %d attempts, body closed: %t", e, len(s.attempts()), body.isClosed())
				}
				for _, hint := range []string{"GetBody", "MaxBuffer", "bytes.Reader"} {
					if !strings.Contains(e.Error(), hint) {
						t.Errorf("%v: must name %s", e, hint)
					}
				}
			})
		}
	}
}

func TestBodyFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	t.Run("while it is buffered: nothing is sent", func(t *testing.T) {
		t.Parallel()
		s := &script{steps: []step{answer(200)}}
		req := request(t, "POST", "")
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(errReader{broken}), nil, -1
		if e := failure(t, client.New(s), req); !errors.Is(e, broken) || len(s.attempts()) != 0 {
			t.Errorf("%v after %d attempts", e, len(s.attempts()))
		}
	})
	t.Run("GetBody: no retry", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{failing(errReset)}}
			req := request(t, "POST", "x")
			req.GetBody = func() (io.ReadCloser, error) { return nil, broken }
			e := failure(t, client.New(s), req)
			if !errors.Is(e, broken) || !errors.Is(e, client.ErrBody) || len(s.attempts()) != 1 || e.Attempts != 1 || !e.Unknown {
				t.Errorf("%+v after %d attempts", e, len(s.attempts()))
			}
		})
	})
	t.Run("hanging: cancelling closes it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{answer(200)}}
			req := request(t, "POST", "")
			r, w := io.Pipe()
			defer w.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req.Body, req.GetBody, req.ContentLength = r, nil, -1
			e := failure(t, client.New(s), req.WithContext(ctx))
			if !errors.Is(e, context.DeadlineExceeded) || len(s.attempts()) != 0 {
				t.Errorf("%v after %d attempts", e, len(s.attempts()))
			}
		})
	})
}

// The base transport can rewind the body too (HTTP/2, redirects).
func TestBufferedBodyHasGetBody(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
		b, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		again, _ := io.ReadAll(b)
		if string(again) != "abc" || req.ContentLength != 3 {
			t.Errorf("GetBody gives %q, length %d", again, req.ContentLength)
		}
		return answer(200)(req)
	}}}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://api.test", onlyReader{strings.NewReader("abc")})
	status(t, client.New(s), req)
	if req.GetBody != nil || req.ContentLength != 0 {
		t.Error("the caller's request was changed")
	}
}

// Trailers get their values while the body is read.
func TestTrailersReachTheTransport(t *testing.T) {
	t.Parallel()
	req := request(t, "POST", "x")
	req.Trailer = http.Header{"Sum": nil}
	req.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), readFunc(func([]byte) (int, error) {
		req.Trailer.Set("Sum", "abc")
		return 0, io.EOF
	})))
	s := &script{steps: []step{func(r *http.Request) (*http.Response, error) {
		if got := r.Trailer.Get("Sum"); got != "abc" {
			t.Errorf("trailer %q", got)
		}
		return answer(200)(r)
	}}}
	status(t, client.New(s), req)
}
