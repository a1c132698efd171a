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

var answers = newRule("answers", "find refusals that a handler returns after a phase: the client gets 503 instead of the refusal", checkAnswers)

// answer is a handler's refusal that [idem.DefaultStored] doesn't store.
type answer struct {
	at     ast.Node
	status int64
}

// checkAnswers finds refusals that a handler gives after a phase, but not by
// idem.Respond. If the phase is committed, the operation continues, so the engine
// withholds the refusal.
func checkAnswers(c *code) (all []finding) {
	if c.storesByItself() {
		return nil
	}
	for _, u := range c.units {
		for _, a := range c.answersOf(u) {
			if c.committedBefore(u, a.at) {
				all = append(all, found(a.at, "the answer %d isn't stored, and an earlier phase is committed: the operation continues, "+
					"so the client gets 503, not %[1]d. Return idem.Respond to end the operation with this answer, or refuse before the first phase", a.status))
			}
		}
	}
	return all
}

// storesByItself reports whether an engine of the package has its own rule for storing
// answers: Options.Stored, or a preset.
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

// answersOf returns a function's refusals: responses that the function returns without an
// error, or writes to an http.ResponseWriter.
func (c *code) answersOf(u *unit) (all []answer) {
	add := func(at ast.Node, status ast.Expr) {
		if n, ok := c.refusal(status); ok {
			all = append(all, answer{at, n})
		}
	}
	helped := func(at ast.Node, by ast.Expr, writes bool) {
		if n, ok := c.refusalBy(by, writes); ok {
			all = append(all, answer{at, n})
		}
	}
	ast.Inspect(u.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return c.inline[n]
		case *ast.ReturnStmt:
			switch {
			case len(n.Results) == 2 && c.info.Types[n.Results[1]].IsNil():
				add(n, statusOf(n.Results[0]))
				helped(n, n.Results[0], false)
			case len(n.Results) == 1:
				helped(n, n.Results[0], false)
			}
		case *ast.CallExpr:
			fn, ok := calleeOf(c.info, n).(*types.Func)
			switch {
			case !ok:
			case fn.FullName() == "net/http.Error" && len(n.Args) == 3:
				add(n, n.Args[2])
			case fn.FullName() == "(net/http.ResponseWriter).WriteHeader":
				add(n, n.Args[0])
			default:
				helped(n, n, true)
			}
		}
		return true
	})
	return all
}

// refusalBy reports whether the call e answers with a refusal, and returns the status
// of the refusal. The called function must belong to this package and run no phases,
// and all its answers must be refusals. If the function has several answers, the last
// in the source counts. A status may be a constant in the function, or an argument of
// e. If writes is false, the answers are the responses that the function returns. If
// writes is true, they are the responses that the function writes to an
// http.ResponseWriter.
func (c *code) refusalBy(e ast.Expr, writes bool) (status int64, ok bool) {
	call, isCall := ast.Unparen(e).(*ast.CallExpr)
	if !isCall {
		return 0, false
	}
	fn, _ := calleeOf(c.info, call).(*types.Func)
	if c.decls[fn] == nil || c.hasPhases(fn) {
		return 0, false
	}
	others := false
	for _, s := range c.statusesOf(c.decls[fn].Body, writes) {
		if i := parameter(c, fn, s); i >= 0 && i < len(call.Args) {
			s = call.Args[i]
		}
		n, refused := c.refusal(s)
		status, ok, others = n, true, others || !refused
	}
	return status, ok && !others
}

// statusesOf returns the statuses of responses in a body. If writes is false, these are
// the responses that the body returns. If writes is true, these are the responses that
// the body writes to an http.ResponseWriter. An unknown status is nil.
func (c *code) statusesOf(body *ast.BlockStmt, writes bool) (all []ast.Expr) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if !writes && len(n.Results) > 0 {
				status := statusOf(n.Results[0])
				if len(n.Results) > 1 && !c.info.Types[n.Results[len(n.Results)-1]].IsNil() {
					status = nil // a response that is returned with an error is no answer
				}
				all = append(all, status)
			}
		case *ast.CallExpr:
			fn, ok := calleeOf(c.info, n).(*types.Func)
			switch {
			case !ok || !writes:
			case fn.FullName() == "net/http.Error" && len(n.Args) == 3:
				all = append(all, n.Args[2])
			case fn.FullName() == "(net/http.ResponseWriter).WriteHeader":
				all = append(all, n.Args[0])
			}
		}
		return true
	})
	return all
}

// statusOf returns the status that the response e sets; nil if e is no literal, or sets
// no status.
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
	return n, n < http.StatusInternalServerError && !idem.DefaultStored(idem.Response{Status: int(n)})
}

// committedBefore reports whether a phase may be committed, or a call may be in doubt,
// when a handler answers at the place at. If the handler gives the answer because an
// Atomic returned an error, this Atomic doesn't count. The same applies to a called
// function with phases.
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

// failedAt looks for an if or a case around the place at that tests the error of a call
// that runs phases, and returns this call. If several calls are tested, the innermost
// test counts. If there is no such test, failedAt returns nil.
func (c *code) failedAt(u *unit, at ast.Node) (failed *ast.CallExpr) {
	ask := func(cond ast.Expr, from token.Pos) {
		ast.Inspect(cond, func(n ast.Node) bool {
			id, _ := n.(*ast.Ident)
			v, ok := c.info.ObjectOf(id).(*types.Var)
			if !ok || !types.Identical(v.Type(), types.Universe.Lookup("error").Type()) {
				return true
			}
			for _, e := range u.calls { // calls are in source order, so failed ends as the last such call before the test
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
