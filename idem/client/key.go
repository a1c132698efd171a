package client

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
)

// maxKey is the length of the longest key that servers commonly accept, in bytes.
const maxKey = 255

// NewKey returns a new random key, a version 4 UUID. The transport makes keys by itself.
// NewKey is for callers that store the key with their data and set the key header
// themselves.
func NewKey() string {
	var u [16]byte
	_, _ = rand.Read(u[:])     // never returns an error: if it fails, it ends the process
	u[6] = u[6]&0x0f | 4<<4    // version
	u[8] = u[8]&0x3f | 0b10<<6 // variant
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// callersKey finds the key that the caller of RoundTrip set. callersKey ignores upper
// and lower case in header names, since a caller can fill the map without the methods
// of http.Header. If the header has no values, the caller wants no key: set is true and
// key is empty.
func callersKey(h http.Header, name string) (key string, set bool, err error) {
	var values []string
	for n, v := range h {
		if strings.EqualFold(n, name) {
			set = true
			values = append(values, v...)
		}
	}
	if len(values) == 0 {
		return "", set, nil
	}
	key = strings.Trim(values[0], " \t")
	bare := strings.TrimSuffix(strings.TrimPrefix(key, `"`), `"`)
	switch {
	case len(values) > 1:
		err = fmt.Errorf("%w: header sent %d times", ErrKeyInvalid, len(values))
	case bare == "":
		err = fmt.Errorf("%w: empty; delete the header to have a key made, or set it to no values to send none", ErrKeyInvalid)
	case len(bare) > maxKey:
		err = fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrKeyInvalid, len(bare), maxKey)
	case strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }):
		err = fmt.Errorf("%w: not visible ASCII", ErrKeyInvalid)
	}
	return key, true, err
}

// newKey makes a key, in quotes if Options.QuoteKey is set.
func (t *Transport) newKey() string {
	if t.opt.QuoteKey {
		return `"` + NewKey() + `"`
	}
	return NewKey()
}

// redirectedKey returns the key of the request that was redirected to req, perhaps in
// several steps, or "" without such a key. After a redirect that keeps the method (307,
// 308), req belongs to the same operation, so req needs the same key. http.Client
// copies a key that the caller set to req, but not a key that the transport made.
func redirectedKey(req *http.Request, header string) string {
	for r := req.Response; r != nil && r.Request != nil; r = r.Request.Response {
		if key := r.Request.Header.Get(header); key != "" {
			return key
		}
	}
	return ""
}
