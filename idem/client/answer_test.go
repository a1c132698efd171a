package client_test

import (
	"bytes"
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

func TestTornAnswers(t *testing.T) {
	t.Parallel()
	t.Run("of a keyed request are asked for again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := &counts{}
			s := &script{steps: []step{torn(201), answer(201)}}
			_, body, err := roundTrip(t, client.New(s, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, "POST", "x"))
			if body != "answer" || err != nil || c.of("retry network") != 1 {
				t.Errorf("%q, %v, %v", body, err, c.n)
			}
			s.allClosed(t)
		})
	})
	t.Run("what their headers say counts", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := &counts{}
			s := &script{steps: []step{torn(409, "Retry-After", "7"), torn(409, "Retry-After", "7", "Idempotency-Expires", timeAfter(10))}}
			e := failure(t, client.New(s, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, "POST", "x"))
			seen := s.attempts()
			if len(seen) != 2 || seen[1].At.Sub(seen[0].At) < 7*time.Second || e.GaveUp != "lifetime" || !e.Unknown {
				t.Errorf("%+v after %d attempts, %v", e, len(seen), c.n)
			}
		})
	})
	t.Run("are handed over where they are streamed", func(t *testing.T) {
		t.Parallel()
		for name, tt := range map[string]struct {
			method string
			opt    func(*client.Options)
		}{
			"no key":    {"GET", func(*client.Options) {}},
			"by option": {"POST", func(o *client.Options) { o.MaxAnswer = -1 }},
			"long":      {"POST", func(o *client.Options) { o.MaxAnswer = 2 }},
		} {
			s := &script{steps: []step{torn(200)}}
			resp, err := client.New(s, tt.opt).RoundTrip(request(t, tt.method, ""))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if string(got) != "ans" || !errors.Is(err, io.ErrUnexpectedEOF) || len(s.attempts()) != 1 {
				t.Errorf("%s: %q, %v after %d attempts", name, got, err, len(s.attempts()))
			}
			_ = resp.Body.Close()
			s.allClosed(t)
		}
	})
}

func TestLongAnswersArriveWhole(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20} {
		want := filled(n)
		s := &script{steps: []step{answerBody(200, string(want))}}
		resp, got, err := roundTrip(t, client.New(s), request(t, "POST", "x"))
		if err != nil || !bytes.Equal([]byte(got), want) || resp.ContentLength != int64(n) {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
		s.allClosed(t)
	}
}

// An answer that was read to its end holds no connection, whatever its caller does.
func TestWholeAnswerHoldsNothing(t *testing.T) {
	t.Parallel()
	for limit, whole := range map[int64]bool{5: false, 6: true, 7: true} {
		s := &script{steps: []step{answer(200)}} // six bytes
		resp, err := client.New(s, func(o *client.Options) { o.MaxAnswer = limit }).RoundTrip(request(t, "POST", "x"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.bodies[0].isClosed(); got != whole {
			t.Errorf("limit %d: closed: %t, want %t", limit, got, whole)
		}
		_ = resp.Body.Close()
	}
}

// An error of closing the answer is its caller's.
func TestAnswerThatCantBeClosed(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	resp, err := client.New(roundTripperFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: badCloser{strings.NewReader("x"), broken}}, nil
	})).RoundTrip(request(t, "GET", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); !errors.Is(err, broken) {
		t.Errorf("%v, want the body's own error", err)
	}
}

type badCloser struct {
	io.Reader
	err error
}

func (b badCloser) Close() error { return b.err }

// Event streams and switched protocols may never end: they are not read ahead.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	t.Run("event stream", func(t *testing.T) {
		t.Parallel()
		r, w := io.Pipe()
		s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: r, Header: http.Header{"Content-Type": {"Text/Event-Stream; charset=utf-8"}}}, nil
		}}}
		resp, err := client.New(s).RoundTrip(request(t, "POST", "x"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = w.Write([]byte("data: 1\n\n")) }()
		got := make([]byte, 9)
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "data: 1\n\n" {
			t.Errorf("%q, %v", got, err)
		}
		_ = resp.Body.Close()
	})
	t.Run("switching protocols", func(t *testing.T) {
		t.Parallel()
		conn := &duplex{in: strings.NewReader("hello")}
		s := &script{steps: []step{func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 101, Body: conn, Header: http.Header{}}, nil
		}}}
		var ctx context.Context
		rt := roundTripperFunc(func(r *http.Request) (*http.Response, error) {
			ctx = r.Context()
			return s.steps[0](r)
		})
		resp, err := client.New(rt).RoundTrip(request(t, "POST", "x"))
		if err != nil {
			t.Fatal(err)
		}
		rw, ok := resp.Body.(io.ReadWriteCloser)
		if !ok {
			t.Fatalf("%T can't be written to", resp.Body)
		}
		_, _ = rw.Write([]byte("hi"))
		got, err := io.ReadAll(rw)
		if string(got) != "hello" || err != nil || conn.out.String() != "hi" || rw.Close() != nil {
			t.Errorf("%q, %v, %q", got, err, conn.out.String())
		}
		if ctx.Err() == nil {
			t.Error("the attempt goes on after its end")
		}
	})
	t.Run("a body that can't be written to doesn't say that it can", func(t *testing.T) {
		t.Parallel()
		resp, err := client.New(&script{steps: []step{answer(101)}}).RoundTrip(request(t, "POST", "x"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := resp.Body.(io.Writer); ok {
			t.Errorf("%T", resp.Body)
		}
		_ = resp.Body.Close()
	})
}

type duplex struct {
	in  io.Reader
	out bytes.Buffer
}

func (d *duplex) Read(p []byte) (int, error)  { return d.in.Read(p) }
func (d *duplex) Write(p []byte) (int, error) { return d.out.Write(p) }
func (d *duplex) Close() error                { return nil }

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A discarded answer that trickles must not delay the retry for long.
func TestDiscardedAnswerThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
			body := readFunc(func([]byte) (int, error) {
				<-req.Context().Done()
				return 0, req.Context().Err()
			})
			return &http.Response{StatusCode: 503, Body: io.NopCloser(body), Header: http.Header{}}, nil
		}, answer(200)}}
		start := time.Now()
		if got := status(t, client.New(s), request(t, "GET", "")); got != 200 || time.Since(start) > 2*time.Second {
			t.Errorf("status %d after %v", got, time.Since(start))
		}
		s.allClosed(t)
	})
}
