package vet

import (
	"go/ast"
	"go/types"
)

var callers = newRule("callers", "find engines whose completer can't know the caller", checkCallers)

// checkCallers finds engines that store requests for a completer, find the caller in a
// request, and don't say that their handlers take the caller from the operation.
func checkCallers(c *code) (all []finding) {
	c.inspect(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		fn, ok := calleeOf(c.info, call).(*types.Func)
		if !ok || fn.FullName() != idemPath+".New" || len(call.Args) == 0 {
			return
		}
		set := make(map[string]bool)
		for _, opt := range call.Args[1:] {
			c.options(opt, set, 0)
		}
		if set["Resumable"] && set["Scope"] && !set["CallerFromOp"] {
			all = append(all, found(call, "a completer has no client's request in which Options.Scope could find the caller: take the caller from "+
				"Op.Caller in the handlers, and set Options.CallerFromOp"))
		}
	})
	return all
}

// options notes the options that a function sets to something else than their zero
// values, as far as it is in sight.
func (c *code) options(opt ast.Expr, set map[string]bool, depth int) {
	const far = 4 // variables of variables
	if depth > far {
		return
	}
	var body *ast.BlockStmt
	switch opt := ast.Unparen(opt).(type) {
	case *ast.FuncLit:
		body = opt.Body
	case *ast.Ident:
		switch obj := c.info.ObjectOf(opt).(type) {
		case *types.Func:
			if decl := c.decls[obj]; decl != nil {
				body = decl.Body
			}
		case *types.Var:
			for _, value := range c.values[obj] {
				c.options(value, set, depth+1)
			}
		}
	}
	if body == nil {
		return
	}
	ast.Inspect(body, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != len(assign.Rhs) {
			return true
		}
		for i, left := range assign.Lhs {
			if name := c.optionField(left); name != "" && !isZero(assign.Rhs[i]) {
				set[name] = true
			}
		}
		return true
	})
}

// optionField is the name of a field of idem.Options; "" for anything else.
func (c *code) optionField(left ast.Expr) string {
	sel, ok := left.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	named := namedOf(c.info.TypeOf(sel.X))
	if named == nil || named.Obj().Name() != "Options" || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != idemPath {
		return ""
	}
	return sel.Sel.Name
}

func isZero(value ast.Expr) bool {
	id, ok := ast.Unparen(value).(*ast.Ident)
	return ok && (id.Name == "false" || id.Name == "nil")
}
