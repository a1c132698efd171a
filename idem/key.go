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

// KeyHeader is the request header that carries the key, unless [Options.KeyHeader]
// names another.
const KeyHeader = "Idempotency-Key"

// KeyMode decides how to treat a request without a key.
type KeyMode int

const (
	// KeyRequired refuses the request with 400; nothing is stored.
	KeyRequired KeyMode = iota
	// KeyOptional runs the request every time; nothing is stored.
	KeyOptional
	// KeyGenerate makes a key, logs a warning and continues; over HTTP the answer
	// echoes the key. KeyGenerate refuses a request that its source repeats
	// ([Request.Redelivered]), which would get a different key each time. Inside an
	// operation KeyGenerate makes no key: a request without its own key is part of
	// that operation.
	KeyGenerate
	// KeyObserve runs every request, with or without a key, and only reports the
	// outcome that the request would have had ([Hooks.Observed]): the first stage of
	// a retrofit. KeyObserve is not for handlers with phases, which need a record.
	KeyObserve
)

// parseKey returns the key in the values of the key header. The common bare form
// (8e03978e…) and the RFC 9651 string of the IETF draft ("8e03978e…") are the
// same key. strict accepts only the RFC 9651 string.
//
// Without a value the error is ErrKeyMissing. The error is ErrKeyInvalid for two
// values or an unquoted comma (HTTP APIs join two headers with a comma), an empty
// key, a space in the bare form, control characters, characters beyond ASCII, and
// a length outside of minLen to maxLen bytes (R1–R7).
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
	case key == "": // checkKey below checks the length
	case strict:
		return "", fmt.Errorf("%w: must be a quoted RFC 9651 string", ErrKeyInvalid)
	case strings.Contains(key, ","):
		return "", fmt.Errorf("%w: more than one value; quote a key that contains a comma", ErrKeyInvalid)
	case strings.Contains(key, " "):
		return "", fmt.Errorf("%w: a space in it; quote a key that contains one", ErrKeyInvalid)
	}
	return key, checkKey(key, minLen, maxLen, true)
}

// checkKey applies the same rules to every key, whatever its source. Only keys
// that can be quoted may contain spaces.
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

// quoted returns key as an RFC 9651 string.
func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// headerValues finds a header in any case: maps that were not filled through
// http.Header keep the client's spelling.
func headerValues(h http.Header, name string) []string {
	var found []string
	for n, values := range h {
		if len(n) == len(name) && strings.EqualFold(n, name) {
			found = append(found, values...)
		}
	}
	return found
}

// keyOptional reports whether a request with this method passes without a key.
func (e *Engine) keyOptional(method string) bool {
	return e.opt.Key == KeyOptional || e.opt.Key != KeyObserve && slices.Contains(e.opt.KeyOptionalOn, method)
}

// Acts reports whether the engine acts on a request with this method and these
// headers. Other requests can pass without being read; [Engine.Serve] passes them,
// and marks the answers to those that carry a key.
func (e *Engine) Acts(method string, h http.Header) bool {
	return !e.opt.Disabled && e.methods[method] && (e.hasKey(h) || e.opt.KeyFrom != nil || !e.keyOptional(method))
}

// hasKey reports whether a request has a key header, valid or not.
func (e *Engine) hasKey(h http.Header) bool { return len(headerValues(h, e.opt.KeyHeader)) > 0 }

// keyless handles a request without a key; acts is false if the request passes.
// No key is made for a source that repeats its requests, since each repetition
// would get another key. Inside an operation, a request without its own key is
// part of that operation.
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

// resumes reports whether ctx belongs to an operation of this engine that a
// completer is finishing, and r has no key of its own. Another engine's wrapper
// had its own operation here, which must not run unprotected.
func (e *Engine) resumes(ctx context.Context, r *Request) bool {
	op, ok := FromContext(ctx)
	return ok && !op.over.Load() && op.flow.a.resumed && op.flow.a.Engine == e &&
		r.Key == "" && !e.hasKey(r.Header)
}
