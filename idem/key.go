package idem

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// KeyHeader is the request header that carries the key.
const KeyHeader = "Idempotency-Key"

// KeyMode says what becomes of a request without a key.
type KeyMode int

const (
	// KeyRequired refuses it with 400; nothing is stored.
	KeyRequired KeyMode = iota
	// KeyOptional runs it every time; nothing is stored.
	KeyOptional
	// KeyGenerate makes a key, logs a warning, and goes on; over HTTP the key is
	// echoed. It refuses what its source brings again ([Request.Redelivered]), which
	// would have another key each time. Inside of an operation none is made: what
	// runs there without a key of its own is part of that operation.
	KeyGenerate
	// KeyObserve executes every request, with a key or without, and only counts
	// what would have become of it ([Hooks.Observed]): the first stage of a
	// retrofit. It is not for handlers with phases, which need a record.
	KeyObserve
)

// parseKey returns the key in the values of a KeyHeader. It takes the bare form
// that is common (8e03978e…) and the RFC 9651 string of the IETF draft
// ("8e03978e…"): both are the same key. With strict only the latter will do.
//
// No value at all is ErrKeyMissing. Two values or an unquoted comma (which is
// how HTTP APIs join two headers), an empty key, a space in the bare form, control
// characters and all beyond ASCII, and a length outside of min to max bytes are
// ErrKeyInvalid (R1–R7).
func parseKey(values []string, minLen, maxLen int, strict bool) (string, error) {
	switch {
	case len(values) == 0:
		return "", ErrKeyMissing
	case len(values) > 1:
		return "", fmt.Errorf("%w: header sent %d times", ErrKeyInvalid, len(values))
	}
	key := strings.Trim(values[0], " \t")
	switch {
	case strings.HasPrefix(key, `"`):
		item, err := httpsfv.UnmarshalItem([]string{key})
		if err != nil {
			return "", fmt.Errorf("%w: not an RFC 9651 string: %w", ErrKeyInvalid, err)
		}
		var ok bool
		if key, ok = item.Value.(string); !ok {
			return "", fmt.Errorf("%w: not an RFC 9651 string", ErrKeyInvalid)
		}
	case key == "": // its length is judged below
	case strict:
		return "", fmt.Errorf("%w: must be a quoted RFC 9651 string", ErrKeyInvalid)
	case strings.Contains(key, ","):
		return "", fmt.Errorf("%w: more than one value; quote a key that contains a comma", ErrKeyInvalid)
	case strings.Contains(key, " "):
		return "", fmt.Errorf("%w: a space in it; quote a key that contains one", ErrKeyInvalid)
	}
	return key, checkKey(key, minLen, maxLen, true)
}

// checkKey holds every key to the same rules, wherever it came from, but for
// spaces: those are for who can quote.
func checkKey(key string, minLen, maxLen int, spaces bool) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrKeyInvalid)
	case len(key) < minLen:
		return fmt.Errorf("%w: %d characters, at least %d are required", ErrKeyInvalid, len(key), minLen)
	case len(key) > maxLen:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrKeyInvalid, len(key), maxLen)
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' || key[i] == ' ' && !spaces {
			return fmt.Errorf("%w: byte %d is not visible ASCII", ErrKeyInvalid, i+1)
		}
	}
	return nil
}

// quoted is a key as an RFC 9651 string.
func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// headerValues finds a header whatever its case: maps that were not filled
// through http.Header keep the spelling of the client.
func headerValues(h http.Header, name string) []string {
	var found []string
	for n, values := range h {
		if len(n) == len(name) && strings.EqualFold(n, name) {
			found = append(found, values...)
		}
	}
	return found
}

// keyOptional reports whether a request of this method passes without a key.
func (e *Engine) keyOptional(method string) bool {
	return e.opt.Key == KeyOptional || e.opt.Key != KeyObserve && slices.Contains(e.opt.KeyOptionalOn, method)
}

// Acts reports whether the engine has anything to do with a request of this
// method and these headers, so that others can pass without being read.
func (e *Engine) Acts(method string, h http.Header) bool {
	keyed := len(headerValues(h, KeyHeader)) > 0
	if e.opt.Disabled || !e.methods[method] {
		return e.opt.MarkIgnored && keyed
	}
	return keyed || e.opt.KeyFrom != nil || !e.keyOptional(method)
}

// keyless says what becomes of a request without a key: acts is false where it
// passes. A source that brings its requests again would be given another key each
// time; and what runs in an operation, and has no key of its own, is part of that.
func (e *Engine) keyless(ctx context.Context, r *Request) (acts bool, err error) {
	switch generates := e.opt.Key == KeyGenerate; {
	case e.keyOptional(r.Method), generates && nested(ctx):
		return false, nil
	case !generates || r.Redelivered:
		return false, &Error{Op: "key", Err: ErrKeyMissing}
	}
	r.Key = rand.Text()
	e.log.WarnContext(ctx, "request without an idempotency key: one was made", "route", r.Route)
	return true, nil
}

func (e *Engine) keyError(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: "key", Err: err}
}

// resumes reports whether ctx is that of an operation of this very engine which a
// completer brings to its end, and r has no key of its own. Another engine's
// wrapper had an operation of its own here, which must not be done unprotected.
func (e *Engine) resumes(ctx context.Context, r *Request) bool {
	op, ok := FromContext(ctx)
	return ok && !op.over.Load() && op.flow.a.resumed && op.flow.a.Engine == e &&
		r.Key == "" && len(headerValues(r.Header, KeyHeader)) == 0
}
