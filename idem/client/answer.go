package client

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"
)

// Limits of reading what nobody wants, so that its connection can be used again.
const (
	drainBytes = 64 << 10
	drainTime  = time.Second
)

// readAhead reads up to limit bytes of a response's body, so that one that
// tears is found out while the request can still be repeated. It returns what it
// has read: all of it, or of a longer body one byte more than limit.
func readAhead(resp *http.Response, limit int64) ([]byte, error) {
	if limit < 0 || resp.StatusCode == http.StatusSwitchingProtocols || isEventStream(resp.Header) {
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
		_ = rest.Close() // read to its end
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

// releasing calls done when the response is read to its end or closed.
func releasing(resp *http.Response, done func()) {
	b := &releasingBody{ReadCloser: resp.Body, done: done}
	if w, ok := resp.Body.(io.Writer); ok && resp.StatusCode == http.StatusSwitchingProtocols {
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
	done func() // may be called more than once
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

// discard reads a little of a response that is not wanted and closes it. abort
// ends the attempt it belongs to.
func discard(resp *http.Response, abort func()) {
	timer := time.AfterFunc(drainTime, abort)
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	_ = resp.Body.Close()
	timer.Stop()
}
