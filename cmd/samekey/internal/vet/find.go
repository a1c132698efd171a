package vet

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

const idemPath = "github.com/samekey/samekey/idem"

// kind is the name of the function of package idem that runs a phase.
type kind string

const (
	atomic  kind = "Atomic"
	foreign kind = "Foreign"
	finish  kind = "Finish"
)

// phase is a call that runs a phase. The called function belongs to package idem, or is a
// wrapper.
type phase struct {
	kind   kind
	call   *ast.CallExpr
	name   ast.Expr       // the phase's name; nil for a Finish
	body   *ast.BlockStmt // body of the phase's function; nil if unknown
	fn     ast.Expr       // the phase's function
	lit    *ast.FuncLit   // the function literal: fn itself, or the value of the variable fn
	opts   []ast.Expr
	unseen bool // the options are passed as a slice (opts...), so some are unknown
	via    bool // the called function is a wrapper
	inner  bool // the call is in a wrapper, and the wrapper's caller gives the phase's name or function
	result types.Type
	open   bool // the called wrapper has a type parameter as its result type
}

// code holds what the rules know about a package.
type code struct {
	fset    *token.FileSet
	info    *types.Info
	pkg     *types.Package
	files   []*ast.File // without tests
	decls   map[*types.Func]*ast.FuncDecl
	values  map[*types.Var][]ast.Expr // values assigned to a variable
	phases  []*phase
	at      map[*ast.CallExpr]*phase
	inline  map[*ast.FuncLit]bool // function literals that run in place
	label   map[*ast.FuncLit]string
	units   []*unit
	unit    map[*types.Func]*unit // the unit of each declared function
	ignored []ignored
}

var finder = &analysis.Analyzer{
	Name: "phases", Doc: "find phases, and the functions that contain the phases",
	ResultType: reflect.TypeFor[*code](),
	Run:        func(pass *analysis.Pass) (any, error) { return find(pass), nil },
}

func find(pass *analysis.Pass) *code {
	c := &code{
		fset: pass.Fset, info: pass.TypesInfo, pkg: pass.Pkg,
		decls: make(map[*types.Func]*ast.FuncDecl), values: make(map[*types.Var][]ast.Expr),
		at: make(map[*ast.CallExpr]*phase), inline: make(map[*ast.FuncLit]bool), label: make(map[*ast.FuncLit]string),
		unit: make(map[*types.Func]*unit),
	}
	for _, file := range pass.Files {
		if isTest(pass.Fset, file) {
			continue
		}
		c.ignored = append(c.ignored, ignoresOf(pass.Fset, file)...)
		c.files = append(c.files, file)
	}
	if !slices.ContainsFunc(pass.Pkg.Imports(), func(p *types.Package) bool { return p.Path() == idemPath }) {
		return c
	}
	c.declarations()
	c.direct()
	for range 3 { // wrappers of wrappers
		if !c.wrapped() {
			break
		}
	}
	c.literals()
	c.findUnits()
	return c
}

