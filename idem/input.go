package idem

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/secrets"
)

// secretHeaders lists request headers that no option can add to a record or to a
// fingerprint. A credential may be another one when a client retries.
var secretHeaders = []string{
	"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Amz-Security-Token", "X-Amzn-Oidc-Accesstoken", "X-Amzn-Oidc-Data",
	"Dpop", "X-Payment", "Payment-Signature", KeyHeader,
}

// inputOf returns the data of r that a completer needs to run r again. The key's header
// is left out. Of r.Header, the Content-Type and the headers named in headers are kept.
func inputOf(r *Request, headers []string) *store.Input {
	in := &store.Input{
		Method: r.Method, Path: r.Path, Query: inText(withoutTokens(r.Query)), Identity: r.Identity, Snapshot: r.Snapshot, Body: r.Body,
	}
	if host := patternHost(r); host != "" { // keep the host of the route's pattern: a router needs this host to find the route again
		in.Header = http.Header{"Host": {host}}
	}
	for _, name := range slices.Concat([]string{"Content-Type"}, headers) {
		name = http.CanonicalHeaderKey(name)
		if values := r.Header[name]; len(values) > 0 {
			if in.Header == nil {
				in.Header = make(http.Header, 1+len(headers))
			}
			in.Header[name] = values
		}
	}
	return in
}

// withoutTokens returns a query without the parameters that are credentials.
func withoutTokens(query string) string {
	left := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		name, value, _ := strings.Cut(pair, "=")
		return secrets.Named(unescaped(name)) || secrets.Token(unescaped(strings.ReplaceAll(value, "+", " ")))
	})
	return strings.Join(left, "&")
}

// inText returns query unchanged if it is valid UTF-8. Otherwise inText escapes all
// bytes beyond ASCII.
func inText(query string) string {
	if utf8.ValidString(query) {
		return query
	}
	var b strings.Builder
	for _, c := range []byte(query) {
		if c >= utf8.RuneSelf {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// maxStoredHead is the largest size, in bytes, of a stored request
// ([Options.Resumable]) without the body. [Options.MaxRequest] limits the body. A new
// request over one of these limits is refused.
const maxStoredHead = 64 << 10

// storable returns an error if a request (the parameter in) is too large to be stored. The
// parameter most limits the request's body, and maxStoredHead limits everything else.
func storable(in *store.Input, most int) error {
	head := len(in.Method) + len(in.Path) + len(in.Query) + len(in.Identity.Kind) + len(in.Identity.Subject) + len(in.Snapshot)
	for name, values := range in.Header {
		for _, v := range values {
			head += len(name) + len(v)
		}
	}
	switch {
	case len(in.Body) > most:
		return fmt.Errorf("%w: %d bytes, and Options.MaxRequest is %d", ErrTooLarge, len(in.Body), most)
	case head > maxStoredHead:
		return fmt.Errorf("%w: %d bytes without its body, of which at most %d can be stored", ErrTooLarge, head, maxStoredHead)
	}
	return nil
}

// requestOf is the inverse of inputOf: it returns the request that is stored in rec, for
// a completer to run.
func requestOf(rec *store.Record) *Request {
	in := rec.Input
	return &Request{
		Method: in.Method, Path: in.Path, Query: in.Query, Route: rec.Route, Header: maps.Clone(in.Header),
		Identity: in.Identity, Snapshot: in.Snapshot, Body: in.Body,
	}
}

func unescaped(segment string) string {
	if s, err := url.PathUnescape(segment); err == nil {
		return s
	}
	return segment
}
