package vet

import (
	"go/ast"
	"go/token"
	"go/types"
)

var goroutines = newRule("goroutines", "find goroutines that a phase starts and doesn't wait for", checkGoroutines)

// checkGoroutines finds goroutines that a phase's function starts but doesn't wait for.
// The phase commits without these goroutines, and Lambda freezes them after the answer.
func checkGoroutines(c *code) (all []finding) {
	for _, p := range c.phases {
		if p.body == nil {
			continue
		}
		if at, via := c.leftRunning(p.body, make(map[*types.Func]bool)); at != nil {
			all = append(all, found(at, "%sthe function of an idem.%s doesn't wait for this goroutine: the phase commits without it. "+
				"Wait for it before returning, or stage a job", via, p.kind))
		}
	}
	return all
}

// leftRunning finds the first statement or call that starts a goroutine after the body's
// last wait. If a called function of this package starts the goroutine, via names the
// function.
func (c *code) leftRunning(body *ast.BlockStmt, seen map[*types.Func]bool) (at ast.Node, via string) {
	waits := token.NoPos // position of the last wait
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			waits = max(waits, n.Pos())
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				waits = max(waits, n.Pos())
			}
		case *ast.RangeStmt:
			if _, ok := c.info.TypeOf(n.X).Underlying().(*types.Chan); ok {
				waits = max(waits, n.Pos())
			}
		case *ast.CallExpr:
			if fn, ok := calleeOf(c.info, n).(*types.Func); ok && fn.Name() == "Wait" {
				waits = max(waits, body.End()) // a Wait counts as the end of the body, because it may be deferred
			}
		}
		return true
	})
	ast.Inspect(body, func(n ast.Node) bool {
		if at != nil || n == nil {
			return false
		}
		switch n := n.(type) {
		case *ast.GoStmt:
			if n.Pos() > waits {
				at = n
			}
		case *ast.CallExpr:
			fn, ok := calleeOf(c.info, n).(*types.Func)
			if !ok || n.Pos() < waits {
				return true
			}
			switch name := fn.FullName(); {
			case name == "(*sync.WaitGroup).Go" || name == "(*golang.org/x/sync/errgroup.Group).Go":
				at = n
			case c.decls[fn] != nil && !seen[fn]:
				seen[fn] = true
				if inner, _ := c.leftRunning(c.decls[fn].Body, seen); inner != nil {
					at, via = n, c.nameOf(fn)+" starts a goroutine: "
				}
			}
		}
		return true
	})
	return at, via
}
