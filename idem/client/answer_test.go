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

// A torn answer to a keyed request is asked for again, and what its headers say counts. An
// answer that is streamed is handed over with its error.
func TestTornAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{torn(201, "Retry-After", "7"), torn(409, "Retry-After", "7", "Idempotency-Expires", at(15))}}
		if got, want := outcome(t, s, request(t, "POST", "x")), "2 error lifetime unknown"; got != want || s.waits()[0] < 7*time.Second {
			t.Errorf("%s after %v, want %s after 7 s", got, s.waits(), want)
		}
		s = &script{steps: []step{torn(201), answer(201)}}
		if got := outcome(t, s, request(t, "POST", "x")); got != "2 201" {
			t.Errorf("%s, want 2 201", got)
		}
	})
	for name, tt := range map[string]struct {
		method string
		limit  int64
	}{"no key": {"GET", 0}, "by option": {"POST", -1}, "long": {"POST", 2}} {
		s := &script{steps: []step{torn(200)}}
		resp, err := client.New(s, client.MaxAnswer(tt.limit)).RoundTrip(request(t, tt.method, ""))
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
}

// An answer that was read to its end holds no connection, whatever its caller does.
func TestAnswersArriveWhole(t *testing.T) {
	t.Parallel()
	for size, whole := range map[int]bool{0: true, 5: true, 6: true, 7: false, 100_000: false} {
		want := string(filled(size))
		s := &script{steps: []step{answerBody(200, want)}}
		resp, err := client.New(s, client.MaxAnswer(6)).RoundTrip(request(t, "POST", "x"))
		if err != nil {
			t.Fatal(err)
		}
		closed := s.bodies[0].isClosed()
		got, err := io.ReadAll(resp.Body)
		if closed != whole || string(got) != want || err != nil || resp.ContentLength != int64(size) {
			t.Errorf("%d bytes: closed before it is read: %t, then %d bytes, %v", size, closed, len(got), err)
		}
		_ = resp.Body.Close()
		s.allClosed(t)
	}
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
			body := readerFunc(func([]byte) (int, error) {
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
