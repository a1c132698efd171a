package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/scope"
)

// KeyHeader is the request header that carries the key, unless [Options.KeyHeader] names
// another header.
const KeyHeader = "Idempotency-Key"

// parseKey returns the key in the values of the key header. The common bare form
// (8e03978e…) and the RFC 9651 string of the IETF draft ("8e03978e…") are the same key.
// echo is the key in the client's form, without the parameters that may follow an RFC
// 9651 string.
//
// If values is empty, the error is ErrKeyMissing. The error is ErrKeyInvalid in these
// cases:
//
//   - There is more than one value, or a bare key contains a comma: HTTP APIs join two
//     headers with a comma.
//   - The key is empty or longer than 255 bytes.
//   - The key contains a control character or a character beyond ASCII.
//   - A bare key contains a space.
//   - The key begins with a quote, but isn't an RFC 9651 string.
func parseKey(values []string) (key, echo string, err error) {
	switch {
	case len(values) == 0:
		return "", "", ErrKeyMissing
	case len(values) > 1:
		return "", "", fmt.Errorf("%w: header sent %d times", ErrKeyInvalid, len(values))
	}
	key = strings.Trim(values[0], " \t")
	echo = key
	switch {
	case strings.HasPrefix(key, `"`):
		item, err := httpsfv.UnmarshalItem([]string{key})
		if err != nil {
			return "", "", fmt.Errorf("%w: not an RFC 9651 string: %w", ErrKeyInvalid, err)
		}
		key, _ = item.Value.(string) // always a string, since it begins with a quote
		echo = quoted(key)
	case key == "": // checkKey below refuses this key
	case strings.Contains(key, ","):
		return "", "", fmt.Errorf("%w: more than one value; quote a key that contains a comma", ErrKeyInvalid)
	case strings.Contains(key, " "):
		return "", "", fmt.Errorf("%w: a space in it; quote a key that contains one", ErrKeyInvalid)
	}
	return key, echo, checkKey(key, true)
}

// checkKey returns an error if the key breaks one of the rules that hold in every
// contract and for every source of keys. If spaces is set, the key may contain spaces:
// in a header, a client can quote such a key. [Options.allowsKey] has the rules for new
// keys.
func checkKey(key string, spaces bool) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrKeyInvalid)
	case len(key) > defaults.MaxKey:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrKeyInvalid, len(key), defaults.MaxKey)
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

// headerValues returns the values of the header with this name. It ignores the name's
// case, since maps that were not filled through http.Header keep the client's spelling.
func headerValues(h http.Header, name string) []string {
	var found []string
	for n, values := range h {
		if len(n) == len(name) && strings.EqualFold(n, name) {
			found = append(found, values...)
		}
	}
	return found
}

// contract.key finds the request's key and the form in which the answer echoes it. acts
// is false if the request passes without a key. A key from KeyFrom takes precedence
// over the key header. The web page or the event's producer chose KeyFrom's key for
// this work, whereas a browser may send a new key header with each submission.
func (c contract) key(ctx context.Context, q *ask) (echo string, acts bool, err error) {
	e, r := c.core, q.req
	if e.opt.Mode == ModeOff || !e.methods[r.Method] {
		return "", false, nil
	}
	if r.Key != "" { // an adapter found the key outside of the header
		if err := checkKey(r.Key, false); err != nil {
			return "", false, &Error{Op: "key", Err: err}
		}
		return r.Key, true, nil
	}
	if e.opt.KeyFrom != nil {
		if r.Key, err = e.opt.KeyFrom(r); err == nil {
			err = checkKey(r.Key, false)
		}
		switch {
		case r.Unread != nil && err != nil: // the key may be in the part that was not read
			return "", false, keyError(&recordUnread{r.Unread})
		case errors.Is(err, ErrRequest):
			return "", false, keyError(&recordUnread{err})
		case !errors.Is(err, ErrKeyMissing):
			return "", err == nil, keyError(err)
		}
	}
	r.Key, echo, err = parseKey(headerValues(r.Header, e.opt.KeyHeader))
	switch {
	case err == nil:
		q.bare = echo == r.Key
		return echo, true, nil
	case !errors.Is(err, ErrKeyMissing):
		return "", false, &Error{Op: "key", Err: err}
	}
	acts, err = e.keyless(ctx, r)
	return r.Key, acts, err
}

func keyError(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: "key", Err: err}
}

// core.keyless handles a request without a key: the request passes (acts is false),
// gets a generated key, or is refused. With KeyGenerate, a request that is made inside
// an operation passes, since it is part of that operation. With KeyGenerate, a request
// is refused if its source repeats it, since each repetition would get another key.
func (e *core) keyless(ctx context.Context, r *Request) (acts bool, err error) {
	switch generates := e.opt.Key == KeyGenerate && e.opt.Mode != ModeObserve; {
	case e.opt.keyOptional(r.Method), generates && nested(ctx):
		return false, nil
	case r.Unread != nil:
		return false, &Error{Op: "key", Err: &recordUnread{r.Unread}}
	case !generates || r.Redelivered:
		return false, &Error{Op: "key", Err: ErrKeyMissing}
	}
	r.Key = rand.Text()
	e.log.WarnContext(ctx, "request without an idempotency key: one was made", "route", r.Route)
	return true, nil
}

// keyOptional reports whether a request with this method passes without a key. In
// ModeObserve it returns false, so that requests without a key are reported.
func (o *Options) keyOptional(method string) bool {
	return o.Mode != ModeObserve && (o.Key == KeyOptional || slices.Contains(o.rules.optional, method))
}

// hasKey reports whether a request has a key header, valid or not.
func (o *Options) hasKey(h http.Header) bool { return len(headerValues(h, o.KeyHeader)) > 0 }

// allowsKey returns an error if the options don't permit this key for a new operation.
// A key that has a record isn't checked, since the options may have changed after its
// claim. bare says that the key was not quoted in the header.
func (o *Options) allowsKey(key string, bare bool, caller store.Identity) error {
	least := o.MinKey
	if caller.Kind == scope.One {
		least = max(least, o.oneKey)
	}
	switch {
	case bare && o.rules.quoted:
		return fmt.Errorf("%w: must be a quoted RFC 9651 string", ErrKeyInvalid)
	case len(key) < least:
		return fmt.Errorf("%w: %d characters, at least %d are required", ErrKeyInvalid, len(key), least)
	}
	return nil
}
