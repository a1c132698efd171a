package idem

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// secretInput are request headers that no option can bring into a record.
var secretInput = map[string]bool{
	"Authorization": true, "Cookie": true, "Proxy-Authorization": true, "X-Api-Key": true, "X-Amz-Security-Token": true,
	KeyHeader: true,
}

// input is the part of r that is needed to run it again, without its key.
func (e *Engine) input(r *Request) *Input {
	in := &Input{
		Method: r.Method, Path: r.Path, Query: r.Query, Route: r.Route, Identity: r.Identity, Snapshot: r.Snapshot, Body: r.Body,
	}
	for _, name := range slices.Concat([]string{"Content-Type"}, e.opt.InputHeaders) {
		name = http.CanonicalHeaderKey(name)
		if values := r.Header[name]; len(values) > 0 {
			if in.Header == nil {
				in.Header = make(http.Header, 1+len(e.opt.InputHeaders))
			}
			in.Header[name] = values
		}
	}
	return in
}

// supplied is in with the body that this attempt has, where it lies outside of the
// record: whoever claimed may have died before it was written there.
func (a *attempt) supplied(in *Input) *Input {
	if in == nil || in.Overflow == nil || a.resumed {
		return in
	}
	with := *in
	with.Body = a.req.Body
	return &with
}

// Limits of a stored request ([Options.Resumable]). One beyond them is refused
// before it is claimed.
const (
	MaxStoredRequest = 10 << 20 // bytes of its body
	maxStoredHead    = 64 << 10 // and of all else that is stored of it
)

// storable refuses a request that can't be stored: its record would be one that
// nobody can read.
func (in *Input) storable() error {
	head := len(in.Method) + len(in.Path) + len(in.Query) + len(in.Identity.Kind) + len(in.Identity.Subject) + len(in.Snapshot)
	for name, values := range in.Header {
		for _, v := range values {
			head += len(name) + len(v)
		}
	}
	switch {
	case len(in.Body) > MaxStoredRequest:
		return fmt.Errorf("%w: %d bytes, of which at most %d can be stored", ErrTooLarge, len(in.Body), MaxStoredRequest)
	case head > maxStoredHead:
		return fmt.Errorf("%w: %d bytes without its body, of which at most %d can be stored", ErrTooLarge, head, maxStoredHead)
	}
	return nil
}

// request is the inverse of input, for a resumed run.
func (in *Input) request() *Request {
	return &Request{
		Method: in.Method, Path: in.Path, Query: in.Query, Route: in.Route, Header: maps.Clone(in.Header),
		Identity: in.Identity, Snapshot: in.Snapshot, Body: in.Body,
	}
}
