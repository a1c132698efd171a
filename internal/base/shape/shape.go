// Package shape describes a phase's result by the names and kinds of the result's
// fields. A person who settles a stuck operation, and gives a result by hand, needs
// this description.
//
// A shape is an example without contents, in JSON: "" stands for a text, 0 for a whole
// number, 0.5 for a number, false for yes or no, null for anything, [x] for a list of
// x, and {"*":x} for an object with an x under each name. Any other object stands for
// an object with the same fields. A field whose name ends with ? may be missing or
// null.
package shape

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Max is the maximum length of a shape, in bytes. In a shape that would be longer, null
// replaces the deeper parts.
const Max = 512

const (
	anything = "null" // every value fits this shape
	deepest  = 4
)

// Of returns the shape of t's values in the form that encoding/json writes; "" if any
// JSON fits, or if the shape is too long even without its deeper parts.
func Of(t reflect.Type) string {
	for depth := deepest; depth > 0; depth-- {
		if s := of(t, depth); len(s) <= Max {
			return strings.TrimPrefix(s, anything)
		}
	}
	return ""
}

func of(t reflect.Type, depth int) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	has := func(method reflect.Type) bool { return reflect.PointerTo(t).Implements(method) }
	switch {
	case depth == 0:
		return anything
	case t == reflect.TypeFor[time.Time]():
		return `""`
	case t == reflect.TypeFor[json.Number]():
		return "0.5"
	case has(reflect.TypeFor[json.Marshaler]()), has(reflect.TypeFor[json.Unmarshaler]()):
		return anything
	case has(reflect.TypeFor[encoding.TextMarshaler]()):
		return `""`
	case reflect.Int <= t.Kind() && t.Kind() <= reflect.Uintptr:
		return "0"
	}
	switch t.Kind() { //nolint:exhaustive // other kinds have no form in JSON, or any form
	case reflect.String:
		return `""`
	case reflect.Bool:
		return "false"
	case reflect.Float32, reflect.Float64:
		return "0.5"
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return `""` // in base64
		}
		return "[" + of(t.Elem(), depth-1) + "]"
	case reflect.Map:
		return `{"*":` + of(t.Elem(), depth-1) + "}"
	case reflect.Struct:
		return object(fields(t, depth, ""))
	}
	return anything
}

type field struct{ name, mark, shape string }

// fields returns the fields of the struct type t. An embedded struct without a JSON
// name is replaced by its own fields. The parameter mark is "?" if an embedded t may be
// missing, since its fields are then missing too.
func fields(t reflect.Type, depth int, mark string) (all []field) {
	for f := range t.Fields() {
		within := f.Type
		if within.Kind() == reflect.Pointer {
			within = within.Elem()
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		one := field{cmp.Or(name, f.Name), mark, of(f.Type, depth-1)}
		if within != f.Type || strings.Contains(options, "omit") {
			one.mark = "?"
		}
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && within.Kind() == reflect.Struct && depth > 1 && strings.HasPrefix(one.shape, "{"):
			all = append(all, fields(within, depth-1, one.mark)...)
		case !f.IsExported():
		default:
			if slices.Contains(strings.Split(options, ","), "string") {
				one.shape = `""`
			}
			all = append(all, one)
		}
	}
	return all
}

// object returns the shape of an object with these fields. The shape is null if a field's name
// has a special meaning in shapes. It is also null if a name occurs twice, since encoding/json then
// chooses one of the fields.
func object(all []field) string {
	texts, seen := make([]string, len(all)), make(map[string]bool)
	for i, f := range all {
		if seen[f.name] || f.name == "*" || strings.HasSuffix(f.name, "?") {
			return anything
		}
		seen[f.name] = true
		name, _ := json.Marshal(f.name + f.mark) // a string
		texts[i] = string(name) + ":" + f.shape
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// Example returns a result in this shape, as a person may type it.
func Example(shape string) string {
	return strings.NewReplacer(`""`, `"TEXT"`, `?":`, `":`, `"*":`, `"NAME":`).Replace(shape)
}

// Check returns an error if a result doesn't fit the shape: it isn't JSON, a value in it has
// another kind, a field is missing, or a field is unknown. Every result fits a shape that is empty
// or can't be read.
func Check(shape string, result []byte) error {
	want, err := parsed([]byte(shape))
	if err != nil {
		return nil //nolint:nilerr // an unreadable shape demands nothing
	}
	got, err := parsed(result)
	if err != nil {
		return err
	}
	if wrong := differs(want, got, ""); wrong != "" {
		return errors.New(wrong + "; the program reads " + Example(shape))
	}
	return nil
}

func parsed(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// differs compares the value got with the shape want, and describes the first
// difference; "" if got fits. The parameter at is the place of got in the result.
func differs(want, got any, at string) string {
	var fits bool
	switch want := want.(type) {
	case nil:
		return ""
	case map[string]any:
		object, is := got.(map[string]any)
		if each, any := want["*"]; is && any {
			return inEach(each, object, at)
		}
		if is {
			return inFields(want, object, at)
		}
		_, each := want["*"]
		fits = each && got == nil
	case []any:
		list, is := got.([]any)
		for i := 0; is && len(want) > 0 && i < len(list); i++ {
			if wrong := differs(want[0], list[i], fmt.Sprintf("%s[%d]", at, i)); wrong != "" {
				return wrong
			}
		}
		fits = is || got == nil // encoding/json writes a nil list as null
	case json.Number:
		n, is := got.(json.Number)
		fits = is && (want != "0" || !strings.ContainsAny(string(n), ".eE"))
	default:
		fits = reflect.TypeOf(want) == reflect.TypeOf(got)
	}
	if fits {
		return ""
	}
	return fmt.Sprintf("%s is %s, not %s", named(at), kind(want), kind(got))
}

func inEach(want any, got map[string]any, at string) string {
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if wrong := differs(want, got[name], in(at, name)); wrong != "" {
			return wrong
		}
	}
	return ""
}

func inFields(want, got map[string]any, at string) string {
	for _, name := range slices.Sorted(maps.Keys(got)) {
		_, must := want[name]
		_, may := want[name+"?"]
		if !must && !may {
			return "there is no field " + named(in(at, name))
		}
	}
	for _, marked := range slices.Sorted(maps.Keys(want)) {
		name, optional := strings.CutSuffix(marked, "?")
		is, there := got[name]
		switch {
		case optional && is == nil: // missing, or null
		case !there:
			return named(in(at, name)) + " is missing"
		default:
			if wrong := differs(want[marked], is, in(at, name)); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func in(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }

func named(at string) string {
	if at == "" {
		return "the result"
	}
	return strconv.Quote(at)
}

func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case json.Number:
		if v == "0" {
			return "a whole number"
		}
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
