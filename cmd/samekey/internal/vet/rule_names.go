package vet

import (
	"go/ast"
	"go/types"
	"regexp"
)

var names = newRule("names", "find names of phases that differ between attempts, or occur twice", checkNames)

// checkNames finds three mistakes in phases:
//   - The name contains the time, a random value or a value of the invocation.
//   - The phases run in the order of a map.
//   - One attempt uses the same name twice.
//
// The first two mistakes keep a retry from finding the phases again.
func checkNames(c *code) (all []finding) {
	for _, p := range c.phases {
		if p.name == nil || p.inner {
			continue
		}
		if source := c.unstable(p.name, make(map[*types.Var]bool)); source != "" {
			all = append(all, found(p.name, "the name of this phase comes from %s, so the phase has another name in a retry: "+
				"use a constant; in a loop, add the index or the item's id", source))
		}
	}
	for _, u := range c.units {
		all = append(all, c.checkOrder(u)...)
	}
	return all
}

// checkOrder finds names that one run of u may use twice, and phases that run in the order
// of a map.
func (c *code) checkOrder(u *unit) (all []finding) {
	var own []*phase
	for _, e := range u.calls {
		if e.phase != nil && e.phase.name != nil {
			own = append(own, e.phase)
		}
	}
	for i, p := range own {
		if m := c.rangedMap(u.body, p); m != nil {
			all = append(all, found(p.name, "these phases run in the order of a map, which differs each time: "+
				"range over sorted keys, or over a slice that an earlier phase returned"))
		}
		name, ok := c.constantString(p.name)
		if !ok {
			continue
		}
		if c.graphOf(u).again(p.call.Pos()) {
			all = append(all, found(p.name, "this loop runs the phase %q again, but a handler can use the name of a phase only once: "+
				"add the index or the item's id to the name", name))
		}
		for _, q := range own[i+1:] {
			if other, constant := c.constantString(q.name); constant && other == name && c.graphOf(u).before(p.call.Pos(), q.call.Pos()) {
				all = append(all, found(q.name, "another phase of this handler has the name %q: give this phase another name", name))
			}
		}
	}
	return all
}

// rangedMap returns the loop that runs the phase for each entry of a map; nil if there is
// none.
func (c *code) rangedMap(body *ast.BlockStmt, p *phase) (loop *ast.RangeStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		r, ok := n.(*ast.RangeStmt)
		if !ok || !within(r.Body, p.call.Pos()) {
			return true
		}
		if _, isMap := c.info.TypeOf(r.X).Underlying().(*types.Map); isMap {
			loop = r
		}
		return true
	})
	return loop
}

var (
	chance = regexp.MustCompile(`(^|/)(math/rand(/v2)?|crypto/rand|(go-?)?uuid|ulid|xid|ksuid)(/v\d+)?$`)
	// fields of events and contexts; they differ in each invocation
	perInvocation = map[string]bool{"RequestID": true, "AwsRequestID": true, "ReceiptHandle": true, "TimeEpoch": true, "RequestTime": true, "RequestTimeEpoch": true}
)

// code.unstable returns the part of an expression that differs in each attempt, such as
// time.Now; "" if no such part is known.
func (c *code) unstable(e ast.Expr, seen map[*types.Var]bool) (source string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if source != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.Ident:
			switch obj := c.info.ObjectOf(n).(type) {
			case *types.Func:
				source = unstableFunc(obj)
			case *types.Var:
				if seen[obj] || obj.IsField() {
					return false
				}
				seen[obj] = true
				for _, value := range c.values[obj] {
					if source == "" && !c.fromPhase(value) {
						source = c.unstable(value, seen)
					}
				}
			}
		case *ast.SelectorExpr:
			if v, ok := c.info.ObjectOf(n.Sel).(*types.Var); ok && v.IsField() &&
				perInvocation[v.Name()] && awsLambda.MatchString(v.Pkg().Path()) {
				source = v.Name() + ", which differs between invocations"
			}
		}
		return source == ""
	})
	return source
}

var awsLambda = regexp.MustCompile(`^github\.com/aws/aws-lambda-go/`)

func unstableFunc(fn *types.Func) string {
	if fn.Pkg() == nil {
		return ""
	}
	path := fn.Pkg().Path()
	switch {
	case fn.FullName() == "time.Now" || fn.FullName() == "time.Since" || fn.FullName() == "os.Getpid":
		return fn.FullName()
	case chance.MatchString(path) && regexp.MustCompile(`^(New|Int|Uint|Float|Read|Text|Perm|N$|Must$|Make$)`).MatchString(fn.Name()) && fn.Signature().Params().Len() <= 2:
		return path + "." + fn.Name()
	}
	return ""
}

// fromPhase reports whether a value is the result of a phase, which is the same in
// each attempt.
func (c *code) fromPhase(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok && c.at[call] != nil
}
