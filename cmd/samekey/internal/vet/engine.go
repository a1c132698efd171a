package vet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/samekey/samekey/cmd/samekey/internal/vet/lock"
)

// newEngine returns the node n if it is a call of idem.New, and nil otherwise.
func (c *code) newEngine(n ast.Node) *ast.CallExpr {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	fn, ok := calleeOf(c.info, call).(*types.Func)
	if !ok || fn.FullName() != idemPath+".New" {
		return nil
	}
	return call
}

// code.engines returns the package's engines, with the options that decide what a key
// means. If a function makes several engines, they are numbered in source order.
func (c *code) engines() (all []lock.Engine) {
	numbers := make(map[string]int)
	c.inspect(func(n ast.Node) {
		call := c.newEngine(n)
		if call == nil {
			return
		}
		name := "var" // for an engine at package level
		if fn := c.enclosing(call.Pos()); fn != nil {
			name = c.nameOf(fn)
		}
		if numbers[name]++; numbers[name] > 1 {
			name += "#" + strconv.Itoa(numbers[name])
		}
		e := lock.Engine{Package: c.pkg.Path(), Name: name, Pos: c.fset.Position(call.Pos()), Meaning: lock.Meaning{}}
		c.options(call, func(option string, value ast.Expr) {
			if lock.Means(option) && !isZero(value) {
				text := c.text(value)
				if was := e.Meaning[option]; was != "" && was != text { // the source sets the option to several values
					text = was + "; " + text
				}
				e.Meaning[option] = text
			}
		})
		all = append(all, e)
	})
	slices.SortStableFunc(all, func(a, b lock.Engine) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// code.text returns the source of an option's value as one line for the lock file;
// "true" if the option has no value. If the line is long, or the value is a function
// whose body is in the package, text returns a hash of the source.
func (c *code) text(value ast.Expr) string {
	const long = 80
	if value == nil {
		return "true"
	}
	var node any = value
	isFunc := false
	switch v := ast.Unparen(value).(type) {
	case *ast.FuncLit:
		isFunc = true
	case *ast.Ident:
		fn, _ := c.info.ObjectOf(v).(*types.Func)
		if decl := c.decls[fn]; decl != nil {
			node, isFunc = decl.Body, true
		}
	}
	var b bytes.Buffer
	_ = printer.Fprint(&b, c.fset, node) // a parsed tree prints without error
	text := bytes.Join(bytes.Fields(b.Bytes()), []byte(" "))
	if !isFunc && len(text) <= long {
		return string(text)
	}
	sum := sha256.Sum256(text)
	return "source " + hex.EncodeToString(sum[:4])
}

// code.options finds the options that a call of idem.New sets in the package's
// source, and calls visit with the name and the value of each. The name is the field's
// name, such as "Fingerprint.Headers". A preset (OneScope, ACP or UCP) counts as an
// option too: it has the preset's name, and no value. ACP and UCP also set
// Fingerprint.Func and Fingerprint.FuncName, so options calls visit for these two
// fields.
func (c *code) options(call *ast.CallExpr, visit func(name string, value ast.Expr)) {
	for _, opt := range call.Args[1:] {
		c.option(opt, visit, 0)
	}
}

func (c *code) option(opt ast.Expr, visit func(name string, value ast.Expr), depth int) {
	const far = 4 // maximum length of a chain of variables, each of which holds the next
	if depth > far {
		return
	}
	var body *ast.BlockStmt
	switch opt := ast.Unparen(opt).(type) {
	case *ast.FuncLit:
		body = opt.Body
	case *ast.SelectorExpr:
		fn, _ := c.info.ObjectOf(opt.Sel).(*types.Func)
		switch {
		case fn == nil:
		case fn.FullName() == idemPath+".OneScope":
			visit("OneScope", nil)
		case fn.FullName() == idemPath+".ACP", fn.FullName() == idemPath+".UCP":
			visit(fn.Name(), nil)
			visit("Fingerprint.Func", nil)
			visit("Fingerprint.FuncName", &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(strings.ToLower(fn.Name()))})
		}
	case *ast.Ident:
		switch obj := c.info.ObjectOf(opt).(type) {
		case *types.Func:
			if decl := c.decls[obj]; decl != nil {
				body = decl.Body
			}
		case *types.Var:
			for _, value := range c.values[obj] {
				c.option(value, visit, depth+1)
			}
		}
	}
	if body == nil {
		return
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr: // an option may call a preset: idem.OneScope(o)
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				c.option(sel, visit, depth)
			}
		case *ast.AssignStmt:
			if len(n.Lhs) != len(n.Rhs) {
				return true
			}
			for i, left := range n.Lhs {
				if name := c.optionField(left); name != "" {
					c.visitParts(name, n.Rhs[i], visit, depth)
				}
			}
		}
		return true
	})
}

// visitParts calls visit for an option. If the option's value is a literal of
// Fingerprint or Former, visitParts visits each field of the literal instead. A preset
// in Former gets a name such as "Former.ACP".
func (c *code) visitParts(name string, value ast.Expr, visit func(string, ast.Expr), depth int) {
	if name == "Former.Preset" {
		c.option(value, func(name string, value ast.Expr) { visit("Former."+name, value) }, depth+1)
	}
	literal := ast.Unparen(value)
	if address, ok := literal.(*ast.UnaryExpr); ok {
		literal = address.X
	}
	lit, ok := literal.(*ast.CompositeLit)
	if !ok || name != "Fingerprint" && name != "Former" {
		visit(name, value)
		return
	}
	if name == "Former" { // visit Former, too, so that a Former without fields counts as set
		visit(name, nil)
	}
	for _, elt := range lit.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				c.visitParts(name+"."+key.Name, kv.Value, visit, depth)
			}
		}
	}
}

// optionField returns the name of a field of idem.Options, or of a part of Options;
// "" for anything else.
func (c *code) optionField(left ast.Expr) string {
	sel, ok := left.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	named := namedOf(c.info.TypeOf(sel.X))
	if named == nil || named.Obj().Pkg().Path() != idemPath {
		return ""
	}
	if named.Obj().Name() == "Options" {
		return sel.Sel.Name
	}
	if part := c.optionField(sel.X); part != "" {
		return part + "." + sel.Sel.Name
	}
	return ""
}

func isZero(value ast.Expr) bool {
	id, ok := ast.Unparen(value).(*ast.Ident)
	return ok && (id.Name == "false" || id.Name == "nil")
}
