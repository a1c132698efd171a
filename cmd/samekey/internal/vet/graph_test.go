package vet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"sync"
	"testing"
)

// The rules use the same graphs concurrently.
func TestGraphIsAskedSideBySide(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", "package p; func f(n int) { for range n { if n > 1 { n-- }; println(n) }; println() }", 0)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	body := file.Decls[0].(*ast.FuncDecl).Body
	for range 200 {
		g := newGraph(info, body)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for pos := body.Pos(); pos < body.End(); pos++ {
					g.again(pos)
				}
			})
		}
		wg.Wait()
	}
}
