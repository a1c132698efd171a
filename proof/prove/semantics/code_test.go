package semantics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Each assumption names code that is there.
func TestCodeIsThere(t *testing.T) {
	t.Parallel()
	names, there := map[string]bool{}, map[string]map[string]bool{}
	for _, a := range All() {
		if names[a.Name] || a.Text == "" || len(a.Code) == 0 || a.Writes == 0 {
			t.Errorf("%+v: twice, or not complete", a)
		}
		names[a.Name] = true
		for _, code := range a.Code {
			slash := strings.LastIndexByte(code, '/') + 1
			pkg, name, _ := strings.Cut(code[slash:], ".")
			dir := code[:slash] + pkg
			if there[dir] == nil {
				there[dir] = declared(t, dir)
			}
			if !there[dir][name] {
				t.Errorf("%s: there is no %s", a.Name, code)
			}
		}
	}
}

// declared are the functions, methods, constants and variables of a package.
func declared(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, files, err)
	}
	names := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[of(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for _, id := range v.Names {
							names[id.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

// of is the type of a method, with a dot.
func of(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if id, ok := kind.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}
