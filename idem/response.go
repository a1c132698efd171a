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

	// Replayed is true if the answer was stored before. The handler did not run, with
	// two exceptions: another attempt overtook this one and stored its answer; or the
	// store reported the write of this answer as failed, although it was applied.
	Replayed bool
	// Passed is true if the engine did nothing for the request and the answer is the
	// handler's answer, unchanged. Passed is false if the engine added the header
	// Idempotency-Status to the answer.
	Passed bool
	// Unstored is true if the handler's answer should have been stored but could not
	// be. The handler's effect has happened. A retry after the end of the lease runs
	// the handler again, unless the write was applied although it was reported as
	// failed.
	Unstored bool
	// Expires is the end of the key's lifetime; zero if unknown.
	Expires time.Time
	// Panic is the value of the handler's panic if [Engine.Serve] answered all the same;
	// else nil. Adapters end the process after such a panic.
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
	// statusHeader is "ignored" if the request has a key header, but the engine did
	// nothing with the key. The reason is ModeOff, ModeObserve, an unreachable store in
	// ModeOpen, or a request on which the engine doesn't act, such as one whose method
	// isn't in Options.Methods.
	//
	// statusHeader is "unstored" if the handler's answer could not be stored
	// ([Result.Unstored]). With either value, a retry may have the effect a second time.
	statusHeader = "Idempotency-Status"

	ignored = "ignored"

	// requestID is the header with the id of a request. Under ACP, an answer repeats the
	// id that the client sent. Under Stripe, the program gives each answer its own id.
	requestID = "Request-Id"
)

// neverStored lists headers that no option can add to a record, because they hold
// secrets of one client or are valid for one answer only.
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

// replayable removes the headers that must not reach a client from a record's answer.
// Another program may have written such headers into the record.
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

// storedPart returns the part of r that a record keeps. The result shares r's body. It
// also shares r's header map if all headers are kept.
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

// checkStatus returns an error if no transport can send r's status. Such a status must
// not reach a record.
func checkStatus(r *Response) error {
	if r.Status != 0 && (r.Status < 100 || r.Status > 999) {
		return fmt.Errorf("%w: status %d", ErrResult, r.Status)
	}
	return nil
}

// clean canonicalises the names of the headers. It drops a header that could split the
// answer: one with an invalid name, or with a line break or NUL in a value. dropped
// lists the names of the dropped headers, for the log. clean returns no error, because
// the handler's effect has happened: an error would only make the client repeat the
// request.
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
	for _, name := range slices.Sorted(maps.Keys(r.Header)) { // sorted: if a name has two spellings, its values are always merged in the same order
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

// core.cleaned calls [clean], and logs a warning if headers were dropped.
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
			continue
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
