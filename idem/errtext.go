package idem

import (
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strconv"
	"strings"
)

// ErrorText returns err's text as records, answers to other functions and logs
// keep it: cut to 256 bytes of valid UTF-8, and without the query of a URL, since
// that is where keys and card numbers are found in the errors of net/http. err
// must not be nil.
func ErrorText(err error) string {
	s := err.Error()
	if u, ok := errors.AsType[*url.Error](err); ok {
		if bare, _, cut := strings.Cut(u.URL, "?"); cut {
			s = strings.ReplaceAll(s, u.URL, bare+"?…")
			s = strings.ReplaceAll(s, strconv.Quote(u.URL), strconv.Quote(bare+"?…"))
		}
	}
	return truncate(s)
}

// PanicText says what a handler, or other code of the program's, panicked with: in
// the words of the Go runtime, or by its type only, since any other value may hold
// what was in a request. It begins with "panicked".
func PanicText(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return "panicked: " + err.Error()
	}
	return fmt.Sprintf("panicked with a %T", value)
}

func truncate(s string) string {
	const limit = 256
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "")
}
