package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"slices"
	"strings"
)

// mutant is one place of the code and one change of it.
type mutant struct {
	pkg    *pkg
	number int    // within the package, from 1: what the switch asks for
	file   string // from the repository's root
	line   int
	source string // the line's text, without indentation
	before string // and with the three lines before it, ⏎ between them
	op     string // the operator's name
	change string // what becomes of what
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", m.file, m.line, m.op, m.change)
}

// The operators.
const (
	negated   = "condition negated"
	never     = "condition never holds"
	always    = "condition always holds"
	operand   = "operand dropped"
	boundary  = "comparison changed"
	number    = "constant changed"
	statement = "statement dropped"
	noCase    = "case dropped"
	noError   = "error dropped"
)

// edit is text that goes before and after a piece of a file.
type edit struct {
	from, to      int
	before, after string
}

// finder finds the mutants of a file.
type finder struct {
	pkg   *pkg
	file  string
	text  []byte
	fset  *token.FileSet
	info  *types.Info
	edits []edit
	found []*mutant
	path  []ast.Node // the nodes around the visited one
}

// add notes a mutant of a node, and returns its number.
func (f *finder) add(n ast.Node, op, change string) int {
	at := f.fset.Position(n.Pos())
	begin := at.Offset - at.Column + 1
	line, _, _ := strings.Cut(string(f.text[begin:]), "\n")
	lines := strings.Split(string(f.text[:begin])+line, "\n")
	lines = slices.Clone(lines[max(0, len(lines)-4):])
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	m := &mutant{before: strings.Join(lines, " ⏎ "), pkg: f.pkg, number: len(f.pkg.mutants) + len(f.found) + 1, file: f.file, line: at.Line, source: strings.TrimSpace(line), op: op, change: change}
	f.found = append(f.found, m)
	return m.number
}

func (f *finder) source(n ast.Node) string {
	return string(f.text[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

// short is a piece of source in a line.
func (f *finder) short(n ast.Node) string {
	const most = 70
	s := []rune(strings.Join(strings.Fields(f.source(n)), " "))
	if len(s) > most {
		return string(s[:most]) + "…"
	}
	return string(s)
}

func (f *finder) wrap(n ast.Node, before, after string) {
	f.edits = append(f.edits, edit{f.fset.Position(n.Pos()).Offset, f.fset.Position(n.End()).Offset, before, after})
}

// Visit implements [ast.Visitor].
func (f *finder) Visit(n ast.Node) ast.Visitor {
	if n == nil {
		f.path = f.path[:len(f.path)-1]
		return nil
	}
	if !f.visit(n) {
		return nil
	}
	f.path = append(f.path, n)
	return f
}

// visit finds the mutants of a node; false: none is in it.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.FuncDecl:
		return n.Body != nil
	case *ast.FuncType, *ast.StructType, *ast.InterfaceType, *ast.ArrayType, *ast.MapType:
		return false
	case *ast.IfStmt:
		ops := []string{never, always}
		if n.Else != nil {
			ops = append(ops, negated) // the branches are swapped
		}
		f.condition(n.Cond, ops...)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond, never) // any other loop would not end
		}
	case *ast.SwitchStmt:
		f.cases(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.ReturnStmt:
		f.returned(n)
	case *ast.CallExpr:
		return !f.noise(n)
	case ast.Expr:
		return f.expression(n)
	}
	return true
}

func (f *finder) parent() ast.Node {
	if len(f.path) == 0 {
		return nil
	}
	return f.path[len(f.path)-1]
}

// condition adds mutants of a whole condition.
func (f *finder) condition(cond ast.Expr, ops ...string) {
	if !f.isBool(cond) || f.info.Types[cond].Value != nil {
		return
	}
	for _, op := range ops {
		n := f.add(cond, op, f.short(cond))
		switch op {
		case negated:
			f.wrap(cond, fmt.Sprintf("mutantNot(%d, ", n), ")")
		case never:
			f.wrap(cond, fmt.Sprintf("mutantAnd(%d, ", n), ")")
		case always:
			f.wrap(cond, fmt.Sprintf("mutantOr(%d, ", n), ")")
		}
	}
}

