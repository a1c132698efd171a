package main

import (
	"flag"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what commands print into pages")

var spaces = regexp.MustCompile(` {2,}`)

// says checks that a text contains the parts. Columns of tables are two spaces apart.
func says(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	got = spaces.ReplaceAllString(got, "  ")
	for _, want := range parts {
		if !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant in it:\n%s", what, got, want)
		}
	}
}
