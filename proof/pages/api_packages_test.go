package pages_test

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// goPackage is an exported package of this module, as its sources document it.
type goPackage struct {
	*doc.Package
	dir  string // from root
	fset *token.FileSet
}

// exported returns the packages that others import, by their folders.
func exported(t *testing.T) []goPackage {
	t.Helper()
	var found []goPackage
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		if path == filepath.Join(root, "idem", "spec") {
			return filepath.SkipDir // the model of the protocol, for people and for mutants of the code
		}
		if path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"internal", "proof", "testdata", "examples", "cmd", "docs", "dist"}, name)) {
			return filepath.SkipDir
		}
		p, ok := parsePackage(t, path)
		if ok && p.Name != "main" {
			found = append(found, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	order := []string{"idem", "dynamo", "lambda"} // as an application's author meets them, tests' packages last
	slices.SortStableFunc(found, func(a, b goPackage) int {
		rank := func(p goPackage) int {
			top, _, _ := strings.Cut(p.dir, "/")
			n := slices.Index(order, top)
			if strings.HasSuffix(p.dir, "test") {
				n += len(order)
			}
			return n
		}
		return cmp.Compare(rank(a), rank(b))
	})
	return found
}

// parsePackage reads the package in a folder; false where there is none.
func parsePackage(t *testing.T, dir string) (goPackage, bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	p := goPackage{fset: token.NewFileSet()}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return p, false
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	p.dir = filepath.ToSlash(rel)
	p.Package, err = doc.NewFromFiles(p.fset, files, "github.com/samekey/samekey/"+p.dir, doc.PreserveAST)
	if err != nil {
		t.Fatal(err)
	}
	return p, true
}

// first is the first sentence of a comment, as a cell of a table.
func (p *goPackage) first(comment string) string {
	return cell(p.Synopsis(comment))
}

var docLink = regexp.MustCompile(`\[(\*?[A-Za-z][\w.]*)\]`)

// cell makes one line of Markdown of a comment's text.
func cell(s string) string {
	s = docLink.ReplaceAllString(strings.Join(strings.Fields(s), " "), "$1")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(s)
}

// option is a field of an Options struct.
type option struct {
	name         string
	typ          string
	first        string
	defaultsTo   string // "" where the comment names none
	defaultField ast.Expr
}

var defaultSentence = regexp.MustCompile(`(?s)Defaults?:\s+(.+?)(?:\.\s|\.?\s*$)`)

// options returns the fields of the struct t.
func (p *goPackage) options(t *doc.Type) []option {
	var all []option
	spec, _ := t.Decl.Specs[0].(*ast.TypeSpec)
	st, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range st.Fields.List {
		comment := cmp.Or(f.Doc.Text(), f.Comment.Text())
		var values []string
		if m := defaultSentence.FindStringSubmatch(comment); m != nil {
			values = []string{strings.Join(strings.Fields(m[1]), " ")}
		}
		if both := strings.Split(strings.Join(values, ""), " and "); len(f.Names) == 2 && len(both) == 2 {
			values = both
		}
		text, _, _ := strings.Cut(comment, "Default:")
		text, _, _ = strings.Cut(text, "Defaults:")
		for i, name := range f.Names {
			if !name.IsExported() {
				continue
			}
			o := option{name: name.Name, typ: p.source(f.Type), first: p.first(text), defaultField: f.Type}
			if len(values) > 0 {
				o.defaultsTo = values[min(i, len(values)-1)]
			}
			all = append(all, o)
		}
	}
	return all
}

func (p *goPackage) source(e ast.Expr) string {
	var b strings.Builder
	if err := printer.Fprint(&b, p.fset, e); err != nil {
		return err.Error()
	}
	return b.String()
}

// constants are the values of the packages' constants that can be told without
// types, by package and name.
func constants(all []goPackage) map[string]constant.Value {
	found := make(map[string]constant.Value)
	for _, p := range all {
		for _, c := range p.allConsts() {
			for _, spec := range c.Decl.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for i, name := range v.Names {
					if i < len(v.Values) {
						if x := evaluate(v.Values[i], p.Name, found); x.Kind() != constant.Unknown {
							found[p.Name+"."+name.Name] = x
						}
					}
				}
			}
		}
	}
	return found
}

func (p *goPackage) allConsts() []*doc.Value {
	all := slices.Clone(p.Consts)
	for _, t := range p.Types {
		all = append(all, t.Consts...)
	}
	return all
}

var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// evaluate is the value of a constant expression, Unknown where that needs more
// than numbers, strings, units of time and constants that are known.
func evaluate(e ast.Expr, pkg string, known map[string]constant.Value) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return evaluate(e.X, pkg, known)
	case *ast.Ident:
		if v := known[pkg+"."+e.Name]; v != nil {
			return v
		}
	case *ast.SelectorExpr:
		x, _ := e.X.(*ast.Ident)
		if x != nil && x.Name == "time" && units[e.Sel.Name] != 0 {
			return constant.MakeInt64(int64(units[e.Sel.Name]))
		}
		if x != nil && known[x.Name+"."+e.Sel.Name] != nil {
			return known[x.Name+"."+e.Sel.Name]
		}
	case *ast.BinaryExpr:
		x, y := evaluate(e.X, pkg, known), evaluate(e.Y, pkg, known)
		if x.Kind() == constant.Unknown || y.Kind() == constant.Unknown {
			break
		}
		if e.Op == token.SHL {
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	return constant.MakeUnknown()
}
