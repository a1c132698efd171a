package idem

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/retrysign"
)

// Fingerprint defines which requests count as the same. The zero value covers method,
// path, query and the body's bytes, hashed by SHA-256. If the route's pattern names a
// host, the zero value covers the host, too. The boundary of a multipart form is
// ignored.
//
// The zero value covers no headers, because an honest client may send other headers with
// a retry, such as a fresh token, tracing headers or a count of retries. The scope, not
// the fingerprint, tells callers apart ([Options.Scope]).
type Fingerprint struct {
	// Headers are additional request headers to cover, such as a header that selects an
	// account. New refuses known headers that may differ between honest retries: the key,
	// common credentials, the tracing headers of W3C and AWS, X-Request-Id and counts of
	// retries.
	Headers []string

	// CanonicalJSON makes the comparison ignore white space and the order of members in
	// each body whose Content-Type is JSON. Numbers are compared as written: 1.0
	// differs from 1, and large numbers stay distinct. A body is still compared by its
	// bytes if parsers may read it differently (repeated members, invalid UTF-8), or if
	// it has more than 1 MiB or 200 levels.
	CanonicalJSON bool

	// Secrets are keys for HMAC-SHA-256 fingerprints. Without a secret, whoever reads
	// the table can guess bodies with little entropy. New records use the first secret.
	// The other secrets only serve to compare requests with existing records.
	//
	// All functions must know a secret before one of them uses it. Add a new secret at
	// the end, deploy, then move the secret to the front. To add the very first secret,
	// put the zero Secret before it, so that new records stay unkeyed until all
	// functions know the secret. Remove an old secret when no record needs it (see
	// "samekey list --fingerprints"). To compare a request with an unkeyed record, no
	// secret is needed. If a record was made with a secret that the function doesn't
	// know, the function refuses a retry of the record's request (ErrIncomparable).
	Secrets []Secret

	// Func, if set, replaces all fields above except Secrets: two requests are the same
	// if Func returns equal bytes. Include method and path in these bytes. Otherwise a
	// request on one route can get the answer that another route stored under the same
	// key, unless [Options.Scope] returns the route. Func gets the requests of all the
	// engine's handlers, and must not change a request. Func may use [Request.Same] in
	// place of the body.
	//
	// If Func returns an error, a request whose key has no record is refused with
	// ErrRequest. A request whose key has a record is compared by the record's scheme,
	// if Known has this scheme. If Known lacks the scheme, the request is refused with
	// ErrIncomparable.
	Func func(r *Request) ([]byte, error)
	// FuncName identifies Func in records. Change FuncName whenever you change the bytes
	// that Func returns. New refuses a Func without a FuncName. FuncName has at most 64
	// visible ASCII characters.
	FuncName string

	// Known holds former and coming fingerprints, for comparing requests with existing
	// records. New records never use Known. The scheme of a Fingerprint consists of all
	// its fields except Secrets and Known. A record stores the name of the scheme by
	// which its request was hashed, and a retry is compared by the same scheme. If
	// neither this Fingerprint nor one in Known has that scheme, the retry is refused
	// (ErrIncomparable).
	//
	// So change a fingerprint in two releases. The first release adds the coming
	// fingerprint to Known. The second release uses the new fingerprint, and moves the
	// former fingerprint to Known. Remove a former fingerprint when no record needs it
	// (see "samekey list --fingerprints").
	//
	// A fingerprint in Known uses the Secrets of the Fingerprint that holds the list.
	// New refuses a fingerprint in Known that has Secrets or Known of its own.
	Known []Fingerprint
}

// Secret is a key for fingerprints. If the first element of [Fingerprint.Secrets] is the
// zero Secret, new records are unkeyed.
type Secret struct {
	ID  string // stored with each record; not empty
	Key []byte // at least 16 bytes
}

// traceHeaders lists headers that name one request or its trace.
var traceHeaders = []string{"Traceparent", "Tracestate", "X-Amzn-Trace-Id", "X-Request-Id"}

// Fingerprint.scheme returns a name that says which parts of requests f compares, and
// how. The zero Fingerprint has the name "". Records store the name, so the same
// settings must have the same name in every release. If Func is set, the name depends
// only on FuncName.
func (f *Fingerprint) scheme() string {
	if f.Func != nil {
		return "func " + f.FuncName
	}
	var parts []string
	if f.CanonicalJSON {
		parts = append(parts, "json")
	}
	for _, name := range f.Headers { // in the order in which they are hashed
		parts = append(parts, "+"+http.CanonicalHeaderKey(name))
	}
	return strings.Join(parts, " ")
}

