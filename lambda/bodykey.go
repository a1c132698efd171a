package lambda

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/rawjson"
)

// BodyKey finds a key in a body. [JSONKey], [JSONRPCKey], [MCPToolKey], [AppSyncKey] and [StateKey]
// make a BodyKey. Use it like this:
//
//	lambda.SQS.WithBodyKey(lambda.JSONKey("/order/id"))
//	lambda.Direct[Order, Receipt](lambda.JSONKey("/order/id"))
//	idem.New(store, func(o *idem.Options) { o.KeyFrom = lambda.JSONKey("/order/id").From }) // HTTP
//
// A body is refused ([idem.ErrKeyInvalid]) in every [idem.KeyMode] if the value for the
// key is missing, empty, or neither a text nor an integer. So bodies without a value
// never share a key. The error names the value's path. The functions Key and Same must
// be safe for concurrent use.
type BodyKey struct {
	// Key returns the name of the work that a body asks for. Required.
	Key func(body []byte) (string, error)

	// Same returns the part of a body that must be the same in all bodies with the same
	// key. If Same is nil or returns nil, the whole body must be the same. If Same
	// returns an error, the request is refused: with [idem.ErrIncomparable] if the key
	// has a record, otherwise with [idem.ErrRequest]. See [BodyKey.Comparing].
	Same func(body []byte) ([]byte, error)

	// shared reports whether the client chooses the body's key, and the body doesn't
	// name the client. If body is nil, shared reports whether every body is of this
	// kind. If shared is nil, no body is of this kind.
	shared func(body []byte) bool
}

// always serves as BodyKey.shared if bodies never name the client.
func always([]byte) bool { return true }

// Comparing returns a copy of k for bodies with parts that differ in each delivery, such as the
// time of sending. Comparing sets [BodyKey.Same] in the copy: only the values at the pointers (RFC
// 6901) must be the same in all bodies with the same key. The values are compared in the form of
// [idem.CanonicalJSON]. A value that both bodies lack counts as the same. Give a pointer to every
// value that decides the work, such as the amount. Comparing panics if there is no pointer, or if a
// pointer is malformed.
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
			all = append(append(all, v...), '\n') // canonical JSON has no newline, so a newline separates the values
		}
		return all, nil
	}
	return k
}

// From finds the key in the body of an HTTP request. Use it as [idem.Options.KeyFrom]: the engine
// then takes each key from the body and ignores the header. A request whose body has no key is
// refused.
func (k BodyKey) From(r *idem.Request) (string, error) {
	key, err := keyOf(k.Key(r.Body))
	if err != nil {
		return unreadable, err
	}
	k.compare(r)
	return key, nil
}

// FromOptional acts like [BodyKey.From], but accepts a request whose body is empty or
// lacks a value for the key. The key of such a request comes from the header. If the
// header is missing too, [idem.Options.Key] decides. FromOptional refuses every
// other request that From refuses. An example is a body with null where the value
// should be, or where an object on the path to the value should be.
func (k BodyKey) FromOptional(r *idem.Request) (string, error) {
	if _, err := k.Key(r.Body); len(r.Body) == 0 || errors.Is(err, rawjson.ErrAbsent) || errors.Is(err, idem.ErrKeyMissing) {
		return "", idem.ErrKeyMissing
	}
	return k.From(r)
}

// BodyKey.compare sets r.Same to the part of r's body that must be the same in a retry.
// compare stores an error of k.Same in r.Unread.
func (k BodyKey) compare(r *idem.Request) {
	if k.Same == nil {
		return
	}
	var err error
	if r.Same, err = k.Same(r.Body); err != nil {
		r.Unread = fmt.Errorf("%w: %w", idem.ErrRequest, err)
	}
}

// JSONKey finds the key at a JSON Pointer (RFC 6901): JSONKey("/order/id"). If there are several
// pointers, the key is made of the values at all of them, in order. Each of these values must
// exist.
//
// If the value is a text, the text is the key. If the value is an integer of any size,
// the key is the integer as written. So 7 and "7" are the same key. But after a body
// with 7, a body with "7" is refused ([idem.ErrMismatch]), so that the work isn't done
// a second time. Numbers with a fraction or an exponent, true, false, null, objects and
// lists can't be keys. If a value has more than 255 characters, has other characters
// than visible ASCII, or begins with "sha256:", the key is a SHA-256 hash of the value.
// The names of members must match the pointer exactly, including case. A duplicate
// member on the path is an error.
//
// JSONKey panics if a pointer is malformed or "".
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

// parsePointers panics if a pointer is malformed. The parameter who names the exported
// function in the panic's message.
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

// canonical returns the same bytes for equal JSON values.
func canonical(where string, v []byte) ([]byte, error) {
	c, ok := idem.CanonicalJSON(v)
	if !ok {
		return nil, fmt.Errorf("%s: different parsers may read it differently, or it has more than 1 MiB", where)
	}
	return c, nil
}

// keyOf returns a key function's result. If the function failed, keyOf adds
// [idem.ErrKeyInvalid] to the error and returns the key unreadable, so that the key
// doesn't count as missing.
func keyOf(key string, err error) (string, error) {
	if err != nil {
		return unreadable, &idem.Error{Op: "key", Err: fmt.Errorf("%w: %w", idem.ErrKeyInvalid, err)}
	}
	return key, nil
}

// unreadable is the key of a request that can't be read. The engine refuses such a
// request in every key mode ([idem.Options.Key]). But if the engine is disabled or only
// observes, the handler runs.
const unreadable = "\x00"

// textKey makes a key of texts. A single text that is a valid key stays as it is;
// otherwise the key is a hash.
func textKey(parts ...string) string {
	if len(parts) == 1 && plainKey(parts[0]) {
		return parts[0]
	}
	return digested + digestKey(parts...)
}

// digested is the prefix of a key that is a hash.
const digested = "sha256:"

func plainKey(s string) bool {
	bad := func(c rune) bool { return c <= ' ' || c > '~' }
	return len(s) <= defaults.MaxKey && !strings.ContainsFunc(s, bad) && !strings.HasPrefix(s, digested)
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
