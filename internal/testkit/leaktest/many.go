package leaktest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
)

// shortest is the minimum length, in bytes, of what Contents looks for. A shorter
// content occurs in many texts by chance.
const shortest = 16

// Contents looks for many contents at once, such as all bodies of a test run. The zero Contents is
// empty.
type Contents struct {
	needles map[[shortest]byte][]content
	Count   int
}

// The type content is one form, such as hex, of a part of an added content. The
// beginning of the form is called the needle, and is the key in Contents.needles.
type content struct {
	name, form string
	rest       []byte // the text after the needle
}

// mostRest is the maximum length of a part, in bytes. Contents looks for parts only,
// because a leaked part is a leak too. One part is the beginning of the content. A
// content of at least four times mostRest has a second part, from the middle.
const mostRest = 48

// Add adds a content's parts, and reports whether it added any. It skips a part shorter
// than 16 bytes. It also skips a part that repeats a single byte, because inflating
// random bytes often yields such repetitions.
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

// Find returns the parts of contents that text contains. Each part is followed by its
// form: plain, hexadecimal or base64. Find also looks inside gzip, DEFLATE and base64,
// up to three layers deep.
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
