package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// symbol is a link from a page to a declaration, as [`name`](../../folder/file.go).
var symbol = regexp.MustCompile("\\[`([A-Za-z_][\\w.]*)`\\]\\(\\.\\./\\.\\./([^()\\s#]+\\.go)\\)")

// Each function that docs/inside/architecture.md names is declared in the file that it links to.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	links := symbol.FindAllStringSubmatch(pages(t)["docs/inside/architecture.md"], -1)
	if len(links) < 50 {
		t.Errorf("got %d links to declarations: something is wrong with this test", len(links))
	}
	for _, m := range links {
		name, file := m[1], m[2]
		code, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Error(err)
			continue
		}
		receiver, method, isMethod := strings.Cut(name, ".")
		declared := `(?m)^(?:func|type|var|const|\t)\s*` + name + `\b`
		if isMethod {
			declared = `(?m)^func \((?:\w+ )?\*?` + receiver + `(?:\[.*?\])?\) ` + method + `\b`
		}
		if !regexp.MustCompile(declared).Match(code) {
			t.Errorf("got no %s in %s, where the page has it", name, file)
		}
	}
}
