package rules

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// calls has, for each file of a package, the files whose functions its functions
// name, and one example of each.
type calls map[string]map[string]string

// checked is a package with its types.
type checked struct {
	fset  *token.FileSet
	files []*ast.File
	types *types.Package
	uses  map[*ast.Ident]types.Object
}

// file is the name of the file in which pos lies.
func (p checked) file(pos token.Pos) string { return filepath.Base(p.fset.Position(pos).Filename) }

func check(t *testing.T, dir string) checked {
	t.Helper()
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := checked{fset: token.NewFileSet(), uses: map[*ast.Ident]types.Object{}}
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(p.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", exports(t, dir))}
	if p.types, err = conf.Check(dir, p.fset, p.files, &types.Info{Uses: p.uses}); err != nil {
		t.Fatal(err)
	}
	return p
}

func callsOf(t *testing.T, dir string) calls {
	t.Helper()
	p := check(t, dir)
	all := calls{}
	for _, file := range p.files {
		from := p.file(file.Pos())
		all[from] = map[string]string{}
		for _, decl := range file.Decls {
			caller, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(caller, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				called, ok := p.uses[id].(*types.Func)
				if !ok || called.Pkg() != p.types || isInterface(called) {
					return true
				}
				if to := p.file(called.Pos()); to != from {
					all[from][to] = caller.Name.Name + " calls " + called.Name()
				}
				return true
			})
		}
	}
	return all
}

// exports finds what the compiler has exported of each package that dir links.
func exports(t *testing.T, dir string) func(path string) (io.ReadCloser, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -export in %s: %v", dir, err)
	}
	at := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		at[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(at[path]) }
}

func isInterface(f *types.Func) bool {
	recv := f.Signature().Recv()
	return recv != nil && types.IsInterface(recv.Type())
}

// Two files of a package that call each other both ways are one file, or one of
// them says at its top why they are two: "// Circle with other.go: the reason."
func TestFilesDoNotCallEachOtherBothWays(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"idem", "dynamo", "dynamo/stream", "lambda"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("..", "..", dir)
			all := callsOf(t, path)
			if len(all) < 10 {
				t.Fatalf("%s has %d files: something is wrong with this test", dir, len(all))
			}
			for a, to := range all {
				for b, there := range to {
					back, both := all[b][a]
					if !both || a > b || saysWhy(t, path, a, b) || saysWhy(t, path, b, a) {
						continue
					}
					t.Errorf("%s and %s call each other both ways: %s, and %s", a, b, there, back)
				}
			}
		})
	}
}

// saysWhy reports whether file a has a comment at its top about its circle with b.
func saysWhy(t *testing.T, dir, a, b string) bool {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(dir, a))
	if err != nil {
		t.Fatal(err)
	}
	head := strings.Split(string(src), "\n")
	head = head[:min(len(head), 40)]
	return slices.ContainsFunc(head, func(line string) bool { return strings.HasPrefix(line, "// Circle with "+b+": ") })
}
