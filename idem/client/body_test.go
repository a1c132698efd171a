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
		"and so it is declared":     {method: "POST", body: onlyReader{strings.NewReader("abc")}, length: 3, opt: buffer(3), want: "abc", tries: 3},
		"a byte":                    {method: "POST", body: onlyReader{strings.NewReader("a")}, want: "a", tries: 3},
		"empty":                     {method: "POST", body: onlyReader{strings.NewReader("")}, tries: 3},
		"none":                      {method: "POST", tries: 3},
		"NoBody":                    {method: "POST", body: http.NoBody, tries: 3},
		"NoBody, no buffer":         {method: "POST", body: http.NoBody, opt: buffer(-1), tries: 3},
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
				if req.Body == http.NoBody {
					req.GetBody = nil
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
		for option, opt := range map[string]func(*client.Options){
			"buffer": buffer(3), "no buffer": buffer(-1), "one retry": func(o *client.Options) { o.MaxBuffer, o.MaxRetries = 3, 1 },
		} {
			t.Run(name+", "+option, func(t *testing.T) {
				t.Parallel()
				s := &script{steps: []step{answer(200)}}
				req := request(t, "POST", "")
				content := strings.NewReader("abcd")
				body := &trackedBody{ReadCloser: io.NopCloser(content)}
				req.Body, req.GetBody, req.ContentLength = body, nil, length
				e := failure(t, client.New(s, opt), req)
				if !errors.Is(e, client.ErrBody) || len(s.attempts()) != 0 || e.Unknown || !body.isClosed() {
					t.Errorf("%+v after %d attempts, body closed: %t", e, len(s.attempts()), body.isClosed())
				}
				if length != 0 && content.Len() != 4 {
					t.Error("the body was read, though its length tells that it is too long")
				}
				for _, hint := range []string{"GetBody", "MaxBuffer", "bytes.Reader", map[bool]string{false: "(3 bytes)", true: "(0 bytes)"}[option == "no buffer"]} {
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
			if !errors.Is(e, broken) || !errors.Is(e, client.ErrBody) || len(s.attempts()) != 1 || e.Attempts != 1 || !e.Unknown || e.GaveUp != "" {
				t.Errorf("%+v after %d attempts", e, len(s.attempts()))
			}
		})
	})
	t.Run("of a named operation: nothing is sent or remembered", func(t *testing.T) {
		t.Parallel()
		for name, get := range map[string]func() (io.ReadCloser, error){
			"GetBody": func() (io.ReadCloser, error) { return nil, broken },
			"its body": func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader("x"), errReader{broken})), nil
			},
		} {
			j := open(t, journalFile(t))
			s := &script{steps: []step{answer(200)}}
			req := named(t, "POST", "order-42", "x")
			req.GetBody = get
			if e := failure(t, client.New(s, with(j)), req); !errors.Is(e, broken) || len(s.attempts()) != 0 || len(j.Entries()) != 0 {
				t.Errorf("%s: %v after %d attempts, entries %+v", name, e, len(s.attempts()), j.Entries())
			}
		}
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

// Once a body is the base transport's, the end of the request's context closes it no more.
func TestBodyIsNotClosedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		req := request(t, "PUT", "").WithContext(ctx)
		body := &trackedBody{ReadCloser: io.NopCloser(strings.NewReader("abcdefgh"))}
		req.Body, req.GetBody, req.ContentLength = body, nil, -1
		status(t, client.New(&script{steps: []step{answer(200)}}, buffer(3)), req)
		body.mu.Lock()
		body.closed = false
		body.mu.Unlock()
		cancel()
		synctest.Wait()
		if body.isClosed() {
			t.Error("it was closed once more")
		}
	})
}

// A request without a body has no GetBody either: who calls it reads what it gives.
func TestNoBodyHasNoGetBody(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
		if req.GetBody != nil {
			t.Error("GetBody gives a body that isn't there")
		}
		return answer(200)(req)
	}}}
	for _, method := range []string{"GET", "POST"} {
		req, _ := http.NewRequestWithContext(t.Context(), method, "http://api.test", nil)
		status(t, client.New(s), req)
	}
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

// The base transport compares a declared length with the body.
func TestBufferedBodyKeepsItsLength(t *testing.T) {
	t.Parallel()
	for declared, want := range map[int64]int64{-1: 3, 0: 3, 1: 1, 5: 5} {
		s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
			if req.ContentLength != want {
				t.Errorf("declared %d, sent with %d, want %d", declared, req.ContentLength, want)
			}
			return answer(200)(req)
		}}}
		req := request(t, "POST", "")
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(strings.NewReader("abc")), nil, declared
		status(t, client.New(s), req)
	}
	// net/http sends an empty body of another type in chunks.
	s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
		if req.Body != http.NoBody || req.ContentLength != 0 {
			t.Errorf("an empty body is sent as %T, length %d", req.Body, req.ContentLength)
		}
		return answer(200)(req)
	}}}
	req := request(t, "POST", "")
	req.Body, req.GetBody, req.ContentLength = io.NopCloser(strings.NewReader("")), nil, -1
	status(t, client.New(s), req)
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
