package vet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/cfg"
)

// graph knows the order in which parts of a function's body may run.
type graph struct{ blocks []*cfg.Block }

func newGraph(info *types.Info, body *ast.BlockStmt) *graph {
	return &graph{cfg.New(body, func(call *ast.CallExpr) bool { return mayReturn(info, call) }).Blocks}
}

// mayReturn reports whether a call may return.
func mayReturn(info *types.Info, call *ast.CallExpr) bool {
	switch obj := calleeOf(info, call).(type) {
	case *types.Builtin:
		return obj.Name() != "panic"
	case *types.Func:
		switch obj.FullName() {
		case "os.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln":
			return false
		}
	}
	return true
}

// graph.place finds the block and the statement at a position.
func (g *graph) place(pos token.Pos) (*cfg.Block, int) {
	for _, b := range g.blocks {
		for i, n := range b.Nodes {
			if n.Pos() <= pos && pos < n.End() {
				return b, i
			}
		}
	}
	return nil, 0
}

// graph.before tells whether the code at position a may run before the code at position
// b.
func (g *graph) before(a, b token.Pos) bool {
	from, i := g.place(a)
	to, j := g.place(b)
	if from == nil || to == nil {
		return false
	}
	if from == to && (i < j || i == j && a < b) {
		return true
	}
	return reached(from)[to]
}

// graph.again tells whether the code at a position may run more than once.
func (g *graph) again(pos token.Pos) bool {
	b, _ := g.place(pos)
	return b != nil && reached(b)[b]
}

// reached returns the blocks that may run after a block.
func reached(from *cfg.Block) map[*cfg.Block]bool {
	seen := make(map[*cfg.Block]bool)
	todo := append([]*cfg.Block(nil), from.Succs...)
	for len(todo) > 0 {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[b] {
			continue
		}
		seen[b] = true
		todo = append(todo, b.Succs...)
	}
	return seen
}
