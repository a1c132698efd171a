package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// packages has the folders of the packages that comments of the model name.
var packages = map[string]string{
	"idem": "idem", "dynamo": "dynamo", "stream": "internal/background/stream", "state": "internal/state", "jobs": "idem/jobs", "item": "internal/item",
	"defaults": "internal/base/defaults",
}

// The model names the code that it describes: each name is declared, and each
// condition is written in docs/operate/item.md or in the code.
func TestTheModelNamesTheCode(t *testing.T) {
	t.Parallel()
	declared := make(map[string]bool)
	for name, dir := range packages {
		for _, file := range parse(t, filepath.Join(root, dir)) {
			for _, id := range declarations(file) {
				declared[name+"."+id] = true
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/operate/item.md"))
	if err != nil {
		t.Fatal(err)
	}
	named, conditions := 0, 0
	for _, file := range parse(t, ".") {
		for _, group := range file.Comments {
			for line := range strings.Lines(group.Text()) {
				if list, ok := strings.CutPrefix(line, "Code: "); ok {
					for id := range strings.SplitSeq(strings.TrimSpace(list), ", ") {
						if named++; !declared[id] {
							t.Errorf("the model names %s, which is not declared", id)
						}
					}
				}
				if condition, ok := strings.CutPrefix(line, "Condition: "); ok {
					if conditions++; !strings.Contains(string(page), strings.TrimSpace(condition)) {
						t.Errorf("docs/operate/item.md has no condition %q", condition)
					}
				}
			}
		}
	}
	if named < 60 || conditions < 12 {
		t.Errorf("the model names the code %d times, and %d conditions: is this test looking at it?", named, conditions)
	}
}

// Each function of the model that is a write, or a decision, says whose it is.
func TestEachActionNamesItsCode(t *testing.T) {
	t.Parallel()
	for _, file := range parse(t, ".") {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !isWrite(f) {
				continue
			}
			if doc := f.Doc.Text(); !strings.Contains(doc, "Code: ") || !strings.Contains(doc, "Condition: ") {
				t.Errorf("%s: its comment says no code, or no condition", f.Name.Name)
			}
		}
	}
}

// isWrite reports whether f applies a packet to the store.
func isWrite(f *ast.FuncDecl) bool {
	p := f.Type.Params.List
	if f.Type.Results == nil || len(p) != 2 || f.Name.Name == "write" || f.Name.Name == "companion" { // the table of writes; one without a condition
		return false
	}
	w, ofWorld := p[0].Type.(*ast.StarExpr)
	id, ok := p[1].Type.(*ast.Ident)
	if !ofWorld || !ok || id.Name != "packet" {
		return false
	}
	world, ok := w.X.(*ast.Ident)
	return ok && world.Name == "world"
}

func parse(t *testing.T, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// declarations lists the names that a file declares: "F", "T.Method", constants.
func declarations(file *ast.File) (ids []string) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				typ := d.Recv.List[0].Type
				if p, ok := typ.(*ast.StarExpr); ok {
					typ = p.X
				}
				if id, ok := typ.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			ids = append(ids, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, id := range v.Names {
						ids = append(ids, id.Name)
					}
				}
			}
		}
	}
	return ids
}

// Each rule has its sentence and its place; each is asked for somewhere.
func TestRulesAreWhole(t *testing.T) {
	t.Parallel()
	var src strings.Builder
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		src.Write(b)
	}
	for r, rule := range rules {
		switch {
		case rule.name == "" || rule.says == "" || (rule.belt == "") != (rule.in != ""):
			t.Errorf("rule %d, %q, is not whole", r, rule.name)
		case !regexp.MustCompile(`m\.on\(` + rule.name + `\)`).MatchString(src.String()):
			t.Errorf("no step asks for %s", rule.name)
		}
	}
}
