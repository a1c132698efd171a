package leaktest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"testing"

	"github.com/samekey/samekey/internal/testkit/leaktest"
)

// Each form of a content is found, of a long one also its middle alone.
func TestEachFormOfManyContentsIsFound(t *testing.T) {
	t.Parallel()
	var c leaktest.Contents
	long := make([]byte, 0, 4000)
	for i := range 1000 {
		long = append(long, hex.EncodeToString([]byte{byte(i >> 8), byte(i)})...)
	}
	if !c.Add([]byte(secret)) || !c.Add(long) || !c.Add([]byte("another content of a test")) || c.Add([]byte("short")) || c.Add(bytes.Repeat([]byte("a"), 99)) || c.Count != 3 {
		t.Fatalf("%d contents", c.Count)
	}
	middle := long[len(long)/2-10 : len(long)/2+100]
	for form, text := range map[string][]byte{
		"plain":          []byte("a " + secret + " b"),
		"hex":            []byte("x" + hex.EncodeToString([]byte(secret))),
		"base64 at 0":    []byte(base64.StdEncoding.EncodeToString([]byte(secret + "b"))),
		"base64 at 1":    []byte(base64.StdEncoding.EncodeToString([]byte("a" + secret + "b"))),
		"base64url at 2": []byte(base64.RawURLEncoding.EncodeToString([]byte("ab" + secret))),
		"gzip":           zipped("a" + secret),
		"deflate":        deflated("a" + secret),
		"gzip in base64": []byte(base64.StdEncoding.EncodeToString(zipped(secret))),
		"base64 in gzip": zipped(base64.StdEncoding.EncodeToString([]byte("ab" + secret))),
		"the middle":     middle,
		"its gzip":       zipped(string(middle)),
	} {
		if found := c.Find(text); len(found) != 1 {
			t.Errorf("%s: found %q", form, found)
		}
	}
	if found := c.Find([]byte("4242 4242?4242>4243 and another content of a text")); len(found) != 0 {
		t.Errorf("found %q", found)
	}
}
