package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/samekey/samekey/proof/internal/harness"
)

// A mutant that doesn't compile proves nothing, and its play would be the first to tell.
func TestMutantsCompile(t *testing.T) {
	t.Parallel()
	root, err := harness.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for dir, ms := range byFolder() {
		s := loaded(t, dir)
		wrong := typesOf(t, filepath.Join(root, dir), s.text)
		before := make(map[string][]string)
		for _, m := range ms {
			file, text, err := s.mutated(m)
			if err != nil {
				continue // TestTableFitsTheCode tells
			}
			file = path.Base(file)
			_, name := m.place()
			if before[name] == nil {
				before[name] = append(wrong(file, s.text[file], name), "")
			}
			for _, what := range wrong(file, text, name) {
				if !slices.Contains(before[name], what) {
					t.Errorf("%s, %s: doesn't compile: %s", m.rule, m.what, what)
				}
			}
		}
	}
}

// typesOf returns a function that says what is wrong with a declaration of a file of the package
// in dir. The bodies of all other functions are left out, so that it is fast.
func typesOf(t *testing.T, dir string, text map[string][]byte) func(file string, changed []byte, name string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}} {{.Name}}", ".")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	listed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports, names := make(map[string]string), make(map[string]string)
	for line := range strings.Lines(string(listed)) {
		of := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		exports[of[0]], names[of[0]] = of[1], of[2]
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	parse := func(file string, text []byte) *ast.File {
		f, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		return f
	}
	files := make(map[string]*ast.File)
	for file, b := range text {
		files[file] = parse(file, b)
		bare(files[file], "")
	}
	return func(file string, changed []byte, name string) (all []string) {
		now := maps.Clone(files)
		now[file] = parse(file, changed)
		all = unused(now[file], names)
		bare(now[file], name)
		conf := types.Config{Importer: imports, Error: func(err error) {
			if e, ok := err.(types.Error); ok && !strings.HasSuffix(e.Msg, " imported and not used") { //nolint:errorlint // as it comes
				all = append(all, e.Msg)
			}
		}}
		_, _ = conf.Check("p", fset, slices.Collect(maps.Values(now)), nil)
		return all
	}
}

// bare leaves out the bodies of all functions but one.
func bare(f *ast.File, but string) {
	for name, nodes := range declarations(f) {
		for _, n := range nodes {
			if d, ok := n.(*ast.FuncDecl); ok && name != but {
				d.Body = nil
			}
		}
	}
}

// unused are the imports that a file doesn't name.
func unused(f *ast.File, names map[string]string) (all []string) {
	named := make(map[string]bool)
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				named[x.Name] = true
			}
		}
		return true
	})
	for _, i := range f.Imports {
		imported, _ := strconv.Unquote(i.Path.Value)
		name := names[imported]
		if i.Name != nil {
			name = i.Name.Name
		}
		if !named[name] && name != "_" {
			all = append(all, imported+" is imported and not used")
		}
	}
	return all
}
