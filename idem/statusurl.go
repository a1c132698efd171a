package idem

import (
	"errors"
	"net/url"
	"strings"
)

// statusSegment returns a key as a segment of the status resource's path. Keys
// that clients would take for "." or "..", and keys that look quoted, are quoted
// as in the header.
func statusSegment(key string) string {
	if key == "." || key == ".." || strings.HasPrefix(key, `"`) {
		key = quoted(key)
	}
	return url.PathEscape(key)
}

// validStatusURL returns an error for an invalid StatusURL.
func validStatusURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("not a URL")
	case !strings.HasSuffix(u.Path, "/") || u.RawQuery != "" || u.Fragment != "":
		return errors.New(`must end in "/", after which the key follows`)
	case !strings.HasPrefix(u.Path, "/"):
		return errors.New("must be absolute, or begin with /")
	}
	return nil
}