// isTest reports whether a file is a test, or a helper for tests.
func isTest(fset *token.FileSet, file *ast.File) bool {
	if strings.HasSuffix(filepath.Base(fset.Position(file.Package).Filename), "_test.go") {
		return true
	}
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` })
}

// code.inspect calls visit with every node of the package. After the children of a
// node, it calls visit with nil.
func (c *code) inspect(visit func(ast.Node)) {
	for _, file := range c.files {
		ast.Inspect(file, func(n ast.Node) bool {
			visit(n)
			return true
		})
	}
}

func (c *code) declarations() {
	assign := func(left, right []ast.Expr) {
		for i, l := range left {
			id, _ := l.(*ast.Ident)
			v, isVar := c.info.ObjectOf(id).(*types.Var)
			switch {
			case !isVar || len(right) == 0:
			case len(left) == len(right):
				c.values[v] = append(c.values[v], right[i])
			default:
				c.values[v] = append(c.values[v], right[0])
			}
		}
	}
	c.inspect(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if fn, _ := c.info.Defs[n.Name].(*types.Func); n.Body != nil {
				c.decls[fn] = n
			}
		case *ast.AssignStmt:
			assign(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			left := make([]ast.Expr, len(n.Names))
			for i, name := range n.Names {
				left[i] = name
			}
			assign(left, n.Values)
		case *ast.RangeStmt:
			assign([]ast.Expr{n.Key, n.Value}, []ast.Expr{n.X})
		}
	})
}

// code.direct finds the calls of package idem that run a phase. The method wrapped
// finds the calls of wrappers.
func (c *code) direct() {
	c.inspect(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		fn, ok := calleeOf(c.info, call).(*types.Func)
		if !ok || fn.Pkg() == nil || fn.Pkg().Path() != idemPath {
			return
		}
		p := &phase{kind: kind(fn.Name()), call: call, result: c.resultOf(call)}
		switch {
		case p.kind == finish && len(call.Args) == 2:
			c.setFunction(p, call.Args[1])
		case (p.kind == atomic || p.kind == foreign) && len(call.Args) >= 3:
			p.name, p.opts, p.unseen = call.Args[1], call.Args[3:], call.Ellipsis.IsValid()
			c.setFunction(p, call.Args[2])
		default:
			return
		}
		c.phases, c.at[call] = append(c.phases, p), p
	})
}

// resultOf returns the type of a call's first result.
func (c *code) resultOf(call *ast.CallExpr) types.Type {
	t := c.info.TypeOf(call)
	if tuple, ok := t.(*types.Tuple); ok {
		if tuple.Len() == 0 {
			return nil
		}
		return tuple.At(0).Type()
	}
	return t
}

// setFunction sets the function of a phase to the expression e. It finds the function's
// body if e is a literal, a variable that holds a literal, or a function or method of
// this package.
func (c *code) setFunction(p *phase, e ast.Expr) {
	e = ast.Unparen(e)
	p.fn = e
	if lit, ok := e.(*ast.FuncLit); ok {
		p.lit, p.body = lit, lit.Body
	}
	switch obj := c.object(e).(type) {
	case *types.Func:
		if decl := c.decls[obj.Origin()]; decl != nil {
			p.body = decl.Body
		}
	case *types.Var:
		if all := c.values[obj]; len(all) == 1 {
			if lit, ok := ast.Unparen(all[0]).(*ast.FuncLit); ok {
				p.lit, p.body = lit, lit.Body
			}
		}
	}
}

// code.object returns the object of an identifier or a selection.
func (c *code) object(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return c.info.ObjectOf(e)
	case *ast.SelectorExpr:
		return c.info.ObjectOf(e.Sel)
	case *ast.IndexExpr: // an instance of a generic function
		return c.object(e.X)
	}
	return nil
}

// code.wrapped finds the package's wrappers. A wrapper is a function that passes a
// parameter on as the name or the function of a phase. wrapped adds each call of a
// wrapper to the phases. The result more reports whether there was a new call.
func (c *code) wrapped() (more bool) {
	type wrapper struct {
		*phase
		name, fn int // indexes of the parameters for the name and the function; -1 if there is none
	}
	wrappers := make(map[*types.Func]wrapper)
	for _, p := range c.phases {
		fn := c.enclosing(p.call.Pos())
		if fn == nil {
			continue
		}
		w := wrapper{p, parameter(c, fn, p.name), parameter(c, fn, p.fn)}
		if w.fn < 0 && p.lit != nil {
			w.fn = calledParameter(c, fn, p.lit)
		}
		if w.name >= 0 || w.fn >= 0 {
			p.inner = true
			wrappers[fn] = w
		}
	}
	c.inspect(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || c.at[call] != nil {
			return
		}
		fn, ok := calleeOf(c.info, call).(*types.Func)
		w, isWrapper := wrappers[originOf(fn, ok)]
		if !isWrapper {
			return
		}
		p := &phase{kind: w.kind, call: call, name: w.phase.name, opts: w.opts, unseen: w.unseen, via: true, result: w.result}
		if _, open := types.Unalias(w.result).(*types.TypeParam); open {
			p.result, p.open = c.resultOf(call), true
		}
		if w.name >= 0 && w.name < len(call.Args) {
			p.name = call.Args[w.name]
		}
		if w.fn >= 0 && w.fn < len(call.Args) {
			c.setFunction(p, call.Args[w.fn])
		}
		c.phases, c.at[call], more = append(c.phases, p), p, true
	})
	return more
}

func originOf(fn *types.Func, ok bool) *types.Func {
	if !ok {
		return nil
	}
	return fn.Origin()
}

// code.enclosing returns the declared function around a position.
func (c *code) enclosing(pos token.Pos) *types.Func {
	for fn, decl := range c.decls {
		if within(decl, pos) {
			return fn
		}
	}
	return nil
}

// The function parameter returns the index of the parameter of fn that the expression e
// names; -1 if e names none.
func parameter(c *code, fn *types.Func, e ast.Expr) int {
	id, _ := e.(*ast.Ident)
	params := fn.Signature().Params()
	for i := range params.Len() {
		if params.At(i) == c.info.ObjectOf(id) {
			return i
		}
	}
	return -1
}

// calledParameter returns the index of the first parameter of fn that the literal lit
// calls; -1 if lit calls none.
func calledParameter(c *code, fn *types.Func, lit *ast.FuncLit) int {
	at := -1
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && at < 0 {
			at = parameter(c, fn, call.Fun)
		}
		return true
	})
	return at
}

// calleeOf returns the function that is called. If this is an instance of a generic
// function, calleeOf returns the generic function.
func calleeOf(info *types.Info, call *ast.CallExpr) types.Object {
	obj := typeutil.Callee(info, call)
	if fn, ok := obj.(*types.Func); ok {
		return fn.Origin()
	}
	return obj
}

func (c *code) constantString(e ast.Expr) (string, bool) {
	v := c.info.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}
