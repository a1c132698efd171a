// Package redact describes records and errors without data that must not be logged.
package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strconv"
	"strings"
)

// Error returns a text of err that may be stored, logged, or sent to another function.
// The text is cut to 256 bytes of valid UTF-8. Error removes the query of each
// [url.Error] that err wraps, since queries may contain keys and card numbers. If err is
// nil, the text is "".
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Cut(withoutQueries(err.Error(), err))
}

// withoutQueries removes from the text s the query of each url.Error in the tree of err.
func withoutQueries(s string, err error) string {
	if u, ok := err.(*url.Error); ok { //nolint:errorlint // the function itself follows the wrapped errors
		if bare, _, cut := strings.Cut(u.URL, "?"); cut {
			s = strings.ReplaceAll(s, u.URL, bare+"?…")
			s = strings.ReplaceAll(s, strconv.Quote(u.URL), strconv.Quote(bare+"?…"))
		}
	}
	switch w := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		if inner := w.Unwrap(); inner != nil {
			s = withoutQueries(s, inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range w.Unwrap() {
			s = withoutQueries(s, inner)
		}
	}
	return s
}

// Decoding returns an error of encoding/json without the decoded value. encoding/json
// quotes numbers in its errors, and a type's own decoder, such as time.Time's, may
// quote any value.
func Decoding(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(t.Value, " ") // from "number 4111111111111111"
		return &json.UnmarshalTypeError{Value: kind, Type: t.Type, Offset: t.Offset, Struct: t.Struct, Field: t.Field}
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return err
	}
	return fmt.Errorf("json: a value can't be decoded (%T)", err)
}

// Panic describes the value of a panic in the program's code. It quotes an error of the
// Go runtime. Any other value may hold data of a request, so Panic names only the
// value's type. The text begins with "panicked".
func Panic(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return "panicked: " + err.Error()
	}
	return fmt.Sprintf("panicked with a %T", value)
}

// Cut returns at most the first 256 bytes of s, as valid UTF-8.
func Cut(s string) string {
	const limit = 256
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "")
}

// Record returns the short name that logs, events and errors use for a record: 48 bits
// of the hash at the end of its partition key. A key that is too short for a hash is
// returned unchanged.
func Record(pk string) string {
	if len(pk) < 43 {
		return pk
	}
	return pk[len(pk)-43:][:8]
}
