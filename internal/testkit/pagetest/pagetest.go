// Package pagetest compares the generated blocks of the pages with the output of their
// generators, for tests.
package pagetest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Pages returns the Markdown files below root. The map's key is a file's path relative
// to root. Pages skips hidden folders and those named dist, testdata or node_modules.
func Pages(t *testing.T, root string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "dist" || name == "testdata" || name == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		found[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found["README.md"] == "" || found["docs/README.md"] == "" {
		t.Fatal("README.md and docs/README.md are not among the pages: something is wrong with this test")
	}
	return found
}

var block = regexp.MustCompile(`(?s)<!-- generated ([a-z-]+) -->\n(.*?)<!-- end ([a-z-]+) -->`)

// Blocks compares each block of the pages below root with the output of the generator
// whose key is the block's NAME. If update is set, Blocks writes the output into the
// block instead. A block is the text between these lines:
//
//	<!-- generated NAME -->
//	<!-- end NAME -->
//
// If no page has the block of a generator, Blocks fails the test. It returns the sorted
// names of the blocks that have no generator.
func Blocks(t *testing.T, root string, update bool, generators map[string]func(*testing.T) string) []string {
	t.Helper()
	used, others := make(map[string]bool), make(map[string]bool)
	for page, text := range Pages(t, root) {
		fresh := block.ReplaceAllStringFunc(text, func(old string) string {
			m := block.FindStringSubmatch(old)
			name, was := m[1], m[2]
			generate := generators[name]
			switch {
			case m[3] != name:
				t.Errorf("%s: the block %q ends as %q", page, name, m[3])
				return old
			case generate == nil:
				others[name] = true
				return old
			}
			used[name] = true
			is := generate(t)
			if is != was && !update {
				t.Errorf("%s: %s is out of date (-update writes it):\n%s", page, name, firstDifference(was, is))
			}
			return fmt.Sprintf("<!-- generated %s -->\n%s<!-- end %s -->", name, is, name)
		})
		if update && fresh != text {
			if err := os.WriteFile(filepath.Join(root, page), []byte(fresh), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name := range generators {
		if !used[name] {
			t.Errorf("no page has the block %q", name)
		}
	}
	return slices.Sorted(maps.Keys(others))
}

// firstDifference returns the number of the first line in which the texts differ, and
// this line of both texts.
func firstDifference(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, x, y)
		}
	}
	return ""
}

// Table is a Markdown table.
type Table struct {
	Head []string
	Rows [][]string
}

// Add adds a row.
func (tb *Table) Add(cells ...string) { tb.Rows = append(tb.Rows, cells) }

// String returns the table's lines.
func (tb *Table) String() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(tb.Head)
	line(slices.Repeat([]string{"---"}, len(tb.Head)))
	for _, row := range tb.Rows {
		line(row)
	}
	return b.String()
}

// Code returns s in backquotes.
func Code(s string) string { return "`" + s + "`" }
