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

// CanonicalJSON returns the form in which [Fingerprint.CanonicalJSON] compares a body,
// for a [Fingerprint.Func] of one's own: without white space and with sorted members.
// It returns false where that could make two bodies alike that a handler may tell
// apart: not one JSON value, members repeated (in any case), invalid UTF-8, or more
// than 200 levels. Numbers are kept as written: 1.0 and 1 differ, and so do integers
// beyond 2^53.
//
// RFC 8785 (JCS) is not used because it reads numbers as float64, which makes
// 12345678901234567890 and …891 one number.
//
// It takes time in proportion to the body, however deep that is: the values are
// written once in the order they come in, and once more where members have to
// change places.
func CanonicalJSON(body []byte) ([]byte, bool) {
	if !utf8.Valid(body) {
		return nil, false
	}
	c := canonical{dec: json.NewDecoder(bytes.NewReader(body)), out: make([]byte, 0, len(body))}
	c.dec.UseNumber()
	if c.value(0) != nil {
		return nil, false
	}
	if _, err := c.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	if len(c.moved) == 0 {
		return c.out, true
	}
	return c.sorted(make([]byte, 0, len(c.out)), 0, len(c.out), c.moved), true
}

// canonical is a body on its way to its canonical form.
type canonical struct {
	dec     *json.Decoder
	out     []byte   // without white space, members as they came
	members []member // of the objects that are open, the innermost last
	moved   []object // whose members must change places, in their order in out
}

// object is one in out.
type object struct {
	start, end int
	members    []member // sorted
	moved      []object // in it
}

// member is `"name":value` in out.
type member struct {
	name       string
	start, end int
}

func (c *canonical) value(depth int) error {
	tok, err := c.dec.Token()
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errNotCanonical
	}
	switch tok {
	case json.Delim('{'):
		return c.object(depth)
	case json.Delim('['):
		return c.array(depth)
	}
	return c.scalar(tok)
}

func (c *canonical) array(depth int) error {
	c.out = append(c.out, '[')
	for i := 0; c.dec.More(); i++ {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	_, err := c.dec.Token()
	c.out = append(c.out, ']')
	return err
}

func (c *canonical) object(depth int) error {
	start, first := len(c.out), len(c.members)
	c.out = append(c.out, '{')
	for i := 0; c.dec.More(); i++ {
		tok, err := c.dec.Token()
		if err != nil {
			return err
		}
		if i > 0 {
			c.out = append(c.out, ',')
		}
		name, _ := tok.(string)
		at := len(c.out)
		if err := c.scalar(name); err != nil {
			return err
		}
		c.out = append(c.out, ':')
		if err := c.value(depth + 1); err != nil {
			return err
		}
		c.members = append(c.members, member{name, at, len(c.out)})
	}
	_, err := c.dec.Token()
	c.out = append(c.out, '}')
	if err == nil {
		err = c.arrange(start, c.members[first:])
	}
	c.members = c.members[:first]
	return err
}

// arrange notes the object from start on, which has just ended, if its members
// are not in order.
func (c *canonical) arrange(start int, members []member) error {
	if len(members) < 2 {
		return nil
	}
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		// Go's decoder matches names in any case, and then the last one counts.
		folded := strings.ToLower(strings.ToUpper(m.name))
		if seen[folded] {
			return errNotCanonical
		}
		seen[folded] = true
	}
	byName := func(a, b member) int { return strings.Compare(a.name, b.name) }
	if slices.IsSortedFunc(members, byName) {
		return nil
	}
	o := object{start: start, end: len(c.out), members: slices.Clone(members)}
	slices.SortFunc(o.members, byName)
	i := len(c.moved)
	for i > 0 && c.moved[i-1].start > start {
		i--
	}
	o.moved = slices.Clone(c.moved[i:])
	c.moved = append(c.moved[:i], o)
	return nil
}

// sorted appends out[from:to], in which moved are the objects to put in order.
func (c *canonical) sorted(to []byte, from, end int, moved []object) []byte {
	for _, o := range moved {
		to = append(append(to, c.out[from:o.start]...), '{')
		for i, m := range o.members {
			if i > 0 {
				to = append(to, ',')
			}
			first, _ := slices.BinarySearchFunc(o.moved, m.start, func(o object, at int) int { return o.start - at })
			last, _ := slices.BinarySearchFunc(o.moved, m.end, func(o object, at int) int { return o.start - at })
			to = c.sorted(to, m.start, m.end, o.moved[first:last])
		}
		to, from = append(to, '}'), o.end
	}
	return append(to, c.out[from:end]...)
}

func (c *canonical) scalar(tok json.Token) error {
	// The decoder puts U+FFFD in place of a lone surrogate, so two different
	// strings would become one.
	if s, ok := tok.(string); ok && strings.ContainsRune(s, utf8.RuneError) {
		return errNotCanonical
	}
	b, err := json.Marshal(tok)
	c.out = append(c.out, b...)
	return err
}
