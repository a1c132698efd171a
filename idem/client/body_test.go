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
	buffer := client.MaxBuffer
	unseen := func(s string) io.Reader { return onlyReader{strings.NewReader(s)} } // no GetBody
	for name, tt := range map[string]struct {
		method string
		body   io.Reader
		length int64 // declared
		opt    func(*client.Options)
		want   string // sent each time, or left unread
		told   int64  // declared to the base transport
		tries  int    // 0: refused
	}{
		"GetBody":                   {"POST", strings.NewReader(whole), 1 << 20, nil, whole, 1 << 20, 3},
		"buffered":                  {"POST", unseen(whole), -1, nil, whole, 1 << 20, 3},
		"buffered, length declared": {"POST", unseen("abc"), 3, nil, "abc", 3, 3},
		"declared too short":        {"POST", unseen("abc"), 1, nil, "abc", 1, 3}, // the base transport compares
		"as long as the buffer":     {"POST", unseen("abc"), 0, buffer(3), "abc", 3, 3},
		"and so it is declared":     {"POST", unseen("abc"), 3, buffer(3), "abc", 3, 3},
		"empty":                     {"POST", unseen(""), -1, nil, "", 0, 3},
		"none":                      {"POST", nil, 0, nil, "", 0, 3},
		"NoBody, no buffer":         {"POST", http.NoBody, 0, buffer(-1), "", 0, 3},
		"PUT, buffered":             {"PUT", unseen("abc"), 0, nil, "abc", 3, 3},
		"PUT, too long":             {"PUT", unseen("abcdefgh"), 0, buffer(3), "abcdefgh", 0, 1},
		"PUT, declared too long":    {"PUT", unseen("abcd"), 4, buffer(3), "abcd", 4, 1},
		"PUT, no buffer":            {"PUT", unseen("abcd"), 0, buffer(-1), "abcd", 0, 1},
		"POST, never retried":       {"POST", unseen("abcd"), 0, func(o *client.Options) { o.MaxRetries = -1; buffer(3)(o) }, "abcd", 0, 1},
		"POST, too long":            {"POST", unseen("abcd"), 0, buffer(3), "", 0, 0},
		"POST, declared too long":   {"POST", unseen("abcd"), 4, buffer(3), "abcd", 0, 0}, // and so it isn't read
		"POST, no buffer":           {"POST", unseen("abcd"), 0, buffer(-1), "abcd", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
					if req.ContentLength != tt.told || tt.tries == 3 && tt.body != nil && req.GetBody == nil || tt.body == nil && req.GetBody != nil ||
						tt.want == "" && tt.body != nil && req.Body != http.NoBody {
						t.Errorf("sent as %T, GetBody: %t, length %d, want %d", req.Body, req.GetBody != nil, req.ContentLength, tt.told)
					}
					return nil, errReset
				}}}
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
				opts := []func(*client.Options){}
				if tt.opt != nil {
					opts = append(opts, tt.opt)
				}
				e := failure(t, client.New(s, opts...), req)
				if len(s.attempts()) != tt.tries || e.Attempts != tt.tries || errors.Is(e, client.ErrBody) != (tt.tries == 0) {
					t.Errorf("%v after %d attempts, want %d", e, len(s.attempts()), tt.tries)
				}
				for i, a := range s.attempts() {
					if a.Body != tt.want {
						t.Errorf("attempt %d: %d bytes, want %d", i+1, len(a.Body), len(tt.want))
					}
				}
				if body != nil && !body.isClosed() {
					t.Error("the caller's body was not closed")
				}
				if tt.tries == 0 {
					if left, _ := io.ReadAll(tt.body); string(left) != tt.want || !strings.Contains(e.Error(), "GetBody") {
						t.Errorf("%v, %q is unread; want %q, and what to do about it", e, left, tt.want)
					}
				}
			})
		})
	}
}

func TestBodyFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	unread := func(r io.Reader) func(*http.Request) {
		return func(req *http.Request) { req.Body, req.GetBody, req.ContentLength = io.NopCloser(r), nil, -1 }
	}
	again := func(r io.Reader, err error) func(*http.Request) {
		return func(req *http.Request) { req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(r), err } }
	}
	half := io.MultiReader(strings.NewReader("x"), errReader{broken})
	for name, tt := range map[string]struct {
		operation string
		spoil     func(*http.Request)
		want      error
		attempts  int
	}{
		"while it is buffered":        {"", unread(errReader{broken}), broken, 0},
		"when it is to be sent again": {"", again(nil, broken), client.ErrBody, 1},
		"GetBody, to compare":         {"order-42", again(nil, broken), broken, 0},
		"its body, to compare":        {"order-42", again(half, nil), broken, 0},
		"never, until the end":        {"", nil, context.DeadlineExceeded, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if tt.operation != "" {
				ctx = client.WithOperation(ctx, tt.operation)
			}
			req := request(t, "POST", "x").WithContext(ctx)
			if tt.spoil != nil {
				tt.spoil(req)
			} else {
				r, w := io.Pipe()
				defer w.Close()
				req.Body, req.GetBody, req.ContentLength = r, nil, -1
			}
			j := open(t, journalFile(t))
			s := &script{steps: []step{failing(errReset)}}
			e := failure(t, client.New(s, with(j)), req)
			if !errors.Is(e, tt.want) || len(s.attempts()) != tt.attempts || e.Unknown != (tt.attempts > 0 || tt.operation != "") || e.GaveUp != "" || len(j.Entries()) != 0 {
				t.Errorf("%s: %+v after %d attempts, entries %+v; want %v", name, e, len(s.attempts()), j.Entries(), tt.want)
			}
		})
	}
}

// Once a body is the base transport's, the end of the request's context closes it no more.
func TestBodyIsNotClosedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		req := request(t, "PUT", "").WithContext(ctx)
		body := &trackedBody{ReadCloser: io.NopCloser(strings.NewReader("abcdefgh"))}
		req.Body, req.GetBody, req.ContentLength = body, nil, -1
		status(t, client.New(&script{steps: []step{answer(200)}}, client.MaxBuffer(3)), req)
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

// The base transport can rewind a buffered body too (HTTP/2, redirects), and the caller's
// request stays as it was. Trailers get their values while the body is read.
func TestBufferedBody(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
		b, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		if again, err := io.ReadAll(b); string(again) != "abc" || err != nil || req.Trailer.Get("Sum") != "1" {
			t.Errorf("GetBody gives %q, %v, trailer %v", again, err, req.Trailer)
		}
		return answer(200)(req)
	}}}
	req := request(t, "POST", "")
	req.Trailer = http.Header{"Sum": nil}
	req.Body = io.NopCloser(io.MultiReader(strings.NewReader("abc"), readerFunc(func([]byte) (int, error) {
		req.Trailer.Set("Sum", "1")
		return 0, io.EOF
	})))
	req.GetBody, req.ContentLength = nil, -1
	status(t, client.New(s), req)
	if req.GetBody != nil || req.ContentLength != -1 {
		t.Error("the caller's request was changed")
	}
}
