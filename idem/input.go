package idem

import (
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

// request is the inverse of input, for a resumed run.
func (in *Input) request() *Request {
	return &Request{
		Method: in.Method, Path: in.Path, Query: in.Query, Route: in.Route, Header: maps.Clone(in.Header),
		Identity: in.Identity, Snapshot: in.Snapshot, Body: in.Body,
	}
}
