package idem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxDepth bounds the recursion over a client's JSON.
	maxDepth = 200
	// maxForm limits the size of bodies that get a canonical form. For a body of this
	// size, making the form takes a third of a second and about 30 times the body's
	// memory. A replay costs the same, since the form is made before the claim.
	maxForm = 1 << 20
)

// Reasons why a body has no canonical form. Each text follows "The body" in a message to a
// client.
var (
	errNotCanonical = errors.New("is not one JSON value")
	errNotUTF8      = errors.New("is not UTF-8")
	errTooLong      = errors.New("has more than 1 MiB, too much to be compared as JSON") // maxForm
	errTooDeep      = fmt.Errorf("has more than %d levels", maxDepth)
	errTwice        = errors.New("has an object with two members of the same name")
	errCase         = errors.New("has an object with two members whose names differ only in case")
	errSurrogate    = errors.New("has half of a surrogate pair in a text")
)

// CanonicalJSON returns body without white space and with sorted members.
// [Fingerprint.CanonicalJSON] compares bodies in this form. A [Fingerprint.Func] can
// call CanonicalJSON. Numbers stay as written: 1.0 differs from 1, and an integer
// beyond 2^53 keeps all its digits.
//
// CanonicalJSON returns false if body isn't exactly one JSON value. It also returns
// false if body has an object with two members of the same name (ignoring case),
// invalid UTF-8, or a string with U+FFFD or half of a surrogate pair. Otherwise two
// bodies that a handler distinguishes could have the same form. CanonicalJSON also
// returns false for a body of more than 1 MiB or 200 levels, since its form would take
// too much memory.
//
// CanonicalJSON doesn't follow RFC 8785 (JCS). That RFC reads numbers as float64, so it
// treats 12345678901234567890 and 12345678901234567891 as equal.
//
// CanonicalJSON takes time in proportion to the body's size, however deep the body is:
// each value is written at most twice.
func CanonicalJSON(body []byte) ([]byte, bool) {
	form, err := formOf(body, false)
	return form, err == nil
}

// formOf returns the canonical form of a JSON value: equal values have the same form.
// Equality follows the rules of [exactJSON] if exact is true, otherwise those of
// [CanonicalJSON].
func formOf(body []byte, exact bool) ([]byte, error) {
	if len(body) > maxForm {
		return nil, errTooLong
	}
	if !utf8.Valid(body) {
		return nil, errNotUTF8
	}
	c := canonical{dec: json.NewDecoder(bytes.NewReader(body)), out: make([]byte, 0, len(body)), exact: exact}
	c.dec.UseNumber()
	if err := c.value(0); err != nil {
		return nil, err
	}
	if _, err := c.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotCanonical
	}
	if len(c.moved) == 0 {
		return c.out, nil
	}
	return c.sorted(make([]byte, 0, len(c.out)), 0, len(c.out), c.moved), nil
}

// canonical holds the state of a conversion to the canonical form.
type canonical struct {
	dec     *json.Decoder
	exact   bool     // numbers are compared by value
	out     []byte   // the value so far, without white space and with members in their original order
	members []member // members of the objects that have not ended; those of the innermost object come last
	moved   []object // outermost objects with unsorted members, ordered by their start in out
}

type object struct {
	start, end int
	members    []member // sorted
	moved      []object // outermost objects inside this one that have unsorted members
}

// member is the place of one `"name":value` in canonical.out.
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
		return errTooDeep
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

// canonical.arrange checks the object that begins at start and has just ended. If two
// members have the same name (ignoring case), arrange returns an error. If the members
// are not in order, arrange adds the object to c.moved.
func (c *canonical) arrange(start int, members []member) error {
	if len(members) < 2 {
		return nil
	}
	seen := make(map[string]string, len(members))
	for _, m := range members {
		// Go's decoder ignores the case of names. If two members then have the same
		// name, a handler in Go gets only the last member.
		folded := strings.Map(foldRune, m.name)
		switch other, twice := seen[folded]; {
		case twice && other == m.name:
			return errTwice
		case twice:
			return errCase
		}
		seen[folded] = m.name
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

// foldRune returns the smallest rune that equals r if case is ignored. The rules are those
// of encoding/json and [strings.EqualFold].
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}

// canonical.sorted appends c.out[from:end] to its first argument, and sorts the members
// of each object in the copy. The parameter moved lists the outermost objects of
// c.out[from:end] whose members are not sorted.
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
	switch tok := tok.(type) {
	case string:
		// The decoder replaces half of a surrogate pair by U+FFFD, so two different
		// strings would become equal. If c.exact is true, exactJSON has already refused
		// such strings.
		if !c.exact && strings.ContainsRune(tok, utf8.RuneError) {
			return errNotCanonical
		}
	case json.Number:
		if c.exact {
			c.out = appendDecimal(c.out, string(tok))
			return nil
		}
	}
	b, err := json.Marshal(tok)
	c.out = append(c.out, b...)
	return err
}
