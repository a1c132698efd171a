package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrAbsent matches the error for a missing value.
var ErrAbsent = errors.New("it is missing")

// Pointer is a parsed JSON Pointer (RFC 6901) to a value in a body.
type Pointer struct {
	Text   string
	tokens []string
}

// Member returns the pointer to the body's member with the given name. Several names
// are the path to a nested member. No name may contain "/" or "~".
func Member(path ...string) Pointer {
	return Pointer{Text: "/" + strings.Join(path, "/"), tokens: path}
}

// Parse reads a JSON Pointer. It returns false if the text is malformed or points to the
// whole body.
func Parse(text string) (Pointer, bool) {
	if !strings.HasPrefix(text, "/") || strings.Count(text, "~") != strings.Count(text, "~0")+strings.Count(text, "~1") {
		return Pointer{}, false
	}
	p := Pointer{Text: text}
	for token := range strings.SplitSeq(text[1:], "/") {
		p.tokens = append(p.tokens, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	return p, true
}

// Texts returns the texts and integers at the pointers. A missing value is an error.
func Texts(body []byte, pointers []Pointer) ([]string, error) {
	texts := make([]string, len(pointers))
	for i, p := range pointers {
		v, err := p.Find(body)
		if err != nil {
			return nil, err
		}
		if texts[i], _, err = Scalar(v); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Text, err)
		}
	}
	return texts, nil
}

// Text returns the text or integer at p; "" if it is missing.
func Text(body []byte, p Pointer) (string, error) {
	texts, err := Texts(body, []Pointer{p})
	switch {
	case errors.Is(err, ErrAbsent):
		return "", nil
	case err != nil:
		return "", err
	}
	return texts[0], nil
}

// Find returns the value at p.
func (p Pointer) Find(body []byte) (json.RawMessage, error) {
	at := json.RawMessage(body)
	for i, token := range p.tokens {
		next, err := step(at, token)
		if err != nil {
			return nil, fmt.Errorf("%s: at %s: %w", p.Text, "/"+strings.Join(p.tokens[:i], "/"), err)
		}
		if next == nil {
			return nil, fmt.Errorf("%s: %w", p.Text, ErrAbsent)
		}
		at = next
	}
	return at, nil
}

// step returns a member of an object or an element of a list; nil if it is missing.
func step(at json.RawMessage, token string) (json.RawMessage, error) {
	if bytes.HasPrefix(bytes.TrimLeft(at, " \t\r\n"), []byte("[")) {
		var list []json.RawMessage
		if err := json.Unmarshal(at, &list); err != nil {
			return nil, errors.New("it isn't JSON")
		}
		for n := range list { // compared as text, so that "+1" and "01" match nothing
			if strconv.Itoa(n) == token {
				return list[n], nil
			}
		}
		return nil, nil
	}
	m, err := Object(at)
	if err != nil {
		return nil, err
	}
	return m[token], nil
}

// Scalar returns the text or integer v. It decodes a text, and returns an integer as it
// is written. The result number is true for an integer. Scalar
// returns an error if v is an empty text, or neither a text nor an integer.
func Scalar(v json.RawMessage) (text string, number bool, err error) {
	if integer(v) {
		return string(v), true, nil
	}
	if len(v) == 0 || v[0] != '"' {
		return "", false, errors.New("it is neither a text nor an integer")
	}
	switch err := json.Unmarshal(v, &text); {
	case err != nil:
		return "", false, errors.New("it isn't JSON")
	case text == "":
		return "", false, errors.New("it is empty")
	case !utf8.Valid(v) || strings.ContainsRune(text, utf8.RuneError):
		return "", false, errors.New("it isn't Unicode") // decoding replaces invalid characters, so that two different texts could become equal
	}
	return text, false, nil
}

// integer reports whether v is an integer without fraction, exponent or leading zeros. So
// every integer has a single spelling.
func integer(v []byte) bool {
	digits := bytes.TrimPrefix(v, []byte("-"))
	if len(digits) == 0 || digits[0] == '0' {
		return string(v) == "0"
	}
	return len(bytes.Trim(digits, "0123456789")) == 0
}

// Without returns the body without the member at p. Objects on the path are encoded
// again.
func (p Pointer) Without(body []byte) (json.RawMessage, error) { return without(body, p.tokens) }

func without(body json.RawMessage, path []string) (json.RawMessage, error) {
	m, err := Object(body)
	if err != nil {
		return nil, err
	}
	if len(path) == 1 {
		delete(m, path[0])
	} else if m[path[0]] != nil {
		if m[path[0]], err = without(m[path[0]], path[1:]); err != nil {
			return nil, err
		}
	}
	return json.Marshal(m)
}
