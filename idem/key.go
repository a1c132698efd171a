package idem

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/samekey/samekey/internal/base/defaults"
)

// KeyHeader is the request header that carries the key, unless [Options.KeyHeader]
// names another.
const KeyHeader = "Idempotency-Key"

// parseKey returns the key in the values of the key header. The common bare form
// (8e03978e…) and the RFC 9651 string of the IETF draft ("8e03978e…") are the same key;
// echo is the key in the form that the client sent, without parameters.
//
// Without a value the error is ErrKeyMissing. The error is ErrKeyInvalid for two
// values or an unquoted comma (HTTP APIs join two headers with a comma), an empty
// key, a space in the bare form, control characters, characters beyond ASCII, and
// more than 255 bytes. No record has such a key.
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
	case key == "": // checkKey below checks the length
	case strings.Contains(key, ","):
		return "", "", fmt.Errorf("%w: more than one value; quote a key that contains a comma", ErrKeyInvalid)
	case strings.Contains(key, " "):
		return "", "", fmt.Errorf("%w: a space in it; quote a key that contains one", ErrKeyInvalid)
	}
	return key, echo, checkKey(key, true)
}

// checkKey applies the limits of every contract to a key, whatever its source. Only keys
// that can be quoted may contain spaces. [Options.allowsKey] has the rules for new keys.
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