// Fingerprint.known returns the Fingerprint with this scheme: f itself or an element of
// f.Known. It returns nil if none of them has the scheme.
func (f *Fingerprint) known(scheme string) *Fingerprint {
	if f.scheme() == scheme {
		return f
	}
	for i := range f.Known {
		if f.Known[i].scheme() == scheme {
			return &f.Known[i]
		}
	}
	return nil
}

func (f *Fingerprint) validate(keyHeader string) error {
	if err := f.validateScheme(keyHeader); err != nil {
		return err
	}
	schemes := map[string]bool{f.scheme(): true}
	for i := range f.Known {
		k := &f.Known[i]
		if len(k.Known) > 0 || len(k.Secrets) > 0 {
			return errors.New("Fingerprint.Known: Known and Secrets of a known fingerprint have no effect: list them in Fingerprint")
		}
		if err := k.validateScheme(keyHeader); err != nil {
			return fmt.Errorf("Fingerprint.Known: %w", err)
		}
		if scheme := k.scheme(); schemes[scheme] {
			return fmt.Errorf("Fingerprint.Known: the scheme %q is there twice; a Func that compares something else needs another FuncName", scheme)
		}
		schemes[k.scheme()] = true
	}
	return f.validateSecrets()
}

const maxFuncName = 64

func (f *Fingerprint) validateScheme(keyHeader string) error {
	if (f.Func != nil) != (f.FuncName != "") || len(f.FuncName) > maxFuncName || strings.ContainsFunc(f.FuncName, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("Fingerprint.FuncName %q: Func needs a name of 1 to %d visible ASCII characters, which its records keep; without Func there is none", f.FuncName, maxFuncName)
	}
	for _, name := range f.Headers {
		if !validName(name) {
			return fmt.Errorf("Fingerprint.Headers: %q is no header", name)
		}
		if name = http.CanonicalHeaderKey(name); name == keyHeader || slices.Contains(secretHeaders, name) || slices.Contains(traceHeaders, name) || retrysign.Is(name) {
			return fmt.Errorf("Fingerprint.Headers: %s may differ between honest retries", name)
		}
	}
	return nil
}

func (f *Fingerprint) validateSecrets() error {
	seen := map[string]bool{"": true}
	for i, s := range f.Secrets {
		if i == 0 && s.ID == "" && s.Key == nil && len(f.Secrets) > 1 {
			continue // an empty first Secret means that new fingerprints are made without a secret
		}
		if seen[s.ID] {
			return fmt.Errorf("Fingerprint.Secrets: id %q is empty or used twice", s.ID)
		}
		if len(s.Key) < 16 {
			return fmt.Errorf("Fingerprint.Secrets: key %q has %d bytes, at least 16 are required", s.ID, len(s.Key))
		}
		seen[s.ID] = true
	}
	return nil
}

// Fingerprint.digest returns the unkeyed SHA-256 of the parts of r that are compared.
// It hashes a tag and a length with each part, so that different requests never have
// the same hashed bytes.
func (f *Fingerprint) digest(r *Request) (sum [sha256.Size]byte, err error) {
	small, tag, body := make([]byte, 0, 256), byte('b'), r.Body
	if r.Same != nil {
		body = r.Same
	}
	switch {
	case f.Func != nil:
		tag = 'f'
		if body, err = f.Func(r); err != nil {
			return sum, fmt.Errorf("%w: fingerprint: %w", ErrRequest, err)
		}
	default:
		small = appendTagged(appendTagged(small, 'm', r.Method), 'p', r.Path)
		if host := patternHost(r); host != "" {
			small = appendTagged(small, 'o', host)
		}
		small = appendTagged(small, 'q', canonicalQuery(r.Query))
		for _, name := range f.Headers {
			// HTTP APIs join the values of one header by commas. Other sources don't, so
			// join the values here.
			small = appendTagged(small, 'h', strings.Join(headerValues(r.Header, name), ","))
		}
		switch contentType, media := mediaType(r.Header); {
		case f.CanonicalJSON && (media == "application/json" || strings.HasSuffix(media, "+json")):
			if canonical, ok := CanonicalJSON(body); ok {
				tag, body = 'j', canonical
			}
		case media == "multipart/form-data":
			if form, ok := formParts(contentType, body); ok {
				tag, body = 'x', form
			}
		}
	}
	small = appendTagged(small, tag, "")
	small = binary.BigEndian.AppendUint64(small, uint64(len(body)))
	return digestOf(small, body), nil
}

