package pages_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write generated blocks anew")

// root is the repository, from here.
const root = "../.."

// pages returns every Markdown file of the repository, by its path from root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "dist" || name == "testdata"):
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

// Tables of what the engine does are made by the engine. A block stands between
//
//	<!-- generated NAME -->
//	<!-- end NAME -->
func TestGeneratedBlocks(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile(`(?s)<!-- generated ([a-z-]+) -->\n(.*?)<!-- end ([a-z-]+) -->`)
	used := make(map[string]bool)
	for page, text := range pages(t) {
		fresh := block.ReplaceAllStringFunc(text, func(old string) string {
			m := block.FindStringSubmatch(old)
			name, was := m[1], m[2]
			generate := generators[name]
			if generate == nil || m[3] != name {
				t.Errorf("%s: nothing generates the block %q, or it ends as %q", page, name, m[3])
				return old
			}
			used[name] = true
			is := generate(t)
			if is != was && !*update {
				t.Errorf("%s: %s is out of date (go test -C proof ./pages -update):\n%s", page, name, firstDifference(was, is))
			}
			return fmt.Sprintf("<!-- generated %s -->\n%s<!-- end %s -->", name, is, name)
		})
		if *update && fresh != text {
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
}

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

// table is a Markdown table.
type table struct {
	head []string
	rows [][]string
}

func (tb *table) add(cells ...string) { tb.rows = append(tb.rows, cells) }

func (tb *table) String() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(tb.head)
	line(slices.Repeat([]string{"---"}, len(tb.head)))
	for _, row := range tb.rows {
		line(row)
	}
	return b.String()
}

func code(s string) string { return "`" + s + "`" }
