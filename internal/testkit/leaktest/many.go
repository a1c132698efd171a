package leaktest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
)

// shortest is the minimum length, in bytes, of a content that Contents looks for. Shorter
// contents occur in many texts by chance.
const shortest = 16

// Contents looks for many contents at once, such as all bodies of a test run. The zero Contents is
// empty.
type Contents struct {
	needles map[[shortest]byte][]content
	Count   int
}

// The type content is one form of an added content, such as hex. The beginning of the form, the
// needle, is the key in Contents.needles.
type content struct {
	name, form string
	rest       []byte // the text after the needle
}

// mostRest is the maximum number of bytes of a content that are compared. Contents looks for the
// beginning of a longer content, and for a part from the middle if the content is long enough: such
// a part is a leak, too.
const mostRest = 48

// Add adds a content, and reports whether it did so. It skips a content that is too short, and one
// that repeats a single byte, since inflating random bytes often yields such repetitions.
func (c *Contents) Add(text []byte) bool {
	if c.needles == nil {
		c.needles = make(map[[shortest]byte][]content)
	}
	added := false
	for _, from := range []int{0, len(text) / 2} {
		part := text[from:min(len(text), from+mostRest)]
		if len(part) < shortest || from > 0 && len(text) < 4*mostRest || bytes.Count(part, part[:1]) == len(part) {
			continue
		}
		added = true
		name := string(part)
		c.add(name, "plain", part)
		c.add(name, "hex", []byte(hex.EncodeToString(part)))
		for offset := range 3 {
			b := append(make([]byte, offset), part...)
			first, end := (offset*8+5)/6, len(b)*8/6
			c.add(name, "base64", []byte(base64.RawStdEncoding.EncodeToString(b)[first:end]))
			c.add(name, "base64", []byte(base64.RawURLEncoding.EncodeToString(b)[first:end]))
		}
	}
	if added {
		c.Count++
	}
	return added
}

func (c *Contents) add(name, form string, text []byte) {
	needle := [shortest]byte(text)
	same := func(k content) bool { return k.name == name && k.form == form }
	if !slices.ContainsFunc(c.needles[needle], same) {
		c.needles[needle] = append(c.needles[needle], content{name, form, text[shortest:]})
	}
}

// Find returns each content that text contains, followed by the form: plain, hexadecimal
// or base64. It also finds these forms within gzip, DEFLATE or base64, up to three layers
// deep.
func (c *Contents) Find(text []byte) []string {
	found := c.find(text, "", 3)
	slices.Sort(found)
	return slices.Compact(found)
}

func (c *Contents) find(text []byte, within string, depth int) (found []string) {
	for i := 0; i+shortest <= len(text); i++ {
		for _, k := range c.needles[[shortest]byte(text[i:])] {
			if bytes.HasPrefix(text[i+shortest:], k.rest) {
				found = append(found, k.name+" "+within+k.form)
			}
		}
	}
	if depth == 0 {
		return found
	}
	for _, l := range layers(text) {
		found = append(found, c.find(l.text, within+l.form, depth-1)...)
	}
	return found
}
