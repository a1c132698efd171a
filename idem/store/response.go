package store

import (
	"net/http"
	"slices"
)

// Response is an answer in a form that is independent of the transport. The zero
// Status means 200.
type Response struct {
	Status int
	Header http.Header // canonical names; nil is fine
	Body   []byte
}

// Clone returns a deep copy.
func (r Response) Clone() Response {
	r.Header = r.Header.Clone()
	r.Body = slices.Clone(r.Body)
	return r
}
