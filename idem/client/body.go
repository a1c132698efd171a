package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// body provides a request's body to each attempt.
type body struct {
	first  io.ReadCloser                 // the caller's body, which the first attempt sends; if nil, the first attempt calls open
	open   func() (io.ReadCloser, error) // makes the body for an attempt; nil if the body can't be sent again
	length int64
}

// rewindable prepares the body of req to be sent again: by GetBody, or by a copy. If must
// is true and the body can't be sent again, rewindable returns an error.
func rewindable(req *http.Request, limit int64, must bool) (*body, error) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return &body{open: func() (io.ReadCloser, error) { return req.Body, nil }, length: req.ContentLength}, nil
	case req.GetBody != nil:
		return &body{first: req.Body, open: req.GetBody, length: req.ContentLength}, nil
	case req.ContentLength <= limit:
		return keep(req, limit, must)
	case must:
		return nil, tooLong(limit)
	}
	return &body{first: req.Body, length: req.ContentLength}, nil
}

// keep reads the body into memory. A body longer than limit isn't kept: it can be sent
// in one attempt only, and is an error if must is true.
func keep(req *http.Request, limit int64, must bool) (*body, error) {
	once := sync.OnceFunc(func() { _ = req.Body.Close() })
	stop := context.AfterFunc(req.Context(), once) // if the request's context ends, close the body, so that a hanging Read returns
	defer stop()
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(req.Body, limit+1))
	if cause := cancelled(req); cause != nil {
		err = cause
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the request body: %w", err)
	case n > limit && must:
		return nil, tooLong(limit)
	case n > limit:
		rest := struct {
			io.Reader
			io.Closer
		}{io.MultiReader(&buf, req.Body), req.Body}
		return &body{first: rest, length: req.ContentLength}, nil
	}
	once()
	b := &body{length: req.ContentLength, open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil }}
	if b.length <= 0 { // the length was unknown; a declared length stays, since the transport compares it with the body
		b.length = n
	}
	if b.length == 0 {
		b.open = func() (io.ReadCloser, error) { return http.NoBody, nil }
	}
	return b, nil
}

func tooLong(limit int64) error {
	return fmt.Errorf("%w: it has no GetBody and is longer than %d bytes: "+
		"set Request.GetBody, or make the request from a bytes.Reader or strings.Reader", ErrBody, max(limit, 0))
}

func (b *body) attach(r *http.Request, attempt int) error {
	if attempt == 1 && b.first != nil {
		r.Body = b.first
	} else {
		var err error
		if r.Body, err = b.open(); err != nil {
			return fmt.Errorf("%w: GetBody: %w", ErrBody, err)
		}
	}
	if r.ContentLength = b.length; r.Body != nil {
		r.GetBody = b.open
	}
	return nil
}
