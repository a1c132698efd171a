package lambda

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda/internal/rawjson"
)

// BodyKey finds the key in a body, which names the work itself: [JSONKey],
// [JSONRPCKey], [MCPToolKey], [AppSyncKey] and [StateKey] are there.
//
//	lambda.SQS.WithBodyKey(lambda.JSONKey("/order/id"))
//	lambda.Direct[Order, Receipt](lambda.JSONKey("/order/id"))
//	idem.New(store, func(o *idem.Options) { o.KeyFrom = lambda.JSONKey("/order/id").From }) // HTTP
//
// A value that is missing, empty, or neither a text nor an integer is an error that
// names its path ([idem.ErrKeyInvalid]), in every [idem.KeyMode]: it never makes a key
// that all such bodies share. The functions must be safe for concurrent use.
type BodyKey struct {
	// Key names the work that a body asks for. Required.
	Key func(body []byte) (string, error)

	// Same is what of a body must be the same under one key; an error refuses the
	// body. nil: all of it. See [BodyKey.Comparing].
	Same func(body []byte) ([]byte, error)
}

// Comparing is a copy of k for bodies of which parts change with each delivery, such
// as the time of sending: only the values that pointers (RFC 6901) lead to must be the
// same under one key ([BodyKey.Same]), as JSON by its meaning. One that is missing in
// both is the same. Take in whatever decides what is done, such as the amount. It
// panics if there is no pointer, or one of them isn't sound.
func (k BodyKey) Comparing(pointers ...string) BodyKey {
	if len(pointers) == 0 {
		panic("lambda: BodyKey.Comparing: no pointer") //nolint:forbidigo // a mistake in the program
	}
	paths := parsePointers("BodyKey.Comparing", pointers)
	k.Same = func(body []byte) ([]byte, error) {
		var all []byte
		for _, p := range paths {
			v, err := p.Find(body)
			switch {
			case errors.Is(err, rawjson.ErrAbsent):
				all = append(all, "absent\n"...)
				continue
			case err != nil:
				return nil, err
			}
			if v, err = canonical(p.Text, v); err != nil {
				return nil, err
			}
			all = append(append(all, v...), '\n') // which no canonical form has
		}
		return all, nil
	}
	return k
}

// From finds the key in the body of an HTTP request whose header has none. It is for
// [idem.Options.KeyFrom].
func (k BodyKey) From(r *idem.Request) (string, error) {
	key, err := keyOf(k.Key(r.Body))
	if err == nil {
		err = k.compare(r)
	}
	if err != nil {
		return unreadable, err
	}
	return key, nil
}

// compare has r compared by what must be the same of its body.
func (k BodyKey) compare(r *idem.Request) (err error) {
	if k.Same == nil {
		return nil
	}
	if r.Same, err = k.Same(r.Body); err != nil {
		return &idem.Error{Op: "request", Err: fmt.Errorf("%w: %w", idem.ErrRequest, err)}
	}
	return nil
}

// JSONKey finds the key where a JSON Pointer (RFC 6901) leads: JSONKey("/order/id").
// With several pointers the key is made of all of the values, in their order; each of
// them must be there.
//
// A text, or an integer as it is written, however large, is the key. So 7 and "7" are
// one key, and two bodies that spell it differently are refused as two requests
// ([idem.ErrMismatch]) instead of being done twice. Numbers with a fraction or an
// exponent, true, false, null, objects and lists are no key. A text that may not be a
// key (not 1 to 255 visible ASCII characters) is taken by its SHA-256. Member names
// count as they are written; a member that is there twice on the way is an error.
//
// It panics if a pointer isn't sound, or is "": a mistake in the program, best found
// at cold start.
func JSONKey(pointer string, more ...string) BodyKey {
	paths := parsePointers("JSONKey", append([]string{pointer}, more...))
	return BodyKey{Key: func(body []byte) (string, error) {
		texts, err := rawjson.Texts(body, paths)
		if err != nil {
			return "", err
		}
		return textKey(texts...), nil
	}}
}

// parsePointers panics if a pointer isn't sound. who is the function that was called.
func parsePointers(who string, texts []string) []rawjson.Pointer {
	paths := make([]rawjson.Pointer, len(texts))
	for i, text := range texts {
		p, ok := rawjson.Parse(text)
		if !ok {
			panic(fmt.Sprintf("lambda: %s: %q isn't a JSON Pointer to a value in a body, such as /order/id", who, text)) //nolint:forbidigo // a mistake in the program
		}
		paths[i] = p
	}
	return paths
}

// canonical is the form of a JSON value in which equal ones are the same bytes.
func canonical(where string, v []byte) ([]byte, error) {
	c, ok := idem.CanonicalJSON(v)
	if !ok {
		return nil, fmt.Errorf("%s: different parsers may read it differently", where)
	}
	return c, nil
}

// keyOf is what a key function's result means. One that fails has not found that
// there is no key.
func keyOf(key string, err error) (string, error) {
	if err != nil {
		return unreadable, &idem.Error{Op: "key", Err: fmt.Errorf("%w: %w", idem.ErrKeyInvalid, err)}
	}
	return key, nil
}

// unreadable is the key of what can't be read. The engine refuses it, whatever
// becomes of requests without a key ([idem.Options.Key]); one that is disabled, or
// observes, runs the handler all the same.
const unreadable = "\x00"

// textKey is a key of texts: the text itself, if there is one and it may be a key.
func textKey(parts ...string) string {
	if len(parts) == 1 && plainKey(parts[0]) {
		return parts[0]
	}
	return digested + digestKey(parts...)
}

// digested begins a key that isn't the text it was made of.
const digested = "sha256:"

func plainKey(s string) bool {
	bad := func(c rune) bool { return c <= ' ' || c > '~' }
	return s != "" && len(s) <= idem.DefaultMaxKey && !strings.ContainsFunc(s, bad) && !strings.HasPrefix(s, digested)
}

// digestKey makes a key of parts that may be long or hold any characters.
func digestKey(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
