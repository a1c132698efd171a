package vet

import (
	"go/ast"
	"go/types"
)

var keys = newRule("keys", "find calls that an idem.Foreign makes without a derived key", checkKeys)

// checkKeys finds calls that a Foreign makes without a derived key. If an attempt dies
// after such a call, the next attempt makes the call again.
func checkKeys(c *code) (all []finding) {
	for _, p := range c.phases {
		if p.kind != foreign || p.body == nil || p.via || p.unseen || c.notIdempotent(p) || c.asksForKey(p.body) {
			continue
		}
		if call, what := c.firstRepeated(p.body, make(map[*types.Func]bool)); call != nil {
			all = append(all, found(call, "%s is called in an idem.Foreign without tx.Key: a retry can't tell whether the call was made, "+
				"and makes the call again. Send tx.Key(\"service\") as the call's idempotency key, or say idem.NotIdempotent()", what))
		}
	}
	return all
}

func (c *code) notIdempotent(p *phase) bool {
	for _, opt := range p.opts {
		if c.optionName(opt) == "NotIdempotent" {
			return true
		}
	}
	return false
}

// optionName returns the name of an option, such as "Sends" for idem.Sends(…). It returns
// "" if opt isn't a call of a function of package idem.
func (c *code) optionName(opt ast.Expr) string {
	call, ok := ast.Unparen(opt).(*ast.CallExpr)
	if !ok {
		return ""
	}
	fn, ok := calleeOf(c.info, call).(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != idemPath {
		return ""
	}
	return fn.Name()
}

// asksForKey reports whether a body mentions Tx.Key or idem.FromContext, or passes its
// Tx to other code. In each of these cases, the calls in the body may have a key.
func (c *code) asksForKey(body *ast.BlockStmt) (yes bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if fn, ok := c.info.ObjectOf(n.Sel).(*types.Func); ok {
				yes = yes || fn.FullName() == "(*"+idemPath+".Tx).Key" || fn.FullName() == idemPath+".FromContext"
			}
		case *ast.CallExpr:
			for _, arg := range n.Args {
				yes = yes || isTx(c.info.TypeOf(arg))
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					e = kv.Value
				}
				yes = yes || isTx(c.info.TypeOf(e))
			}
		}
		return !yes
	})
	return yes
}

func isTx(t types.Type) bool {
	named := namedOf(t)
	return named != nil && named.Obj().Name() == "Tx" && named.Obj().Pkg().Path() == idemPath
}

// firstRepeated finds the first call whose effect happens again if the call is repeated.
func (c *code) firstRepeated(body *ast.BlockStmt, seen map[*types.Func]bool) (at *ast.CallExpr, what string) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || at != nil {
			return at == nil
		}
		eff := c.effectOf(call)
		if eff != nil && eff.twice {
			at, what = call, eff.what
			return false
		}
		if fn, _ := calleeOf(c.info, call).(*types.Func); c.decls[fn] != nil && !seen[fn] {
			seen[fn] = true
			if inner, why := c.firstRepeated(c.decls[fn].Body, seen); inner != nil {
				at, what = call, why+" (by "+c.nameOf(fn)+")"
			}
		}
		return at == nil
	})
	return at, what
}
