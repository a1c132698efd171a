package idem

import (
	"fmt"
	"net/http"
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

// ParseKey returns the key in the values of a KeyHeader. It takes the bare form
// that is common (8e03978e…) and the RFC 9651 string of the IETF draft
// ("8e03978e…"): both are the same key. With strict only the latter will do.
//
// No value at all is ErrKeyMissing. Two values or an unquoted comma (which is
// how HTTP APIs join two headers), an empty key, a space in the bare form, control
// characters and all beyond ASCII, and a length outside of min to max bytes are
// ErrKeyInvalid (R1–R7).
func ParseKey(values []string, minLen, maxLen int, strict bool) (string, error) {
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