// isBool says whether e is of type bool itself: another type would need conversions.
func (f *finder) isBool(e ast.Expr) bool {
	t, ok := f.info.TypeOf(e).(*types.Basic)
	return ok && (t.Kind() == types.Bool || t.Kind() == types.UntypedBool)
}

// expression adds mutants of an expression; false: it is a constant, and nothing in it
// can be changed.
func (f *finder) expression(e ast.Expr) bool {
	if tv := f.info.Types[e]; tv.Value != nil && tv.IsValue() {
		f.constant(e, tv)
		return false
	}
	b, ok := e.(*ast.BinaryExpr)
	if !ok {
		return true
	}
	other := map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}[b.Op]
	switch {
	case b.Op == token.SHL, b.Op == token.SHR:
		return false // the type of a shifted constant depends on whether the shift is one
	case !f.isBool(e):
	case b.Op == token.LAND:
		f.operands(b, "mutantOr")
	case b.Op == token.LOR:
		f.operands(b, "mutantAnd")
	case other != token.ILLEGAL:
		change := fmt.Sprintf("%s %s %s", f.source(b.X), other, f.source(b.Y))
		n := f.add(e, boundary, fmt.Sprintf("%s to %s", f.short(e), other))
		f.wrap(e, fmt.Sprintf("(mutantOn(%d) && %s || !mutantOn(%d) && ", n, change, n), ")")
	case f.loose():
		f.condition(e, negated)
	}
	return true
}

// loose says whether the visited condition is neither that of a statement nor an operand,
// which have mutants of their own.
func (f *finder) loose() bool {
	switch p := f.parent().(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause:
		return false
	case *ast.BinaryExpr:
		return p.Op != token.LAND && p.Op != token.LOR
	}
	return true
}

func (f *finder) operands(b *ast.BinaryExpr, by string) {
	for _, x := range []ast.Expr{b.X, b.Y} {
		if in, ok := ast.Unparen(x).(*ast.BinaryExpr); ok && in.Op == b.Op {
			continue // its operands are dropped one by one
		}
		n := f.add(x, operand, f.short(x))
		f.wrap(x, fmt.Sprintf("%s(%d, ", by, n), ")")
	}
}

// constant adds a mutant of a constant in an expression.
func (f *finder) constant(e ast.Expr, tv types.TypeAndValue) {
	var change string
	basic, ok := tv.Type.Underlying().(*types.Basic)
	switch {
	case !ok || f.fixed(e):
		return
	case basic.Info()&types.IsBoolean != 0:
		change = "!(" + f.source(e) + ")"
	case isDuration(tv.Type):
		if constant.Sign(tv.Value) == 0 {
			return
		}
		change = "(" + f.source(e) + ")*2"
	case basic.Info()&types.IsInteger != 0:
		next := constant.BinaryOp(constant.ToInt(tv.Value), token.ADD, constant.MakeInt64(1))
		n, exact := constant.Int64Val(next)
		if !exact || n > large && f.small(basic) {
			return
		}
		change = "(" + f.source(e) + ")+1"
		if n > large && n < math.MaxInt16 {
			change = "(" + f.source(e) + ")*2" // a limit: one more is not worth a test of its own
		}
	case basic.Info()&types.IsString != 0 && !types.Identical(tv.Type, types.Typ[types.String]) && basic.Kind() != types.UntypedString:
		change = "(" + f.source(e) + `)+"?"` // a word of a list; plain text is not tested by the letter
	default:
		return
	}
	typ, ok := f.typeName(e, tv.Type)
	if !ok {
		return
	}
	n := f.add(e, number, fmt.Sprintf("%s to %s", f.short(e), strings.Join(strings.Fields(change), " ")))
	f.wrap(e, fmt.Sprintf("mutantPick%s(%d, ", typ, n), ", "+change+")")
}

// large is the number from which on numbers are doubled.
const large = 64

