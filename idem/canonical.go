package idem

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the recursion over a client's JSON.
const maxDepth = 200

var errNotCanonical = errors.New("no canonical form")

// canonicalJSON returns body without white space and with sorted members, or
// false where that could make two bodies alike that a handler may tell apart:
// not one JSON value, members repeated (in any case), invalid UTF-8, or too deep. Numbers are
// kept as written: 1.0 and 1 differ, and so do integers beyond 2^53.
//
// RFC 8785 (JCS) is not used because it reads numbers as float64, which makes
// 12345678901234567890 and …891 one number.
func canonicalJSON(body []byte) ([]byte, bool) {
	if !utf8.Valid(body) {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	out, err := appendValue(make([]byte, 0, len(body)), dec, 0)
	if err != nil {
		return nil, false
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return out, true
}

func appendValue(out []byte, dec *json.Decoder, depth int) ([]byte, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errNotCanonical
	}
	switch tok {
	case json.Delim('{'):
		return appendObject(out, dec, depth)
	case json.Delim('['):
		return appendArray(out, dec, depth)
	}
	return appendScalar(out, tok)
}

func appendArray(out []byte, dec *json.Decoder, depth int) ([]byte, error) {
	out = append(out, '[')
	for i := 0; dec.More(); i++ {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendValue(out, dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return append(out, ']'), err
}

func appendObject(out []byte, dec *json.Decoder, depth int) ([]byte, error) {
	type member struct {
		name  string
		value []byte
	}
	var members []member
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := tok.(string)
		value, err := appendValue(nil, dec, depth+1)
		if err != nil {
			return nil, err
		}
		members = append(members, member{name, value})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	seen := make(map[string]bool, len(members))
	out = append(out, '{')
	for i, m := range members {
		// Go's decoder matches names in any case, and then the last one counts.
		folded := strings.ToLower(strings.ToUpper(m.name))
		if seen[folded] {
			return nil, errNotCanonical
		}
		seen[folded] = true
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendScalar(out, m.name); err != nil {
			return nil, err
		}
		out = append(append(out, ':'), m.value...)
	}
	return append(out, '}'), nil
}

func appendScalar(out []byte, tok json.Token) ([]byte, error) {
	// The decoder puts U+FFFD in place of a lone surrogate, so two different
	// strings would become one.
	if s, ok := tok.(string); ok && strings.ContainsRune(s, utf8.RuneError) {
		return nil, errNotCanonical
	}
	b, err := json.Marshal(tok)
	return append(out, b...), err
}
