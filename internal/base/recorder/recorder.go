// Package recorder records the answer of an http.Handler as net/http would send it.
package recorder

import (
	"bytes"
	"fmt"
	"net/http"
)

// Recorder is a ResponseWriter that stores the answer. It can't flush, hijack or send
// trailers.
type Recorder struct {
	header http.Header
	sent   http.Header // copy of header, made by WriteHeader
	status int
	body   bytes.Buffer
}

// New returns a Recorder whose answer starts with the given header. [Recorder.Header]
// returns this header itself, not a copy.
func New(header http.Header) *Recorder { return &Recorder{header: header} }

// Header implements [http.ResponseWriter].
func (r *Recorder) Header() http.Header { return r.header }

// WriteHeader implements [http.ResponseWriter]. It panics for an invalid code, as net/http
// does.
func (r *Recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("idem: invalid WriteHeader code %d", status)) //nolint:forbidigo // a mistake in the program
	}
	if r.status != 0 || status < http.StatusOK { // only the first final status counts; informational answers can't be replayed
		return
	}
	r.status, r.sent = status, r.header.Clone()
}

// Write implements [http.ResponseWriter].
func (r *Recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.status == http.StatusNoContent || r.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	return r.body.Write(b)
}

// Answer returns the recorded answer. Call it after the handler has returned.
func (r *Recorder) Answer() (status int, header http.Header, body []byte) {
	r.WriteHeader(http.StatusOK)
	if _, ok := r.sent["Content-Type"]; !ok && r.body.Len() > 0 && r.sent.Get("Content-Encoding") == "" {
		r.sent.Set("Content-Type", http.DetectContentType(r.body.Bytes())) // as net/http would
	}
	r.sent.Del("Trailer") // trailers are not sent
	return r.status, r.sent, r.body.Bytes()
}
