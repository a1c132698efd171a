package vet

import (
	"go/ast"
	"go/token"
	"go/types"
)

var assigns = newRule("assigns", "find assignments in a phase to outer variables, which stay empty if a retry skips the committed phase", checkAssigns)

// checkAssigns finds assignments in a phase's function to outer variables that are used
// after the phase. A retry skips the function of a recorded phase, so the variables
// stay empty. The function of a Finish may assign to outer variables. It must not add
// to them, because it may run many times.
func checkAssigns(c *code) (all []finding) {
	for _, p := range c.phases {
		if p.lit == nil {
			continue
		}
		ast.Inspect(p.lit.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, l := range n.Lhs {
					adds := n.Tok != token.ASSIGN || len(n.Lhs) == len(n.Rhs) && c.mentions(n.Rhs[i], l)
					all = append(all, c.checkAssign(p, l, adds)...)
				}
			case *ast.IncDecStmt:
				all = append(all, c.checkAssign(p, n.X, true)...)
			case *ast.RangeStmt:
				for _, l := range []ast.Expr{n.Key, n.Value} {
					all = append(all, c.checkAssign(p, l, false)...)
				}
			}
			return true
		})
	}
	return all
}

func (c *code) checkAssign(p *phase, left ast.Expr, adds bool) []finding {
	v, field := c.target(left)
	if v == nil || !within(c.handlerOf(p), v.Pos()) || within(p.lit, v.Pos()) || c.assignedByPhase(p, v) {
		return nil
	}
	switch {
	case p.kind == finish && !adds:
		return nil
	case p.kind == finish:
		return []finding{found(left, "the function of an idem.Finish may run many times, and adds to %s each time: "+
			"declare %s inside the function", types.ExprString(left), v.Name())}
	case !c.usedAfter(p, v, field):
		return nil
	}
	return []finding{found(left, "%s is assigned in an idem.%s and used after this phase: if the phase is committed, "+
		"a retry skips the function, and %s stays empty. Return the value as the result of the phase", types.ExprString(left), p.kind, v.Name())}
}

// handlerOf returns the function around a phase: the innermost function that runs by
// itself.
func (c *code) handlerOf(p *phase) ast.Node {
	var in ast.Node = p.call
	for _, u := range c.units { // outer functions come before inner ones, so the innermost remains
		switch {
		case u.lit != nil && within(u.lit, p.call.Pos()):
			in = u.lit
		case u.lit == nil && within(c.decls[u.fn], p.call.Pos()):
			in = c.decls[u.fn]
		}
	}
	return in
}

// code.target returns the variable that an assignment to e changes, and the name of the
// changed field, if only a field changes.
func (c *code) target(e ast.Expr) (v *types.Var, field string) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ = c.info.ObjectOf(e).(*types.Var)
		return v, ""
	case *ast.SelectorExpr:
		v, field = c.target(e.X)
		if field == "" {
			field = e.Sel.Name
		}
		return v, field
	case *ast.IndexExpr:
		return c.target(e.X)
	case *ast.StarExpr:
		return c.target(e.X)
	}
	return nil, ""
}

// mentions(e, left) tells whether e reads the variable or field that an assignment to left
// changes.
func (c *code) mentions(e, left ast.Expr) bool {
	v, field := c.target(left)
	yes := false
	ast.Inspect(e, func(n ast.Node) bool {
		x, _ := n.(ast.Expr)
		w, f := c.target(x)
		yes = yes || w == v && f == field
		return !yes
	})
	return yes
}

// assignedByPhase reports whether the statement that runs the phase assigns to v, for
// example to err. If so, this statement overwrites the value that the phase's function
// assigns to v.
func (c *code) assignedByPhase(p *phase, v *types.Var) bool { return c.assigns(p.call, v) }

// assigns(call, v) tells whether the statement that contains a call assigns to v.
func (c *code) assigns(call *ast.CallExpr, v *types.Var) (yes bool) {
	c.inspect(func(n ast.Node) {
		s, ok := n.(*ast.AssignStmt)
		if !ok || len(s.Rhs) != 1 || ast.Unparen(s.Rhs[0]) != call {
			return
		}
		for _, l := range s.Lhs {
			id, _ := l.(*ast.Ident)
			yes = yes || c.info.ObjectOf(id) == v
		}
	})
	return yes
}

// usedAfter reports whether v is a named result, or is read after the phase. If field is
// not empty, reads of other fields of v don't count.
func (c *code) usedAfter(p *phase, v *types.Var, field string) (yes bool) {
	fn := c.enclosing(p.call.Pos())
	if fn == nil {
		return false
	}
	for result := range fn.Signature().Results().Variables() {
		yes = yes || result == v
	}
	assigned := make(map[ast.Node]bool) // targets of assignments, which are not reads
	parts := make(map[ast.Node]bool)    // each x of a selection x.field: the selection counts as the read, not x
	ast.Inspect(c.decls[fn], func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				assigned[ast.Unparen(l)] = n.Tok == token.ASSIGN
			}
		case *ast.SelectorExpr:
			if w, f := c.target(n); w == v && f != "" {
				parts[ast.Unparen(n.X)] = true
				yes = yes || n.Pos() >= p.lit.End() && !assigned[n] && (field == "" || f == field)
			}
		case *ast.Ident:
			yes = yes || n.Pos() >= p.lit.End() && !assigned[n] && !parts[n] && c.info.ObjectOf(n) == v
		}
		return !yes
	})
	return yes
}
