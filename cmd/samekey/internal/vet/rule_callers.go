package vet

import "go/ast"

var callers = newRule("callers", "find engines whose completer can't know the caller", checkCallers)

// checkCallers finds engines that set Resumable and Scope (or Former.Scope), but not
// CallerFromOp. Scope finds the caller in a client's request, but a completer runs the
// handler without such a request.
func checkCallers(c *code) (all []finding) {
	c.inspect(func(n ast.Node) {
		call := c.newEngine(n)
		if call == nil {
			return
		}
		set := make(map[string]bool)
		c.options(call, func(name string, value ast.Expr) {
			if !isZero(value) {
				set[name] = true
			}
		})
		if set["Resumable"] && (set["Scope"] || set["Former.Scope"]) && !set["CallerFromOp"] {
			all = append(all, found(call, "the completer has no request from a client, so Options.Scope can't find the caller: take the caller from "+
				"Op.Caller in the handlers, and set Options.CallerFromOp"))
		}
	})
	return all
}