// small says whether 128 may be too much for a type.
func (f *finder) small(t *types.Basic) bool {
	return t.Kind() == types.Int8 || t.Kind() == types.Uint8
}

func isDuration(t types.Type) bool { return types.TypeString(t, nil) == "time.Duration" }

// typeName is the type's argument for mutantPick. It is needed for a constant that has its
// type from where it stands; false if that type has no name here.
func (f *finder) typeName(e ast.Expr, t types.Type) (string, bool) {
	switch t := t.(type) {
	case *types.Basic:
		if t.Info()&types.IsUntyped != 0 {
			return "", true
		}
		return "[" + t.Name() + "]", true
	case *types.Named:
		if t.Obj().Pkg() == f.pkg.types && t.Obj().Parent() == f.pkg.types.Scope() {
			return "[" + t.Obj().Name() + "]", true
		}
	}
	return "", typed(e, f.info)
}

// typed says whether a constant expression has a type of its own.
func typed(e ast.Expr, info *types.Info) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.BasicLit:
		return false
	case *ast.Ident:
		return hasType(info.Uses[e])
	case *ast.SelectorExpr:
		return hasType(info.Uses[e.Sel])
	case *ast.UnaryExpr:
		return typed(e.X, info)
	case *ast.BinaryExpr:
		return typed(e.X, info) || typed(e.Y, info)
	case *ast.CallExpr:
		return true // a conversion
	}
	return false
}

func hasType(o types.Object) bool {
	if o == nil {
		return false
	}
	b, ok := o.Type().(*types.Basic)
	return !ok || b.Info()&types.IsUntyped == 0
}

// fixed says whether the visited constant must be one, or its value decides nothing.
func (f *finder) fixed(e ast.Expr) bool {
	switch p := f.parent().(type) {
	case *ast.CaseClause: // see cases
		return true
	case *ast.KeyValueExpr:
		return p.Key == e // an index
	case *ast.CallExpr:
		if f.info.Types[p.Fun].IsType() || f.isText(p) {
			return true
		}
	}
	for _, n := range f.path {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			continue
		}
		last := len(call.Args) - 1
		if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "make" && last > 0 && e.Pos() >= call.Args[last].Pos() {
			return last == 2 || f.isMap(call.Args[0]) // a capacity
		}
	}
	return false
}

// isText says whether a call makes a text for people, which isn't tested by the letter.
func (f *finder) isText(call *ast.CallExpr) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	o := f.info.Uses[fun.Sel]
	return o != nil && o.Pkg() != nil && o.Pkg().Path() == "fmt"
}

func (f *finder) isMap(e ast.Expr) bool {
	_, ok := f.info.TypeOf(e).Underlying().(*types.Map)
	return ok
}

// cases adds mutants of a switch's cases.
func (f *finder) cases(s *ast.SwitchStmt) {
	for _, stmt := range s.Body.List {
		for _, e := range stmt.(*ast.CaseClause).List {
			tv := f.info.Types[e]
			if s.Tag == nil {
				f.condition(e, never, always)
				continue
			}
			basic, ok := f.info.TypeOf(e).Underlying().(*types.Basic)
			typ, named := f.typeName(e, f.info.TypeOf(e))
			if !ok || !named || tv.Value == nil {
				continue
			}
			var other string
			switch {
			case basic.Info()&types.IsString != 0:
				other = "(" + f.source(e) + `)+"?"`
			case basic.Info()&types.IsInteger != 0 && basic.Info()&types.IsUntyped == 0:
				other = "^(" + f.source(e) + ")"
				if basic.Info()&types.IsUnsigned != 0 && !typed(e, f.info) {
					continue
				}
			default:
				continue
			}
			n := f.add(e, noCase, f.short(e))
			f.wrap(e, fmt.Sprintf("mutantPick%s(%d, ", typ, n), ", "+other+")")
		}
	}
}

// statements adds mutants that leave out a statement.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		if !f.droppable(s) {
			continue
		}
		n := f.add(s, statement, f.short(s))
		f.wrap(s, fmt.Sprintf("if !mutantOn(%d) { ", n), " }")
	}
}

