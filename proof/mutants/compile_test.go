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
	all := byFolder()
	for _, m := range onlyMutants(planted()) {
		all[m.dir()] = append(all[m.dir()], m)
	}
	for dir, ms := range all {
		for _, bad := range uncompiled(t, dir, ms) {
			t.Error(bad)
		}
	}
}

// Whatever the compiler would refuse is found.
func TestMutantsThatDontCompileAreFound(t *testing.T) {
	t.Parallel()
	const in, old = "lambda/completer.breakers.leave", "min(max($one.failed-failures, 0), doublings)"
	row := func(what, in, old, replacement string) mutant {
		return mutant{rule: "A", what: what, in: in, old: old, new: replacement}
	}
	bad := []mutant{
		row("two types", in, old, "0*"+old),
		row("nothing of that name", in, old, "$one.nothing"),
		row("a variable without use", "lambda/completer.breakers.enter", "case !$known || $one.failed < failures:", "case true:"),
		row("an import without use", "lambda/completer.NewQueue", `strings.HasSuffix($url, ".fifo")`, "false"),
		row("a constant of another type", "lambda/completer.failures", "3", `"three"`),
	}
	got := uncompiled(t, "lambda/completer", append(bad, row("good", in, old, "0")))
	if len(got) != len(bad) {
		t.Errorf("found are %d, want %d: %q", len(got), len(bad), got)
	}
}

// uncompiled says which rows of a package don't compile, and why.
func uncompiled(t *testing.T, dir string, ms []mutant) (all []string) {
	t.Helper()
	root, err := harness.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := loaded(t, dir)
	wrong := typesOf(t, filepath.Join(root, dir), s.text)
	sound := make(map[string]bool)
	for _, m := range ms {
		file, text, err := s.mutated(m)
		if err != nil {
			continue // TestTableFitsTheCode tells
		}
		file = path.Base(file)
		_, name := m.place()
		if !sound[name] {
			if what := wrong(file, s.text[file], name); len(what) > 0 {
				t.Fatalf("%s without a mutant: %q", dir, what)
			}
			sound[name] = true
		}
		if what := wrong(file, text, name); len(what) > 0 {
			all = append(all, m.rule+", "+m.what+": doesn't compile: "+what[0])
		}
	}
	return all
}

// typesOf returns a function that says what is wrong with a declaration of a file of the package
// in dir. If it is a function the bodies of all others are left out, so that it is fast.
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
	whole, files := make(map[string]*ast.File), make(map[string]*ast.File)
	for file, b := range text {
		whole[file], files[file] = parse(file, b), parse(file, b)
		bare(files[file], "")
	}
	return func(file string, changed []byte, name string) (all []string) {
		f := parse(file, changed)
		all = unused(f, names)
		now := maps.Clone(whole)
		if _, function := declarations(f)[name][0].(*ast.FuncDecl); function {
			now = maps.Clone(files)
			bare(f, name)
		}
		now[file] = f
		conf := types.Config{Importer: imports, Error: func(err error) {
			e, _ := err.(types.Error) //nolint:errorlint // as it comes
			bodiless := strings.Contains(e.Msg, "function body") || strings.HasSuffix(e.Msg, "must have a body")
			elsewhere := strings.Contains(e.Msg, " imported ") && strings.HasSuffix(e.Msg, " and not used") // unused sees the bodies
			if !bodiless && !elsewhere {
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
