package store

import (
	"net/http"
	"slices"
)

// Response is an answer in a form that no transport shows through. The zero
// Status means 200.
type Response struct {
	Status int
	Header http.Header // canonical names; nil is fine
	Body   []byte
}

// Clone returns a copy that shares nothing a caller could change.
func (r Response) Clone() Response {
	r.Header = r.Header.Clone()
	r.Body = slices.Clone(r.Body)
	return r
}
