package client

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"
)

// Limits for reading the body of an unwanted response. The body is read so that the
// connection can be reused.
const (
	drainBytes = 64 << 10
	drainTime  = time.Second
)

// readAhead reads a response's body, so that a torn body is detected while the request
// can still be repeated. It reads the whole body, or limit+1 bytes if the body is
// longer than limit, and returns these bytes. readAhead reads nothing if limit is
// negative, after a switch of protocols (101), or from an event stream.
func readAhead(resp *http.Response, limit int64) ([]byte, error) {
	if resp.StatusCode == http.StatusSwitchingProtocols || isEventStream(resp.Header) {
		return nil, nil
	}
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	read := buf.Bytes()
	rest := resp.Body
	if n <= limit {
		_ = rest.Close() // the body was read to its end, so an error of Close doesn't matter
		resp.Body = io.NopCloser(&buf)
		return read, nil
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&buf, rest), rest}
	return read, nil
}

func isEventStream(h http.Header) bool {
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), "text/event-stream")
}

// releasing changes resp so that done is called when resp's body is read to its end or
// closed.
func releasing(resp *http.Response, done func()) {
	b := &releasingBody{ReadCloser: resp.Body, done: done}
	if w, ok := resp.Body.(io.Writer); ok { // after a switch of protocols (101), the body is also a writer
		resp.Body = struct {
			*releasingBody
			io.Writer
		}{b, w}
		return
	}
	resp.Body = b
}

type releasingBody struct {
	io.ReadCloser
	done func() // called by Read and by Close, so perhaps more than once
}

func (b *releasingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

func (b *releasingBody) Close() error {
	err := b.ReadCloser.Close()
	b.done()
	return err
}

// discard reads an unwanted response's body, up to drainBytes, and closes the body. If this
// takes longer than drainTime, discard calls abort.
func discard(resp *http.Response, abort func()) {
	timer := time.AfterFunc(drainTime, abort)
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	_ = resp.Body.Close()
	timer.Stop()
}
