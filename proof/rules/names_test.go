package rules

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exported returns the exported top-level names of a package, and for each the
// exported names that its own declaration mentions: types of fields, parameters and
// results.
func exported(t *testing.T, pkg string) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pkg, len(files), err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name
				if d.Recv != nil { // a method belongs to its type
					if !name.IsExported() {
						continue
					}
					recv := d.Recv.List[0].Type
					if star, ok := recv.(*ast.StarExpr); ok {
						recv = star.X
					}
					if index, ok := recv.(*ast.IndexExpr); ok {
						recv = index.X
					}
					name, _ = recv.(*ast.Ident)
				}
				add(all, name, d.Type)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(all, s.Name, s.Type)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							add(all, name, s.Type)
						}
					}
				}
			}
		}
	}
	return all
}

// add notes an exported name, and what its declaration shows of exported names.
func add(all map[string][]string, name *ast.Ident, decl ast.Node) {
	if name == nil || !name.IsExported() {
		return
	}
	all[name.Name] = append(all[name.Name], "")
	if decl == nil {
		return
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if len(n.Names) > 0 && !slices.ContainsFunc(n.Names, (*ast.Ident).IsExported) && isStructField(decl, n) {
				return false
			}
		case *ast.Ident:
			if n.IsExported() && n.Name != name.Name {
				all[name.Name] = append(all[name.Name], n.Name)
			}
		}
		return true
	})
}

// isStructField reports whether n is a field of the struct that decl declares; the
// names of parameters don't matter.
func isStructField(decl ast.Node, n *ast.Field) bool {
	s, ok := decl.(*ast.StructType)
	return ok && slices.Contains(s.Fields.List, n)
}

// Every name of package idem is used by an application, an example, a store, an
// adapter or a page, or belongs to the declaration of a name that is.
func TestNamesOfIdemAreUsed(t *testing.T) {
	t.Parallel()
	names := exported(t, "idem")
	used := make(map[string]bool)
	var use func(string)
	use = func(name string) {
		mentioned, ours := names[name]
		if !ours || used[name] {
			return
		}
		used[name] = true
		for _, other := range mentioned {
			use(other)
		}
	}
	// Errors that a function's comment says it returns, and constants that an option's
	// comment says it is by default.
	returned := regexp.MustCompile(`//.*\[(Err[A-Z]\w*)\]|//.*Default: \[?(Default[A-Z]\w*)`)
	files, err := filepath.Glob(filepath.Join(root, "idem", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	headers := make(map[string]string) // constants by their value, which pages write out
	header := regexp.MustCompile(`(?m)^\s*(?:const )?([A-Z]\w*Header) += "(.+)"`)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range returned.FindAllSubmatch(text, -1) {
			use(string(m[1]) + string(m[2]))
		}
		for _, m := range header.FindAllSubmatch(text, -1) {
			headers[string(m[2])] = string(m[1])
		}
	}
	mention := regexp.MustCompile(`\bidem\.([A-Z]\w*)`)
	quoted := regexp.MustCompile("`(?:idem\\.)?([A-Z]\\w*)[^`]*`") // on a page
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() && (d.Name() == ".git" || rel == "docs/inside/decisions" || rel == "internal" || rel == "proof") {
			return filepath.SkipDir
		}
		example := strings.HasSuffix(rel, "_test.go") && strings.Contains(filepath.Base(rel), "example")
		reads := strings.HasSuffix(rel, ".md") && rel != "CHANGELOG.md" ||
			strings.HasSuffix(rel, ".go") && (!strings.HasSuffix(rel, "_test.go") || example)
		if !reads || d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range mention.FindAllSubmatch(text, -1) {
			use(string(m[1]))
		}
		if strings.HasSuffix(rel, ".md") {
			for value, name := range headers {
				if bytes.Contains(text, []byte("`"+value)) {
					use(name)
				}
			}
			for _, m := range quoted.FindAllSubmatch(text, -1) {
				use(string(m[1]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !used[name] {
			t.Errorf("idem.%s is used by nobody", name)
		}
	}
}