func (f *finder) droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && !f.noise(call)
	case *ast.DeferStmt:
		return !f.noise(s.Call)
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return false
		}
		id, ok := s.Lhs[0].(*ast.Ident)
		return !ok || len(s.Lhs) > 1 || id.Name != "_"
	case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.RangeStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.CONTINUE || s.Tok == token.BREAK
	case *ast.ReturnStmt:
		return len(s.Results) == 0 && !f.named()
	}
	return false
}

// named says whether the visited function has results, so that its end needs a return.
func (f *finder) named() bool {
	for _, n := range slices.Backward(f.path) {
		switch n := n.(type) {
		case *ast.FuncLit:
			return n.Type.Results != nil
		case *ast.FuncDecl:
			return n.Type.Results != nil
		}
	}
	return false
}

// noise says whether a call's absence shows nowhere but in a log, in memory that is not
// freed, under the race detector, or at once: a panic.
func (f *finder) noise(call *ast.CallExpr) bool {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		_, builtin := f.info.Uses[fun].(*types.Builtin)
		return builtin && fun.Name == "panic" || types.TypeString(f.info.TypeOf(fun), nil) == "context.CancelFunc"
	case *ast.SelectorExpr:
		on := types.TypeString(f.info.TypeOf(fun.X), nil)
		return strings.HasSuffix(on, "log/slog.Logger") || strings.HasSuffix(on, "sync.Mutex") || strings.HasSuffix(on, "sync.RWMutex") || f.embedsLock(fun)
	}
	return false
}

// embedsLock says whether a method is that of an embedded mutex.
func (f *finder) embedsLock(fun *ast.SelectorExpr) bool {
	o := f.info.Uses[fun.Sel]
	return o != nil && o.Pkg() != nil && o.Pkg().Path() == "sync" && strings.HasSuffix(o.Name(), "ock")
}

// returned adds mutants of what a function returns.
func (f *finder) returned(r *ast.ReturnStmt) {
	if len(r.Results) == 0 {
		return
	}
	last := r.Results[len(r.Results)-1]
	sig := f.signature()
	if sig == nil || sig.Results().Len() != len(r.Results) {
		return
	}
	want := sig.Results().At(sig.Results().Len() - 1).Type()
	if types.TypeString(want, nil) == "error" && !f.info.Types[last].IsNil() {
		n := f.add(last, noError, f.short(last))
		f.wrap(last, fmt.Sprintf("mutantErr(%d, ", n), ")")
	}
	for _, e := range r.Results {
		if _, ok := e.(*ast.BinaryExpr); !ok && f.isBool(e) {
			f.condition(e, negated)
		}
	}
}

// signature is that of the visited function.
func (f *finder) signature() *types.Signature {
	for _, n := range slices.Backward(f.path) {
		switch n := n.(type) {
		case *ast.FuncLit:
			sig, _ := f.info.TypeOf(n).(*types.Signature)
			return sig
		case *ast.FuncDecl:
			sig, _ := f.info.TypeOf(n.Name).(*types.Signature)
			return sig
		}
	}
	return nil
}

// rewritten is the file with all its mutants.
func rewritten(text []byte, edits []edit) []byte {
	type piece struct {
		at, other, order int
		text             string
		after            bool
	}
	all := make([]piece, 0, 2*len(edits))
	for i, e := range edits {
		all = append(all, piece{e.from, e.to, i, e.before, false}, piece{e.to, e.from, i, e.after, true})
	}
	slices.SortStableFunc(all, func(a, b piece) int {
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.after != b.after: // what ends here comes before what begins here
			if a.after {
				return -1
			}
			return 1
		case a.other != b.other: // the outer piece begins first and ends last
			return b.other - a.other
		case a.after:
			return b.order - a.order
		}
		return a.order - b.order
	})
	var out strings.Builder
	from := 0
	for _, p := range all {
		out.Write(text[from:p.at])
		out.WriteString(p.text)
		from = p.at
	}
	out.Write(text[from:])
	return []byte(out.String())
}
