package pages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/samekey/samekey/lambda/metrics"
)

// metricsTable is the list of the metrics of package lambda/metrics.
func metricsTable(*testing.T) string {
	tb := table{Head: []string{"metric", "unit", "from", "meaning"}}
	for _, m := range metrics.All() {
		meaning := m.Meaning
		if m.Alarm.Name != "" {
			meaning += " (alarm)"
		}
		tb.Add(code(m.Name), m.Unit, m.Source, meaning)
	}
	return tb.String()
}

// logPackages are the packages whose log lines are listed.
var logPackages = []string{"idem", "dynamo/stream", "lambda", "lambda/completer"}

// logTable is the list of all log lines in the code of the library.
func logTable(t *testing.T) string {
	tb := table{Head: []string{"message", "level", "attributes", "from"}}
	for _, pkg := range logPackages {
		lines := logLines(t, pkg)
		if len(lines) == 0 {
			t.Fatalf("package %s logs nothing: something is wrong with this test", pkg)
		}
		for _, l := range lines {
			tb.Add(l.message, l.level, strings.Join(l.attributes, ", "), code(pkg))
		}
	}
	return tb.String()
}

type logLine struct {
	message, level string
	attributes     []string
}

// logLines returns the log lines of a package, sorted by their messages.
func logLines(t *testing.T, pkg string) (lines []logLine) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			with := withs(fn)
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if l, ok := logLineOf(n, with); ok && !slices.ContainsFunc(lines, func(o logLine) bool { return o.message == l.message && o.level == l.level }) {
					lines = append(lines, l)
				}
				return true
			})
		}
	}
	slices.SortFunc(lines, func(a, b logLine) int { return strings.Compare(a.message, b.message) })
	return lines
}

// levels are the methods of a slog.Logger that the library uses.
var levels = map[string]string{"DebugContext": "Debug", "InfoContext": "Info", "WarnContext": "Warn", "ErrorContext": "Error", "Log": "by outcome"}

// logLineOf reads a call of a logger.
func logLineOf(n ast.Node, with map[string][]string) (l logLine, ok bool) {
	call, isCall := n.(*ast.CallExpr)
	if !isCall {
		return l, false
	}
	sel, isSel := call.Fun.(*ast.SelectorExpr)
	if !isSel || levels[sel.Sel.Name] == "" {
		return l, false
	}
	at := 1
	if sel.Sel.Name == "Log" {
		at = 2
	}
	if len(call.Args) <= at {
		return l, false
	}
	l.message, l.level = literal(call.Args[at]), levels[sel.Sel.Name]
	if l.message == "" {
		return l, false
	}
	if on, named := sel.X.(*ast.Ident); named {
		l.attributes = append(l.attributes, with[on.Name]...)
	}
	l.attributes = append(l.attributes, attributeNames(call.Args[at+1:])...)
	return l, true
}

// withs returns the attributes of loggers that a function makes by With, by their names.
func withs(fn *ast.FuncDecl) map[string][]string {
	found := make(map[string][]string)
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
			return true
		}
		name, isName := assign.Lhs[0].(*ast.Ident)
		call, isCall := assign.Rhs[0].(*ast.CallExpr)
		if !isName || !isCall {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "With" {
			found[name.Name] = attributeNames(call.Args)
		}
		return true
	})
	return found
}

// keys returns the names among a log line's arguments.
func attributeNames(args []ast.Expr) (names []string) {
	for i := 0; i < len(args); i += 2 {
		if name := literal(args[i]); name != "" {
			names = append(names, code(name))
		}
	}
	return names
}

// literal returns the text of string literals, also joined ones; "" for anything else.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return s
		}
	case *ast.BinaryExpr:
		if a, b := literal(e.X), literal(e.Y); a != "" && b != "" {
			return a + b
		}
	}
	return ""
}

// Every log line about a record names it.
func TestLogLinesNameTheirRecord(t *testing.T) {
	t.Parallel()
	n := 0
	for _, pkg := range logPackages {
		for _, l := range logLines(t, pkg) {
			about := slices.ContainsFunc(l.attributes, func(a string) bool { return a == "`operation`" || a == "`tries`" })
			named := slices.ContainsFunc(l.attributes, func(a string) bool { return a == "`record`" || a == "`job`" })
			if about && !named {
				t.Errorf("%s: %q has %v, and no record", pkg, l.message, l.attributes)
			}
			if named {
				n++
			}
		}
	}
	if n < 20 {
		t.Errorf("%d lines name a record: something is wrong with this test", n)
	}
}
