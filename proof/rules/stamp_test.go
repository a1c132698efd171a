package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// setters are the declarations that set Owner or Ver of a record: Stamp decides them,
// the store in memory copies them, and the table of fields reads them. (The store on DynamoDB
// and its take-over write them by expressions.)
var setters = []string{"idem patched", "internal/item Fields", "internal/state Stamp"}

// Owner and version fence every write, so only state.Stamp decides them. Test
// helpers may make any record, and the model of the protocol (proof/model) has records
// of its own.
func TestOnlyStampDecidesOwnerAndVersion(t *testing.T) {
	t.Parallel()
	found := make(map[string]bool)
	for _, dir := range []string{"dynamo", "idem", "internal/background", "internal/item", "internal/state", "lambda"} {
		err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(dir)), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (strings.HasSuffix(d.Name(), "test") || d.Name() == "spec" || d.Name() == "testdata"):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			for _, decl := range f.Decls {
				if setsOwnerOrVersion(decl) {
					found[filepath.ToSlash(folder)+" "+declared(decl)] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, setters) {
		t.Errorf("Owner or Ver of a record are set by %q, want only %q", got, setters)
	}
}

// declared returns the first name that a declaration declares.
func declared(decl ast.Decl) string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		return decl.Name.Name
	case *ast.GenDecl:
		if v, ok := decl.Specs[0].(*ast.ValueSpec); ok {
			return v.Names[0].Name
		}
	}
	return ""
}

// setsOwnerOrVersion reports whether decl assigns to a field Owner or Ver, returns
// its address, or makes a Record with one.
func setsOwnerOrVersion(decl ast.Decl) (sets bool) {
	named := func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return ok && (name.Name == "Owner" || name.Name == "Ver")
	}
	field := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && named(s.Sel)
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			sets = sets || slices.ContainsFunc(n.Lhs, field)
		case *ast.IncDecStmt:
			sets = sets || field(n.X)
		case *ast.ReturnStmt:
			sets = sets || slices.ContainsFunc(n.Results, func(e ast.Expr) bool {
				at, ok := e.(*ast.UnaryExpr)
				return ok && at.Op == token.AND && field(at.X)
			})
		case *ast.CompositeLit:
			if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Record" {
				sets = sets || slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
					kv, ok := e.(*ast.KeyValueExpr)
					return ok && named(kv.Key)
				})
			}
		}
		return true
	})
	return sets
}
