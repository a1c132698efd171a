package pages_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/inside/architecture.md"

// symbol is a link from the page to a declaration, as [`name`](../../folder/file.go).
var symbol = regexp.MustCompile("\\[`([A-Za-z_][\\w.]*)`\\]\\(\\.\\./\\.\\./([^()\\s#]+\\.go)\\)")

// Each function that the page names is declared in the file that it links to. With
// -update a link follows a declaration into another file; where only one folder has
// it, also into that; and where a name has only become exported, or no longer is, the
// page takes the new name.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(root, architecture))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	where := declarations(t)
	fresh := symbol.ReplaceAllStringFunc(text, func(was string) string {
		m := symbol.FindStringSubmatch(was)
		name, file := m[1], m[2]
		is, now, why := located(where, name, file)
		switch {
		case why != "":
			t.Errorf("%s: %s", architecture, why)
			return was
		case (is != name || now != file) && !*update:
			t.Errorf("%s: %s of %s is now %s of %s (go test -C proof ./pages -update)", architecture, name, file, is, now)
		}
		return fmt.Sprintf("[`%s`](../../%s)", is, now)
	})
	if *update && fresh != text {
		if err := os.WriteFile(filepath.Join(root, architecture), []byte(fresh), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, walk := range []string{"A request", "A job", "An abandoned request"} {
		steps := regexp.MustCompile(`(?m)^\d+\. (?:.|\n   )*`).FindAllString(section(text, walk), -1)
		if len(steps) < 5 {
			t.Errorf("%s: %q has %d steps: something is wrong with the page or with this test", architecture, walk, len(steps))
		}
		for _, step := range steps {
			if !symbol.MatchString(step) {
				t.Errorf("%s: %q: this step names no function: %s", architecture, walk, step)
			}
		}
	}
	changes := regexp.MustCompile(`(?m)^\| .*`).FindAllString(section(text, "Where to make a change"), -1)
	if len(changes) < 12 { // with the table's head
		t.Errorf("%s: %d changes are listed; at least ten should be", architecture, len(changes)-2)
	}
	for _, change := range changes[min(2, len(changes)):] {
		if !link.MatchString(change) {
			t.Errorf("%s: this change names no place: %s", architecture, change)
		}
	}
}

// section is a page's text under a heading of the second level.
func section(text, heading string) string {
	_, rest, _ := strings.Cut(text, "\n## "+heading+"\n")
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// located finds the file that declares name: file itself, else another one of its
// folder, else the only one there is. is is the name, as it is written there. why says
// that there is none.
func located(where map[string]map[string][]string, name, file string) (is, now, why string) {
	dir := path.Dir(file)
	if files := where[name][dir]; slices.Contains(files, file) {
		return name, file, ""
	} else if len(files) > 0 {
		return name, files[0], ""
	}
	var elsewhere []string
	for other, folders := range where {
		for _, files := range folders {
			if other == name || where[name] == nil && strings.EqualFold(other, name) {
				elsewhere = append(elsewhere, files...)
				is = other
			}
		}
	}
	slices.Sort(elsewhere)
	switch len(elsewhere) {
	case 1:
		return is, elsewhere[0], ""
	case 0:
		return "", "", fmt.Sprintf("%s is declared nowhere: was it renamed? Correct the page's text as well", name)
	}
	return "", "", fmt.Sprintf("%s is not declared in %s any more, but in each of %v: link to the right one", name, dir, elsewhere)
}

// declarations are the files that declare each name, by name and folder. A method
// is named by its type, as in Engine.Do.
func declarations(t *testing.T) map[string]map[string][]string {
	t.Helper()
	where := make(map[string]map[string][]string)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch name := filepath.Base(file); {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		rel = filepath.ToSlash(rel)
		for _, name := range declared(f) {
			if where[name] == nil {
				where[name] = make(map[string][]string)
			}
			where[name][path.Dir(rel)] = append(where[name][path.Dir(rel)], rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return where
}

// declared are the names that a file declares.
func declared(f *ast.File) []string {
	names := make(map[string]bool)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names[name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// A link follows its declaration, and one that leads nowhere is told.
func TestLocated(t *testing.T) {
	t.Parallel()
	where := map[string]map[string][]string{
		"judge": {"idem": {"idem/run.go"}},
		"moved": {"dynamo/stream": {"dynamo/stream/drain.go"}},
		"twice": {"a": {"a/a.go"}, "b": {"b/b.go"}},
	}
	for _, tc := range []struct{ name, file, is, now, why string }{
		{"judge", "idem/run.go", "judge", "idem/run.go", ""},
		{"judge", "idem/state.go", "judge", "idem/run.go", ""},
		{"moved", "dynamo/drain.go", "moved", "dynamo/stream/drain.go", ""},
		{"Moved", "dynamo/drain.go", "moved", "dynamo/stream/drain.go", ""},
		{"twice", "b/old.go", "twice", "b/b.go", ""},
		{"twice", "c/c.go", "", "", "each of [a/a.go b/b.go]"},
		{"gone", "idem/state.go", "", "", "declared nowhere"},
	} {
		is, now, why := located(where, tc.name, tc.file)
		if is != tc.is || now != tc.now || (why == "") != (tc.why == "") || !strings.Contains(why, tc.why) {
			t.Errorf("%s in %s: got %q in %q, %q", tc.name, tc.file, is, now, why)
		}
	}
}
