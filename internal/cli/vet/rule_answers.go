package vet

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"net/http"
	"slices"

	"github.com/samekey/samekey/idem"
)

var answers = newRule("answers", "find refusals after a phase that no client hears", checkAnswers)

// answer is a place where a handler answers with a refusal that [idem.DefaultStored]
// doesn't store.
type answer struct {
	at     ast.Node
	status int64
}

// checkAnswers finds refusals that a handler gives without idem.Respond once a phase may
// be committed: the engine withholds them, since the operation goes on.
func checkAnswers(c *code) (all []finding) {
	if c.storesByItself() {
		return nil
	}
	for _, u := range c.units {
		for _, a := range c.answersOf(u) {
			if c.committedBefore(u, a.at) {
				all = append(all, found(a.at, "the answer %d isn't stored, and a phase before it is committed: the operation goes on, "+
					"so its client hears 503 and not %[1]d. Return idem.Respond to end the operation with this answer, or decide before the first phase", a.status))
			}
		}
	}
	return all
}

// storesByItself reports whether an engine of the package decides itself which answers
// are stored: by Options.Stored, or by a preset.
func (c *code) storesByItself() (yes bool) {
	c.inspect(func(n ast.Node) {
		call := c.newEngine(n)
		if call == nil {
			return
		}
		c.options(call, func(name string, _ ast.Expr) { yes = yes || name == "Stored" })
		for _, opt := range call.Args[1:] {
			fn, ok := c.object(opt).(*types.Func)
			yes = yes || ok && fn.Pkg().Path() == idemPath && fn.Name() != "OneScope"
		}
	})
	return yes
}

// answersOf lists the refusals that a function gives: responses that it returns without
// an error, and those that it writes to an http.ResponseWriter.
func (c *code) answersOf(u *unit) (all []answer) {
	add := func(at ast.Node, status ast.Expr) {
		if n, ok := c.refusal(status); ok {
			all = append(all, answer{at, n})
		}
	}
	ast.Inspect(u.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return c.inline[n]
		case *ast.ReturnStmt:
			if len(n.Results) == 2 && c.info.Types[n.Results[1]].IsNil() {
				add(n, statusOf(n.Results[0]))
			}
		case *ast.CallExpr:
			fn, ok := calleeOf(c.info, n).(*types.Func)
			switch {
			case !ok:
			case fn.FullName() == "net/http.Error" && len(n.Args) == 3:
				add(n, n.Args[2])
			case fn.FullName() == "(net/http.ResponseWriter).WriteHeader":
				add(n, n.Args[0])
			}
		}
		return true
	})
	return all
}

// statusOf is the status of a response that is written as a literal; nil if it has none.
func statusOf(e ast.Expr) ast.Expr {
	if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok {
		e = u.X
	}
	lit, ok := ast.Unparen(e).(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, elt := range lit.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && (key.Name == "StatusCode" || key.Name == "Status") {
				return kv.Value
			}
		}
	}
	return nil
}

func (c *code) refusal(status ast.Expr) (n int64, ok bool) {
	v := c.info.Types[status].Value
	if v == nil || v.Kind() != constant.Int {
		return 0, false
	}
	n, _ = constant.Int64Val(v)
	return n, n < http.StatusInternalServerError && !idem.DefaultStored(int(n))
}

// committedBefore reports whether a phase may be committed, or a call in doubt, where a
// handler answers. The phase whose error led there is neither, if it is an Atomic.
func (c *code) committedBefore(u *unit, at ast.Node) bool {
	g := c.graphOf(u)
	failed := c.failedAt(u, at)
	return slices.ContainsFunc(u.calls, func(e event) bool {
		switch {
		case !c.runsPhase(e), !g.before(e.call.Pos(), at.Pos()):
			return false
		case e.phase == nil:
			return e.call != failed
		case e.phase.kind == finish:
			return false
		}
		return e.call != failed || e.phase.kind == foreign
	})
}

// failedAt returns the call with phases whose error is asked for by the innermost if, or
// case, around a place; nil if there is none.
func (c *code) failedAt(u *unit, at ast.Node) (failed *ast.CallExpr) {
	ask := func(cond ast.Expr, from token.Pos) {
		ast.Inspect(cond, func(n ast.Node) bool {
			id, _ := n.(*ast.Ident)
			v, ok := c.info.ObjectOf(id).(*types.Var)
			if !ok || !types.Identical(v.Type(), types.Universe.Lookup("error").Type()) {
				return true
			}
			for _, e := range u.calls { // in source order: the last one before the question
				if c.runsPhase(e) && e.call.Pos() < from && c.assigns(e.call, v) {
					failed = e.call
				}
			}
			return true
		})
	}
	ast.Inspect(u.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if within(n.Body, at.Pos()) {
				ask(n.Cond, n.Body.Pos())
			}
		case *ast.CaseClause:
			if within(n, at.Pos()) {
				for _, cond := range n.List {
					ask(cond, n.Pos())
				}
			}
		}
		return true
	})
	return failed
}