// appendTagged appends a part's tag, its length and the part.
func appendTagged(b []byte, tag byte, part string) []byte {
	return appendPart(append(b, tag), part)
}

// appendPart appends a part's length and the part.
func appendPart[T string | []byte](buf []byte, part T) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(part)))
	return append(buf, part...)
}

// digestOf returns the hash of the bytes in small followed by those in body. It doesn't
// copy a large body.
func digestOf(small, body []byte) (sum [sha256.Size]byte) {
	if len(body) <= cap(small)-len(small) {
		return sha256.Sum256(append(small, body...))
	}
	h := sha256.New()
	h.Write(small)
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}

// The function keyed returns a digest's HMAC.
func keyed(key []byte, digest [sha256.Size]byte) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, key)
	mac.Write(digest[:])
	mac.Sum(sum[:0])
	return sum
}

// Fingerprint.sign returns the fingerprint to store, and the id of the secret with
// which it was made ("" without a secret).
func (f *Fingerprint) sign(digest [sha256.Size]byte) (fp [sha256.Size]byte, secret string) {
	if len(f.Secrets) == 0 || f.Secrets[0].ID == "" {
		return digest, ""
	}
	return keyed(f.Secrets[0].Key, digest), f.Secrets[0].ID
}

// Fingerprint.matches reports whether the record in found was made from the request r.
// It compares by the record's scheme and secret. If the scheme or the secret isn't
// configured, or if Func fails, the error is ErrIncomparable. matches doesn't guess: a
// wrong true could replay another request's answer, and a wrong false would make the
// client use a new key.
func (f *Fingerprint) matches(found *store.Record, r *Request) (bool, error) {
	scheme, secret := found.Scheme, found.Secret
	by := f.known(scheme)
	if by == nil {
		return false, fmt.Errorf("%w: the scheme %q is unknown", ErrIncomparable, scheme)
	}
	digest, err := by.digest(r)
	if err != nil { // Func failed: nobody knows whether the record was made from r
		return false, fmt.Errorf("%w: by the scheme %q: %v", ErrIncomparable, scheme, err) //nolint:errorlint // not wrapped: the wrapped error would change the answer
	}
	if secret != "" {
		i := slices.IndexFunc(f.Secrets, func(s Secret) bool { return s.ID == secret })
		if i < 0 {
			return false, fmt.Errorf("%w: the secret %q is unknown", ErrIncomparable, secret)
		}
		digest = keyed(f.Secrets[i].Key, digest)
	}
	var want [2 * sha256.Size]byte
	hex.Encode(want[:], digest[:])
	return hmac.Equal([]byte(found.Fingerprint), want[:]), nil
}

// canonicalQuery returns a form of the query that is the same whether a gateway delivers
// the query decoded or raw. Values of one name keep their order.
func canonicalQuery(raw string) string {
	if raw == "" {
		return ""
	}
	values := make(url.Values)
	var odd []string // undecoded pairs: appended to the form, since a decoded pair may have the same text
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		n, err1 := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(value)
		// Don't decode a pair with an unescaped ";": some parsers cut such a pair at
		// the ";", and net/url drops the pair.
		if err1 != nil || err2 != nil || strings.Contains(pair, ";") {
			n, v, odd = name, value, append(odd, pair)
		}
		values.Add(n, v)
	}
	canonical := values.Encode()
	if len(odd) > 0 {
		slices.Sort(odd)
		canonical += "!" + strings.Join(odd, "&") // Encode escapes "!", so the separator is unambiguous
	}
	return canonical
}

// mediaType returns the Content-Type in two forms: unchanged, and in lower case without
// parameters. Both are empty unless h has exactly one Content-Type.
func mediaType(h http.Header) (contentType, media string) {
	values := headerValues(h, "Content-Type")
	if len(values) != 1 {
		return "", ""
	}
	media, _, _ = strings.Cut(values[0], ";")
	return values[0], strings.ToLower(strings.TrimSpace(media))
}
