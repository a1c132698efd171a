package idem

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Response is an answer in a form that no transport shows through. The zero
// Status means 200.
type Response = store.Response

// Result is what [Engine.Do] and [Engine.Serve] return.
type Result struct {
	Response

	// Replayed is true for a stored answer: the handler did not run.
	Replayed bool
	// Passed is true where the request carried no key to act on, so the answer
	// is the handler's own, untouched.
	Passed bool
	// Unstored is true for an answer of the handler's that was to be stored and
	// could not be: its effect has happened, and a retry, once the lease is over,
	// runs the handler again.
	Unstored bool
	// Expires is the end of the key's lifetime; zero where that is not known.
	Expires time.Time
	// Panic is what the handler panicked with, where [Engine.Serve] has answered
	// all the same; else nil. Adapters end the process that it happened in.
	Panic any
}

// storedHeaders are the response headers worth replaying. Everything else is
// either made anew by the gateway or may hold a secret.
var storedHeaders = []string{
	"Access-Control-Allow-Credentials", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers", // or a browser can't read its replay
	"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Type",
	"Etag", "Last-Modified", "Link", "Location", "Vary",
}

// neverStored are headers that no option can bring into a record: they hold
// secrets of one client, or are true for one answer only.
var neverStored = []string{
	"Authorization", "Connection", "Content-Length", "Date", "Proxy-Authenticate", "Set-Cookie", "Set-Cookie2",
	"Transfer-Encoding", "Www-Authenticate",
}

// allowList returns the canonical names of the headers to store.
func allowList(extra []string) map[string]bool {
	allowed := make(map[string]bool, len(storedHeaders)+len(extra))
	for _, name := range slices.Concat(storedHeaders, extra) {
		allowed[http.CanonicalHeaderKey(name)] = true
	}
	return allowed
}

// storedPart returns the part of r that a record keeps.
func storedPart(r Response, allowed map[string]bool) Response {
	s := Response{Status: r.Status, Body: r.Body}
	for name, values := range r.Header {
		if !allowed[name] || strings.HasPrefix(name, "X-Amz") {
			continue
		}
		if s.Header == nil {
			s.Header = make(http.Header, len(r.Header))
		}
		s.Header[name] = values
	}
	return s
}

// checkStatus refuses a status that no transport could send, while it is still the
// handler's mistake and not a record that nobody can read.
func checkStatus(r *Response) error {
	if r.Status != 0 && (r.Status < 100 || r.Status > 999) {
		return fmt.Errorf("%w: status %d", ErrResult, r.Status)
	}
	return nil
}

// clean drops header fields that would split the answer, and canonicalises
// names. The effect has happened, so failing here would only make the client
// repeat it; dropped are returned for the log.
func clean(r *Response) (dropped []string) {
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	fine := true
	for name, values := range r.Header {
		fine = fine && name == http.CanonicalHeaderKey(name) && validName(name) && !slices.ContainsFunc(values, splits)
	}
	if fine {
		return nil
	}
	h := make(http.Header, len(r.Header))
	for _, name := range slices.Sorted(maps.Keys(r.Header)) { // a fixed order where two spellings meet
		values := r.Header[name]
		if !validName(name) || slices.ContainsFunc(values, splits) {
			dropped = append(dropped, strings.Map(printable, name))
			continue
		}
		canonical := http.CanonicalHeaderKey(name)
		h[canonical] = append(h[canonical], values...)
	}
	r.Header = h
	return dropped
}

func splits(value string) bool { return strings.ContainsAny(value, "\r\n\x00") }

func validName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

func printable(c rune) rune {
	if c < ' ' || c >= 0x7f {
		return '?'
	}
	return c
}
