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
// The text is cut to 256 bytes of valid UTF-8. If err wraps a [url.Error], Error removes
// the query of its URL, since queries may contain keys and card numbers. err must not be
// nil.
func Error(err error) string {
	s := err.Error()
	if u, ok := errors.AsType[*url.Error](err); ok {
		if bare, _, cut := strings.Cut(u.URL, "?"); cut {
			s = strings.ReplaceAll(s, u.URL, bare+"?…")
			s = strings.ReplaceAll(s, strconv.Quote(u.URL), strconv.Quote(bare+"?…"))
		}
	}
	return Cut(s)
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
