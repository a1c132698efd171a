package vet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

var lookups = newRule("lookups", "find look-ups that have an effect or don't fit their phase", checkLookups)

// checkLookups finds three mistakes in look-ups:
//   - The look-up has an effect. Each attempt would repeat the effect.
//   - The results of look-up and phase have different types.
//   - The phase lacks the option Sends, which names the call to look up.
func checkLookups(c *code) (all []finding) {
	for _, p := range c.phases {
		if p.kind != foreign || p.via {
			continue
		}
		look, sends := c.optionCall(p, "LookUp"), c.optionCall(p, "Sends")
		if look == nil || len(look.Args) == 0 {
			continue
		}
		if body := c.bodyOf(look.Args[0]); body != nil {
			if call, what := c.firstEffect(body, make(map[*types.Func]bool)); call != nil {
				all = append(all, found(call, "%s is called in a look-up, which may run many times: a look-up must only read", what))
			}
		}
		if t := c.foundBy(look.Args[0]); t != nil && p.result != nil && !p.open && !types.Identical(t, p.result) {
			all = append(all, found(look, "the look-up returns a %s, but the phase returns a %s: the phase fails", types.TypeString(t, types.RelativeTo(c.pkg)), types.TypeString(p.result, types.RelativeTo(c.pkg))))
		}
		if sends == nil && !p.unseen {
			all = append(all, found(look, "the phase has a look-up, but no idem.Sends that names the call to look up: the phase fails"))
		}
	}
	return all
}

// Hints finds NotIdempotent calls that have no look-up: if the outcome of such a call is
// unknown, the operation waits for a person. These calls are no mistakes, so go vet doesn't
// report them; only samekey vet prints them, as hints.
var Hints = &analysis.Analyzer{
	Name: "hints", Doc: "find calls without a look-up: if the outcome is unknown, the operation waits for a person", URL: page + "lookups",
	Requires: []*analysis.Analyzer{finder},
	Run: func(pass *analysis.Pass) (any, error) {
		c := pass.ResultOf[finder].(*code)
		for _, p := range c.phases {
			if p.kind == foreign && !p.via && !p.unseen && c.notIdempotent(p) && c.optionCall(p, "LookUp") == nil {
				pass.Report(analysis.Diagnostic{
					Pos: p.call.Pos(), End: p.call.End(), Category: "hint", URL: page + "lookups",
					Message: "hint: if the outcome of this call is unknown, the operation waits for a person; with idem.LookUp, the phase asks the other system instead",
				})
			}
		}
		return nil, nil
	},
}

// optionCall returns the option of a phase that has the given name, such as "Sends"; nil
// if there is none.
func (c *code) optionCall(p *phase, name string) *ast.CallExpr {
	for _, opt := range p.opts {
		if c.optionName(opt) == name {
			return ast.Unparen(opt).(*ast.CallExpr)
		}
	}
	return nil
}

// bodyOf returns the body of fn if fn is a literal or a function of this package, and
// nil otherwise.
func (c *code) bodyOf(fn ast.Expr) *ast.BlockStmt {
	var id *ast.Ident
	switch fn := ast.Unparen(fn).(type) {
	case *ast.FuncLit:
		return fn.Body
	case *ast.Ident:
		id = fn
	case *ast.SelectorExpr:
		id = fn.Sel
	default:
		return nil
	}
	if f, ok := c.info.ObjectOf(id).(*types.Func); ok && c.decls[f] != nil {
		return c.decls[f].Body
	}
	return nil
}

// foundBy returns the type of a look-up's result; nil if unknown.
func (c *code) foundBy(fn ast.Expr) types.Type {
	sig, ok := c.info.TypeOf(fn).(*types.Signature)
	if !ok || sig.Results().Len() == 0 {
		return nil
	}
	return sig.Results().At(0).Type()
}

func (c *code) firstEffect(body *ast.BlockStmt, seen map[*types.Func]bool) (at *ast.CallExpr, what string) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || at != nil {
			return at == nil
		}
		if eff := c.effectOf(call); eff != nil {
			at, what = call, eff.what
			return false
		}
		if fn, _ := calleeOf(c.info, call).(*types.Func); c.decls[fn] != nil && !seen[fn] {
			seen[fn] = true
			if inner, why := c.firstEffect(c.decls[fn].Body, seen); inner != nil {
				at, what = call, why+" (by "+c.nameOf(fn)+")"
			}
		}
		return at == nil
	})
	return at, what
}
