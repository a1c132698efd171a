package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// house is what a walk over the sources counts.
type house struct {
	lines   map[string]int // lines of Go, by part; all modules
	names   map[string]int // exported top-level names, by public package
	knotty  string         // the function with the highest cyclomatic count
	highest int
}

// The house in figures, beside those of 23 November 2026, before it was built anew. The
// bounds keep it from growing unseen: a name more needs a user who asked for it.
// `go test -C proof ./rules -run TestHouse -v` prints all.
func TestHouse(t *testing.T) {
	t.Parallel()
	const mostNames, mostOfIdem, mostFolders, mostKnotty = 490, 94, 10, 40
	h := walk(t)
	all := 0
	for _, n := range h.names {
		all += n
	}
	folders, err := filepath.Glob(filepath.Join(root, "internal", "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("%d folders, %v", len(folders), err)
	}
	row := func(what, before string, now any) { t.Logf("| %s | %s | %v |", what, before, now) }
	row("", "23 Nov", "now")
	row("---", "---", "---")
	total := 0
	for _, n := range h.lines {
		total += n
	}
	row("lines of Go, all", "190,177", total)
	for _, part := range []string{"library", "command line", "runner", "tools", "examples", "kits", "proof", "tests"} {
		row("- "+part, map[string]string{"library": "31,021", "command line": "14,514", "runner": "13,645", "tools": "12,463", "examples": "4,029"}[part], h.lines[part])
	}
	row("folders in internal/", "44", len(folders))
	row("exported top-level names", "759", all)
	for _, pkg := range slices.SortedFunc(maps.Keys(h.names), func(a, b string) int { return h.names[b] - h.names[a] }) {
		row("- "+pkg, map[string]string{"idem": "109", "lambda/metrics": "72", "idem/client": "59", "idem/store": "55", "dynamo/stream": "51", "lambda": "47"}[pkg], h.names[pkg])
	}
	row("highest cyclomatic count", "42, dynamo.Store.update", fmt.Sprintf("%d, %s", h.highest, h.knotty))
	if all > mostNames || h.names["idem"] > mostOfIdem {
		t.Errorf("%d exported names, at most %d; of idem %d, at most %d: does a program need the new one?", all, mostNames, h.names["idem"], mostOfIdem)
	}
	if len(folders) > mostFolders {
		t.Errorf("%d folders in internal/, at most %d", len(folders), mostFolders)
	}
	if h.highest > mostKnotty {
		t.Errorf("%s has a cyclomatic count of %d, at most %d", h.knotty, h.highest, mostKnotty)
	}
}

// walk counts the sources of all modules.
func walk(t *testing.T) house {
	t.Helper()
	h := house{lines: map[string]int{}, names: map[string]int{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "dist") {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		part := partOf(rel)
		h.lines[part] += bytes.Count(src, []byte("\n"))
		if strings.Contains(rel, "testdata/") || part == "tests" || part == "proof" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				if n := cyclomatic(fn); n > h.highest {
					h.highest, h.knotty = n, filepath.ToSlash(filepath.Dir(rel))+"."+fn.Name.Name
				}
			}
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		public := f.Name.Name != "main" && !slices.Contains(strings.Split(dir, "/"), "internal") && !strings.HasPrefix(dir, "examples/")
		if _, counted := h.names[dir]; public && !counted {
			h.names[dir] = len(exported(t, dir))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// partOf returns the part of the house that a file belongs to.
func partOf(rel string) string {
	switch {
	case strings.HasPrefix(rel, "proof/"):
		return "proof"
	case strings.HasSuffix(rel, "_test.go"):
		return "tests"
	}
	for _, of := range []struct{ prefix, part string }{
		{"examples/", "examples"},
		{"internal/cli/", "command line"},
		{"cmd/", "command line"},
		{"internal/local/", "runner"},
		{"internal/servers/", "runner"},
		{"internal/tools/", "tools"},
		{"internal/testkit/", "kits"},
		{"idem/idemtest/", "kits"},
		{"dynamo/dynamotest/", "kits"},
		{"lambda/lambdatest/", "kits"},
	} {
		if strings.HasPrefix(rel, of.prefix) {
			return of.part
		}
	}
	return "library"
}

// cyclomatic counts the ways through a function: one, and one more for each decision.
func cyclomatic(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit: // its decisions are its own
			return false
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
