// Package line has an HTTP transport for DynamoDB Local, which sometimes resets
// connections on a busy machine.
package line

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Transport repeats a read whose connection broke, at most four times, so that the
// break doesn't fail a test. It never repeats a write, since the write may have been
// applied. Like dynamo.Tune, Transport prevents the SDK fault by which a large write
// can break its own connection. A Transport is safe for concurrent use. Set the fields
// before the first request.
type Transport struct {
	// Base sends the requests; it must not be nil.
	Base http.RoundTripper

	// Note is called before each repetition of a read, and for each write that got an
	// error or a 5xx answer. Calls may be concurrent. Note may be nil.
	Note func(*http.Request, error)
}

// reads are the operations that change nothing.
var reads = []string{"GetItem", "BatchGetItem", "Query", "Scan"}

const readTries = 5

// RoundTrip implements [http.RoundTripper].
func (l *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	target := req.Header.Get("X-Amz-Target")
	if !slices.Contains(reads, target[strings.LastIndexByte(target, '.')+1:]) || req.Body == nil {
		resp, err := l.Base.RoundTrip(readOnly(req))
		if err == nil && resp.StatusCode >= http.StatusInternalServerError {
			l.note(req, errors.New(resp.Status))
		} else if err != nil {
			l.note(req, err)
		}
		return resp, err
	}
	defer req.Body.Close() //nolint:errcheck // it is in memory
	asked, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		resp, err := l.read(req, asked)
		if err == nil || try == readTries || req.Context().Err() != nil {
			return resp, err
		}
		l.note(req, err)
	}
}

// readOnly returns req with a body that has no method WriteTo. The WriteTo of a closed
// SDK body returns io.EOF. net/http takes this error for a broken request
// (aws/aws-sdk-go-v2 issue 2737).
func readOnly(req *http.Request) *http.Request {
	if _, ok := req.Body.(io.WriterTo); !ok {
		return req
	}
	req = req.WithContext(req.Context()) // a RoundTripper must not change the request
	req.Body = struct{ io.ReadCloser }{req.Body}
	return req
}

// CloseIdleConnections closes Base's idle connections.
func (l *Transport) CloseIdleConnections() {
	if c, ok := l.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Transport.read sends a copy of req with the body asked, and waits for the whole
// answer.
func (l *Transport) read(req *http.Request, asked []byte) (*http.Response, error) {
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(asked))
	resp, err := l.Base.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}

func (l *Transport) note(req *http.Request, err error) {
	if l.Note != nil {
		l.Note(req, err)
	}
}
