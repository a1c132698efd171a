package idem

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/samekey/samekey/internal/base/redact"
)

// encodeResult returns v as JSON if v survives the round trip unchanged.
func encodeResult[T any](v T) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResult, err)
	}
	if !utf8.Valid(raw) { // a type's own JSON method, such as json.RawMessage's, may return bytes that aren't UTF-8; the table would store other bytes
		return nil, fmt.Errorf("%w: the JSON of %T is not UTF-8", ErrResult, v)
	}
	var back T
	if err := json.Unmarshal(raw, &back); err != nil {
		return nil, fmt.Errorf("%w: %T can't be read back from JSON: %w", ErrResult, v, redact.Decoding(err))
	}
	if again, err := json.Marshal(back); err != nil || !bytes.Equal(raw, again) {
		return nil, fmt.Errorf("%w: %T is another value when read back from JSON", ErrResult, v)
	}
	if at := altered(reflect.ValueOf(v), reflect.ValueOf(back), reflect.TypeFor[T]().String()); at != "" {
		return nil, fmt.Errorf("%w: %s is lost when read back from JSON: return what is needed of it in exported fields", ErrResult, at)
	}
	return raw, nil
}

// missing(stored, v) returns the name of a part of stored that was lost when stored was
// read into v; "" if nothing was lost. An earlier release of the program may have stored a
// value of another type than v's.
func missing[T any](stored []byte, v T) string {
	again, err := json.Marshal(v)
	if err == nil && bytes.Equal(stored, again) {
		return ""
	}
	was, werr := parsed(stored)
	is, ierr := parsed(again)
	if errors.Join(err, werr, ierr) != nil {
		return "the whole"
	}
	return lost(was, is, "")
}

func parsed(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// lost(was, is, at) compares two JSON values, and returns the path of a part of the
// first value that the second value lacks or holds with other contents; "" if there is
// none. The second value may lack parts that are empty: null, "", false, 0, an empty
// list or an empty object. The case of a field's name doesn't matter, as in
// encoding/json. The string at is the path of both values.
func lost(was, is any, at string) string {
	switch was := was.(type) {
	case map[string]any:
		fields, _ := is.(map[string]any)
		for name, v := range was {
			now, exact := fields[name]
			for field, value := range fields {
				if !exact && strings.EqualFold(field, name) {
					now = value
				}
			}
			if at := lost(v, now, at+"."+name); at != "" {
				return at
			}
		}
		return ""
	case []any:
		list, _ := is.([]any)
		for i, v := range was {
			var now any
			if i < len(list) {
				now = list[i]
			}
			if at := lost(v, now, fmt.Sprintf("%s[%d]", at, i)); at != "" {
				return at
			}
		}
		return ""
	}
	if was == is || was == nil || was == "" || was == false || was == json.Number("0") {
		return ""
	}
	return cmp.Or(strings.TrimPrefix(at, "."), "the value")
}

// altered compares v with back, which was read from v's JSON. altered returns the path,
// in Go syntax, of the first part that differs, or "". Such a part is a field that JSON
// leaves out, or a string that isn't UTF-8.
//
// altered doesn't look into types with their own JSON methods. [encodeResult] checks
// only that the JSON of these types is UTF-8 and doesn't change. An empty slice or map
// equals a nil one, since omitempty turns empty into nil. In an interface, back may
// have another type than v, since encoding/json can't restore every type. altered then
// reports only data that JSON leaves out.
func altered(v, back reflect.Value, at string) string {
	if !v.IsValid() || ownJSON(v) {
		return ""
	}
	if !back.IsValid() || v.Type() != back.Type() {
		return unseen(v, at)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || back.IsNil() {
			return differs(v.IsNil() != back.IsNil(), at)
		}
		return altered(v.Elem(), back.Elem(), at)
	case reflect.Struct:
		return alteredField(v, back, at)
	case reflect.Slice, reflect.Array:
		if v.Len() != back.Len() {
			return at
		}
		for i := range v.Len() {
			if bad := altered(v.Index(i), back.Index(i), at+"[…]"); bad != "" {
				return bad
			}
		}
		return ""
	case reflect.Map:
		return alteredEntry(v, back, at)
	default:
		return differs(!v.Equal(back), at)
	}
}

func differs(is bool, at string) string {
	if is {
		return at
	}
	return ""
}

// altered calls alteredField for structs. A field that JSON leaves out is accepted if the
// field is zero.
func alteredField(v, back reflect.Value, at string) string {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if hidden(f) {
			if !v.Field(i).IsZero() {
				return at + "." + f.Name
			}
			continue
		}
		was := reflect.Value{}
		if back.IsValid() {
			was = back.Field(i)
		}
		if bad := altered(v.Field(i), was, at+"."+f.Name); bad != "" {
			return bad
		}
	}
	return ""
}

// altered calls alteredEntry for maps. A key that isn't a plain string may come back
// from JSON as another key. If back lacks the key for this reason, there is no value to
// compare with, and alteredEntry reports only what JSON leaves out of the entry's
// value.
func alteredEntry(v, back reflect.Value, at string) string {
	if back.IsValid() && v.Len() != back.Len() {
		return at
	}
	for _, key := range v.MapKeys() {
		was := reflect.Value{}
		if back.IsValid() {
			if was = back.MapIndex(key); !was.IsValid() && key.Kind() == reflect.String && !ownJSON(key) {
				return at
			}
		}
		if bad := altered(v.MapIndex(key), was, at+"[…]"); bad != "" {
			return bad
		}
	}
	return ""
}

// The function unseen returns the path of data in v that JSON leaves out, or "". The
// function altered calls unseen if back has no value of v's type to compare v with.
func unseen(v reflect.Value, at string) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return altered(v.Elem(), reflect.Value{}, at)
	case reflect.Struct:
		return alteredField(v, reflect.Value{}, at)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if bad := altered(v.Index(i), reflect.Value{}, at+"[…]"); bad != "" {
				return bad
			}
		}
	case reflect.Map:
		return alteredEntry(v, reflect.Value{}, at)
	default: // JSON contains every value of the other kinds
	}
	return ""
}

// hidden(f) reports whether JSON leaves a field out regardless of its value.
func hidden(f reflect.StructField) bool {
	if f.Tag.Get("json") == "-" {
		return true
	}
	if f.IsExported() {
		return false
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return !f.Anonymous || t.Kind() != reflect.Struct // JSON contains the exported fields of an embedded struct
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// ownJSON reports whether v makes its own JSON, by a method MarshalJSON or MarshalText.
// A method of a pointer to v counts if encoding/json can call it.
func ownJSON(v reflect.Value) bool {
	is := func(t reflect.Type) bool { return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) }
	return is(v.Type()) && v.Kind() != reflect.Interface || v.CanAddr() && is(reflect.PointerTo(v.Type()))
}
