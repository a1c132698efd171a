package vet

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/analysis"

	"github.com/samekey/samekey/cmd/samekey/internal/vet/lock"
)

// Program finds a package's handlers and engines for a lock file. Its result is a
// [lock.Program]. It reports no findings.
var Program = &analysis.Analyzer{
	Name: "program", Doc: "list the phases of handlers, and the engine options that decide what a key means",
	Requires:   []*analysis.Analyzer{finder},
	ResultType: reflect.TypeFor[lock.Program](),
	Run: func(pass *analysis.Pass) (any, error) {
		c := pass.ResultOf[finder].(*code)
		return lock.Program{Handlers: c.handlers(), Engines: c.engines()}, nil
	},
}

// stop is a phase that a function may run. If the function itself runs the phase, site is
// the phase's position, and inner is nil. Otherwise, site is the position of the call that
// leads to the phase, and inner describes the called function.
type stop struct {
	phase *phase
	site  token.Pos
	inner *way
	at    int // index of the phase in inner.stops
}

// way holds the phases that a function may run.
type way struct {
	unit  *unit
	graph *graph
	stops []stop
}

// way.before tells whether stop i may come before stop j.
func (w *way) before(i, j int) bool {
	a, b := w.stops[i], w.stops[j]
	if a.site != b.site {
		return w.graph.before(a.site, b.site)
	}
	return a.inner != nil && a.inner.before(a.at, b.at) || w.graph.again(a.site)
}

// code.handlers returns the package's handlers. A handler runs phases itself, or calls
// several functions with phases one after another. A function that a handler calls is
// part of the handler. A function that only chooses one of several functions with
// phases, and calls it, is a router, not a handler. The functions from which a router
// chooses are handlers.
func (c *code) handlers() (all []lock.Handler) {
	parts := make(map[*types.Func]bool)
	var found []*unit
	for _, u := range c.units {
		if !c.isHandler(u) {
			continue
		}
		found = append(found, u)
		for _, e := range u.calls {
			if e.callee != u.fn {
				parts[e.callee] = true
			}
		}
	}
	for _, u := range found {
		if u.lit == nil && parts[u.fn] {
			continue
		}
		w := c.wayOf(u, make(map[*types.Func]bool))
		h := lock.Handler{
			Package: c.pkg.Path(), Name: c.handlerName(u), Pos: c.fset.Position(u.body.Pos()), Before: w.before,
		}
		for _, s := range w.stops {
			h.Phases = append(h.Phases, c.locked(s.phase))
		}
		if len(h.Phases) > 0 {
			all = append(all, h)
		}
	}
	return all
}

func (c *code) isHandler(u *unit) bool {
	var phases []event
	for _, e := range u.calls {
		if e.phase != nil {
			return true
		}
		if c.runsPhase(e) {
			phases = append(phases, e)
		}
	}
	for i, a := range phases {
		for _, b := range phases[i+1:] {
			if c.graphOf(u).before(a.call.Pos(), b.call.Pos()) {
				return true
			}
		}
	}
	return false
}

func (c *code) handlerName(u *unit) string {
	name := "func"
	if u.fn != nil {
		name = c.nameOf(u.fn)
	}
	if u.lit != nil {
		name += " " + u.label
	}
	return name
}

// wayOf lists the named phases of a function, including the phases of called
// functions of this package.
func (c *code) wayOf(u *unit, seen map[*types.Func]bool) *way {
	w := &way{unit: u, graph: c.graphOf(u)}
	for _, e := range u.calls {
		switch {
		case e.phase != nil && e.phase.name != nil:
			w.stops = append(w.stops, stop{phase: e.phase, site: e.call.Pos()})
		case !seen[e.callee] && c.hasPhases(e.callee):
			seen[e.callee] = true
			inner := c.wayOf(c.unit[e.callee], seen)
			delete(seen, e.callee)
			for i, s := range inner.stops {
				w.stops = append(w.stops, stop{phase: s.phase, site: e.call.Pos(), inner: inner, at: i})
			}
		}
	}
	return w
}

// code.locked describes a phase for the lock file.
func (c *code) locked(p *phase) lock.Phase {
	l := lock.Phase{Name: c.pattern(p.name), Kind: string(p.kind), Calls: c.callsOf(p.body, make(map[*types.Func]bool))}
	for _, opt := range p.opts {
		switch c.optionName(opt) {
		case "NotIdempotent":
			l.NotIdempotent = true
		case "Remembers":
			if v := c.info.Types[ast.Unparen(opt).(*ast.CallExpr).Args[0]].Value; v != nil {
				d, _ := constant.Int64Val(constant.ToInt(v))
				l.Remembers = int64(time.Duration(d) / time.Second)
			}
		}
	}
	if p.result != nil {
		l.Result = lock.ShapeOf(p.result, func(t types.Type) bool { own, _ := ownForm(t); return own })
	}
	slices.Sort(l.Calls)
	l.Calls = slices.Compact(l.Calls)
	return l
}

// callsOf returns the names of the calls for which a body derives keys, itself or
// through functions of this package.
func (c *code) callsOf(body *ast.BlockStmt, seen map[*types.Func]bool) (all []string) {
	if body == nil {
		return nil
	}
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fn, ok := calleeOf(c.info, call).(*types.Func)
		switch {
		case ok && fn.FullName() == "(*"+idemPath+".Tx).Key":
			parts := make([]string, len(call.Args))
			for i, arg := range call.Args {
				parts[i] = c.pattern(arg)
			}
			all = append(all, strings.Join(parts, "/"))
		case c.decls[fn] != nil && !seen[fn]:
			seen[fn] = true
			all = append(all, c.callsOf(c.decls[fn].Body, seen)...)
		}
		return true
	})
	return all
}

var formatVerb = regexp.MustCompile(`%[^a-zA-Z%]*[a-zA-Z]`)

// code.pattern returns the value of a string expression, with * for each part that is
// not constant.
func (c *code) pattern(e ast.Expr) string {
	if s, ok := c.constantString(e); ok {
		return s
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return c.pattern(e.X) + c.pattern(e.Y)
		}
	case *ast.Ident:
		if v, ok := c.info.ObjectOf(e).(*types.Var); ok && len(c.values[v]) == 1 && !within(c.values[v][0], e.Pos()) {
			return c.pattern(c.values[v][0])
		}
	case *ast.CallExpr:
		fn, ok := calleeOf(c.info, e).(*types.Func)
		switch {
		case ok && fn.FullName() == "fmt.Sprintf":
			if format, constant := c.constantString(e.Args[0]); constant {
				return strings.ReplaceAll(formatVerb.ReplaceAllString(format, "*"), "%%", "%")
			}
		case ok && fn.FullName() == "fmt.Sprint":
			var b strings.Builder
			for _, arg := range e.Args {
				b.WriteString(c.pattern(arg))
			}
			return b.String()
		}
	}
	return "*"
}
