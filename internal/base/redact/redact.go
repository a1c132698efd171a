// Package redact names records and errors in logs, and leaves out what must not get there.
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

// Error returns err's text as records, answers to other functions and logs
// keep it: cut to 256 bytes of valid UTF-8, and without the query of a URL, since
// that is where keys and card numbers are found in the errors of net/http. err
// must not be nil.
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

// Decoding returns an error of encoding/json without the values that could not be
// decoded: a number that its type can't hold, or what a type's own decoder, such as that
// of time.Time, says of its text.
func Decoding(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(t.Value, " ") // of "number 4111111111111111"
		return &json.UnmarshalTypeError{Value: kind, Type: t.Type, Offset: t.Offset, Struct: t.Struct, Field: t.Field}
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return err
	}
	return fmt.Errorf("json: a value can't be decoded (%T)", err)
}

// Panic says what a handler, or other code of the program's, panicked with: in
// the words of the Go runtime, or by its type only, since any other value may hold
// what was in a request. It begins with "panicked".
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

// Record is the short name of a record in logs, events and errors: 48 bits of the
// hash in its key. A key of another form is returned as it is.
func Record(pk string) string {
	if len(pk) < 43 {
		return pk
	}
	return pk[len(pk)-43:][:8]
}
