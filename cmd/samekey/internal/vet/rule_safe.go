package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

var safe = newRule("safe", "find a SafeToRetry that marks every error of a call, even a timeout", checkSafe)

// checkSafe finds a SafeToRetry that marks every error of a call with an effect, even a
// timeout. The call then counts as not made, although it may have had its effect.
func checkSafe(c *code) (all []finding) {
	seen := make(map[*ast.CallExpr]bool)
	for _, p := range c.phases {
		if p.kind != foreign || p.body == nil {
			continue
		}
		ast.Inspect(p.body, func(n ast.Node) bool {
			mark, ok := n.(*ast.CallExpr)
			if !ok || seen[mark] || len(mark.Args) != 1 || c.optionName(mark) != "SafeToRetry" {
				return true
			}
			seen[mark] = true
			if what := c.unquestioned(p.body, mark); what != "" {
				all = append(all, found(mark, "idem.SafeToRetry marks every error of %s, even a timeout after which the call may have had its effect: "+
					"the operation then continues as if the call was not made. Mark only errors that prove that nothing was done", what))
			}
			return true
		})
	}
	return all
}

// code.unquestioned returns the name of the effect of the call that returned the marked
// error. It returns "" if this call has no effect or is unknown, or if the code does
// more with the error than compare it with nil.
func (c *code) unquestioned(body *ast.BlockStmt, mark *ast.CallExpr) string {
	arg := ast.Unparen(mark.Args[0])
	if call, ok := arg.(*ast.CallExpr); ok {
		if fn, _ := calleeOf(c.info, call).(*types.Func); fn == nil || fn.FullName() != "fmt.Errorf" {
			return c.effectBy(call)
		}
		i := slices.IndexFunc(call.Args, func(e ast.Expr) bool { return isError(c.info.TypeOf(e)) })
		if i < 0 {
			return ""
		}
		arg = call.Args[i]
	}
	id, _ := arg.(*ast.Ident)
	err, ok := c.info.ObjectOf(id).(*types.Var)
	if !ok {
		return ""
	}
	var from *ast.AssignStmt // the last assignment to err before the mark
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(*ast.AssignStmt); ok && s.End() <= mark.Pos() && slices.ContainsFunc(s.Lhs, func(l ast.Expr) bool { return c.object(l) == err }) {
			from = s
		}
		return true
	})
	if from == nil || len(from.Rhs) != 1 {
		return ""
	}
	call, ok := ast.Unparen(from.Rhs[0]).(*ast.CallExpr)
	if !ok || c.asked(body, from, mark) {
		return ""
	}
	return c.effectBy(call)
}

// effectBy returns the name of a call's effect, which may be inside the called function;
// "" if there is none.
func (c *code) effectBy(call *ast.CallExpr) string {
	eff := c.effectOf(call)
	if fn, _ := calleeOf(c.info, call).(*types.Func); eff == nil && c.decls[fn] != nil {
		eff = c.effectIn(fn)
	}
	if eff == nil {
		return ""
	}
	return eff.what
}

// code.asked reports whether the code between the assignment from and the call mark does
// more with the assigned values than compare them with nil.
func (c *code) asked(body *ast.BlockStmt, from *ast.AssignStmt, mark *ast.CallExpr) (yes bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && within(r, mark.Pos()) {
			return false // a return statement that contains the mark doesn't test the error
		}
		if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.NEQ || b.Op == token.EQL) && (c.info.Types[b.X].IsNil() || c.info.Types[b.Y].IsNil()) {
			return false
		}
		if id, ok := n.(*ast.Ident); ok && id.Pos() >= from.End() && id.Pos() < mark.Pos() {
			yes = yes || slices.ContainsFunc(from.Lhs, func(l ast.Expr) bool { return c.object(l) != nil && c.object(l) == c.info.ObjectOf(id) })
		}
		return true
	})
	return yes
}

func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}
