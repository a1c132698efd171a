package idem

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/storedheaders"
)

// Response is an answer in a form that is independent of the transport. The zero
// Status means 200.
type Response = store.Response

// Result is the result of [Engine.Do] and [Engine.Serve].
type Result struct {
	Response

	// Replayed is true for a stored answer: the handler did not run.
	Replayed bool
	// Passed is true if the engine did nothing for the request. The answer is then the
	// handler's answer, unchanged.
	Passed bool
	// Unstored is true for a handler's answer that should have been stored but could not
	// be. The handler's effect has happened; a retry after the end of the lease runs the
	// handler again.
	Unstored bool
	// Expires is the end of the key's lifetime; zero if unknown.
	Expires time.Time
	// Panic is the value of the handler's panic if [Engine.Serve] answered despite
	// the panic; else nil. Adapters end the process after such a panic.
	Panic any
}

// Headers of the answers to requests with a key.
const (
	// ReplayedHeader is the name of the header that has the value "true" in a replayed
	// answer.
	ReplayedHeader = "Idempotent-Replayed"
	// expiresHeader is the end of the key's lifetime, as an HTTP date. A retry after that
	// time is a new request.
	expiresHeader = "Idempotency-Expires"
	// statusHeader is "ignored" if the request has a key header and the engine did nothing
	// with the key. There are four reasons: ModeOff, ModeObserve, ModeOpen with an
	// unreachable store, or a request whose method is not in Options.Methods. statusHeader
	// is "unstored" on a handler's answer that could not be stored ([Result.Unstored]).
	// With either value, a retry may have the same effect again.
	statusHeader = "Idempotency-Status"

	ignored = "ignored"

	// requestID is the header with the id of a request. Each of Stripe's answers has an id
	// of its own. ACP's answers repeat the id in the request's header.
	requestID = "Request-Id"
)

// neverStored lists headers that no option can add to a record: they hold secrets of one
// client or are valid for one answer only.
var neverStored = []string{
	"Authorization", "Content-Length", "Date", "Set-Cookie", "Set-Cookie2", "Www-Authenticate",
	// Headers of one connection (RFC 9110, section 7.6.1). If they were replayed, a client
	// or gateway would apply them to another connection.
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// allowList returns the canonical names of the headers to store.
func allowList(extra []string) map[string]bool {
	allowed := make(map[string]bool)
	for _, header := range storedheaders.All() {
		allowed[header.Name] = true
	}
	for _, name := range extra {
		allowed[http.CanonicalHeaderKey(name)] = true
	}
	return allowed
}

// replayable removes from a record's answer the headers that must not reach a client. Such
// headers are possible in a record that another program wrote.
func replayable(r *Response) {
	clean(r)
	forget(r.Header)
}

// forget removes the headers that no record may hold.
func forget(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "X-Amz") || slices.Contains(neverStored, name) {
			delete(h, name)
		}
	}
}

// storedPart returns the part of r that a record keeps. If that part has every header of r,
// record and answer share the header map, as they share the body.
func storedPart(r Response, allowed map[string]bool) Response {
	left := func(name string) bool { return !allowed[name] || strings.HasPrefix(name, "X-Amz") }
	stays := 0
	for name := range r.Header {
		if !left(name) {
			stays++
		}
	}
	switch stays {
	case len(r.Header):
	case 0:
		r.Header = nil
	default:
		r.Header = maps.Clone(r.Header)
		maps.DeleteFunc(r.Header, func(name string, _ []string) bool { return left(name) })
	}
	return r
}

// checkStatus returns an error for a status that no transport can send. Such a status must
// not reach a record.
func checkStatus(r *Response) error {
	if r.Status != 0 && (r.Status < 100 || r.Status > 999) {
		return fmt.Errorf("%w: status %d", ErrResult, r.Status)
	}
	return nil
}

// clean drops header fields that would split the answer, and canonicalises names.
// clean does not fail: the effect has happened, and an error would only make the
// client repeat the request. dropped lists the dropped names for the log.
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
	for _, name := range slices.Sorted(maps.Keys(r.Header)) { // sorted, so that the values of two spellings of a name are always in the same order
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

// cleaned drops headers that would split the answer, and logs a warning with the record's
// name.
func (e *core) cleaned(ctx context.Context, pk string, resp *Response) {
	if dropped := clean(resp); dropped != nil {
		e.log.WarnContext(ctx, "response header with control characters left out", "record", redact.Record(pk), "headers", dropped)
	}
}

func splits(value string) bool {
	return strings.IndexByte(value, '\r') >= 0 || strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, 0) >= 0
}

func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if lower := c | ' '; 'a' <= lower && lower <= 'z' || c == '-' {
			continue // these characters may occur in a name
		}
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

func printable(c rune) rune {
	if c < ' ' || c >= 0x7f {
		return '?'
	}
	return c
}
