package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"sync"
)

// unit is a function that the rules examine separately: a declared function or a function
// literal. But a literal is no unit if it is a phase's function or runs in place (see
// code.literals).
type unit struct {
	fn    *types.Func // the declared function that is the unit, or that contains the literal; nil for a literal at package level
	lit   *ast.FuncLit
	label string // distinguishes the literals of fn
	body  *ast.BlockStmt
	calls []event

	once  sync.Once // makes graph only once, although several rules may need it at the same time
	graph *graph
}

// event is a call that matters: it runs a phase, has an effect, or calls a function
// of this package.
type event struct {
	call   *ast.CallExpr
	phase  *phase
	callee *types.Func
	effect *effect
}

// code.literals finds the function literals that run in place: those that are called,
// deferred or passed to a call. A passed literal that contains phases is left out, because
// it may be a handler.
func (c *code) literals() {
	direct := func(e ast.Expr) *ast.FuncLit {
		lit, _ := ast.Unparen(e).(*ast.FuncLit)
		return lit
	}
	c.inspect(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if lit := direct(n.Fun); lit != nil {
				c.inline[lit] = true
			}
			label := ""
			for _, arg := range n.Args {
				if s, ok := c.constantString(arg); ok && label == "" {
					label = s
				}
				if lit := direct(arg); lit != nil && c.at[n] == nil {
					c.label[lit] = label
					c.inline[lit] = !c.hasPhaseWithin(lit)
				}
			}
		case *ast.KeyValueExpr:
			if lit := direct(n.Value); lit != nil {
				c.label[lit], _ = c.constantString(n.Key)
			}
		}
	})
}

func (c *code) hasPhaseWithin(n ast.Node) bool {
	for _, p := range c.phases {
		if within(n, p.call.Pos()) {
			return true
		}
	}
	return false
}

func within(n ast.Node, pos token.Pos) bool { return n.Pos() <= pos && pos < n.End() }

func (c *code) findUnits() {
	ofPhases := make(map[*ast.FuncLit]bool)
	for _, p := range c.phases {
		ofPhases[p.lit] = true
	}
	numbers := make(map[*types.Func]int)
	c.inspect(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if fn, _ := c.info.Defs[n.Name].(*types.Func); n.Body != nil {
				c.unit[fn] = &unit{fn: fn, body: n.Body, calls: c.events(n.Body)}
				c.units = append(c.units, c.unit[fn])
			}
		case *ast.FuncLit:
			if ofPhases[n] || c.inline[n] {
				return
			}
			fn := c.enclosing(n.Pos())
			u := &unit{fn: fn, lit: n, label: c.label[n], body: n.Body, calls: c.events(n.Body)}
			if u.label == "" && c.hasPhaseWithin(n) {
				numbers[fn]++
				u.label = strconv.Itoa(numbers[fn])
			}
			c.units = append(c.units, u)
		}
	})
}

// code.events returns the calls that matter in a body, in source order. It looks into
// literals that run in place, but not into the functions of phases.
func (c *code) events(body *ast.BlockStmt) (all []event) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return c.inline[n]
		case *ast.CallExpr:
			if p := c.at[n]; p != nil {
				if !p.inner {
					all = append(all, event{call: n, phase: p})
				}
				return false
			}
			if eff := c.effectOf(n); eff != nil {
				all = append(all, event{call: n, effect: eff})
			} else if fn, _ := calleeOf(c.info, n).(*types.Func); c.decls[fn] != nil {
				all = append(all, event{call: n, callee: fn})
			}
		}
		return true
	})
	return all
}

// graphOf returns a unit's graph. It makes the graph at the first call, because few units
// need one.
func (c *code) graphOf(u *unit) *graph {
	u.once.Do(func() { u.graph = newGraph(c.info, u.body) })
	return u.graph
}

// hasPhases reports whether a function of this package runs phases, itself or through
// functions of this package.
func (c *code) hasPhases(fn *types.Func) bool { return c.runsPhases(fn, make(map[*types.Func]bool)) }

func (c *code) runsPhases(fn *types.Func, seen map[*types.Func]bool) bool {
	u := c.unit[fn]
	if u == nil || seen[fn] {
		return false
	}
	seen[fn] = true
	for _, e := range u.calls {
		if e.phase != nil || c.runsPhases(e.callee, seen) {
			return true
		}
	}
	return false
}

func (c *code) runsPhase(e event) bool {
	return e.phase != nil || c.hasPhases(e.callee)
}

// effectIn finds the first effect of a function of this package, or of a function
// that it calls; nil if there is none.
func (c *code) effectIn(fn *types.Func) *effect {
	return c.effectBelow(fn, make(map[*types.Func]bool))
}

func (c *code) effectBelow(fn *types.Func, seen map[*types.Func]bool) *effect {
	u := c.unit[fn]
	if u == nil || seen[fn] {
		return nil
	}
	seen[fn] = true
	for _, e := range u.calls {
		eff := e.effect
		if e.callee != nil {
			eff = c.effectBelow(e.callee, seen)
		}
		if eff != nil {
			return eff
		}
	}
	return nil
}
