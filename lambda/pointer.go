package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSONKey finds the key where a JSON Pointer (RFC 6901) leads: JSONKey("/order/id").
// With several pointers the key is made of all of the values, in their order; each of
// them must be there.
//
// A text, or an integer as it is written, however large, is the key. So 7 and "7" are
// one key, and two bodies that spell it differently are refused as two requests
// ([idem.ErrMismatch]) instead of being done twice. Numbers with a fraction or an
// exponent, true, false, null, objects and lists are no key. A text that may not be a
// key (not 1 to 255 visible ASCII characters) is taken by its SHA-256. Member names
// count as they are written; a member that is there twice on the way is an error.
//
// It panics if a pointer isn't sound, or is "": a mistake in the program, best found
// at cold start.
func JSONKey(pointer string, more ...string) BodyKey {
	paths := parsePointers("JSONKey", append([]string{pointer}, more...))
	return BodyKey{Key: func(body []byte) (string, error) {
		texts, err := textsAt(body, paths)
		if err != nil {
			return "", err
		}
		return textKey(texts...), nil
	}}
}

// pointer is a parsed JSON Pointer.
type pointer struct {
	text   string
	tokens []string
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// top is the pointer to a member that a format has at its top.
func top(member string) pointer { return pointer{text: "/" + member, tokens: []string{member}} }

// parsePointers panics where one isn't sound.
func parsePointers(who string, pointers []string) []pointer {
	paths := make([]pointer, len(pointers))
	for i, text := range pointers {
		if !strings.HasPrefix(text, "/") || strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(text), "~") {
			panic(fmt.Sprintf("lambda: %s: %q isn't a JSON Pointer to a value in a body, such as /order/id", who, text)) //nolint:forbidigo // a mistake in the program
		}
		paths[i].text = text
		for token := range strings.SplitSeq(text[1:], "/") {
			paths[i].tokens = append(paths[i].tokens, unescape.Replace(token))
		}
	}
	return paths
}

// errAbsent matches the error for a value that isn't there.
var errAbsent = errors.New("it is missing")

// find returns the value that p leads to.
func (p pointer) find(body []byte) (json.RawMessage, error) {
	at := json.RawMessage(body)
	for i, token := range p.tokens {
		next, err := step(at, token)
		if err != nil {
			return nil, fmt.Errorf("%s: at %s: %w", p.text, "/"+strings.Join(p.tokens[:i], "/"), err)
		}
		if next == nil {
			return nil, fmt.Errorf("%s: %w", p.text, errAbsent)
		}
		at = next
	}
	return at, nil
}

// step returns a member or an element, or nil if there is none.
func step(at json.RawMessage, token string) (json.RawMessage, error) {
	if bytes.HasPrefix(bytes.TrimLeft(at, " \t\r\n"), []byte("[")) {
		var list []json.RawMessage
		if err := json.Unmarshal(at, &list); err != nil {
			return nil, errors.New("it isn't JSON")
		}
		for n := range list { // a number with a sign or with zeros before it is none
			if strconv.Itoa(n) == token {
				return list[n], nil
			}
		}
		return nil, nil
	}
	m, err := object(at)
	if err != nil {
		return nil, err
	}
	return m[token], nil
}

func textsAt(body []byte, paths []pointer) ([]string, error) {
	texts := make([]string, len(paths))
	for i, p := range paths {
		v, err := p.find(body)
		if err != nil {
			return nil, err
		}
		if texts[i], _, err = scalar(v); err != nil {
			return nil, fmt.Errorf("%s: %w", p.text, err)
		}
	}
	return texts, nil
}

// textAt is the value at p, or "" if it is missing.
func textAt(body []byte, p pointer) (string, error) {
	texts, err := textsAt(body, []pointer{p})
	switch {
	case errors.Is(err, errAbsent):
		return "", nil
	case err != nil:
		return "", err
	}
	return texts[0], nil
}

var integer = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// scalar is a text or an integer, as a text; number tells them apart.
func scalar(v json.RawMessage) (text string, number bool, err error) {
	if integer.Match(v) {
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
		return "", false, errors.New("it isn't Unicode") // two texts would become one
	}
	return text, false, nil
}
