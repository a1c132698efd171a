package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/proof/internal/harness"
)

func TestSnippets(t *testing.T) {
	t.Parallel()
	const condition = "const condition = `id = :id AND ver = :ver AND size(jobs) = :n`"
	for name, tc := range map[string]struct {
		code, in, where, old, new string
		want                      string // what the code has in the end
		err                       string // or a part of the error
	}{
		"layout and comments don't matter": {
			code: "func f(a int) {\n\tg(\n\t\ta, // the first\n\t\t1,\n\t)\n\treturn\n}", old: "g($a, 1); return", new: "return", want: "{\n\treturn\n\n\n\n\n}",
		},
		"a statement is removed": {code: "func f(a int) {\n\tg(a)\n}", old: "g($a)", new: "", want: "{\n\t\n}"},
		"what follows keeps its lines": {
			code: "func f(a int) {\n\tif g(\n\t\ta,\n\t) {\n\t\th()\n\t}\n}", old: "g($a)", new: "true", want: "\tif true {\n\n\n\t\th()",
		},
		"a line that begins a long string stays": {
			code: "func f(a int) { g(\n\ta); h(`\n`) }", old: "g($a)", new: "g()", want: "{ g(); h(`\n`) }",
		},
		"a statement is added":     {code: "func f(a int) {\n\tg(a)\n}", old: "g($a)", new: "g($a); g($a)", want: "g(a); g(a)"},
		"$x is another name now":   {code: "func f(b int) { g(b, 1) }", old: "g($a, 1)", new: "g(1, $a)", want: "g(1, b)"},
		"$x is the receiver":       {code: "type T struct{ a int }\nfunc (r *T) f() { g(r.a) }", in: "T.f", old: "$t.a", new: "$t", want: "g(r)"},
		"$x is a label":            {code: "func f() {\nagain:\n\tfor {\n\t\tcontinue again\n\t}\n}", old: "continue $l", new: "break $l", want: "break again"},
		"$x is a type's parameter": {code: "func f[V any]() { g[V, int]() }", old: "g[$t, int]", new: "g[int, $t]", want: "g[int, V]()"},
		"$x of a type switch":      {code: "func f(x any) {\n\tswitch v := x.(type) {\n\tcase int:\n\t\tg(v)\n\t}\n}", old: "g($v)", new: "_ = $v", want: "_ = v"},
		"where says what $x is": {
			code: "func f(a, b int) { g(a) }", where: "$a, $b int", old: "g($a)", new: "g($b)", want: "g(b)",
		},
		"where tells two places apart": {
			code: "func f(a, b int) { g(a); g(b) }", where: "$a, $b int", old: "g($b)", new: "", want: "{ g(a);  }",
		},
		"a string without its ends": {
			code: condition, in: "condition", old: `"… AND ver = :ver…"`, new: `"…"`, want: `condition = "id = :id AND size(jobs) = :n"`,
		},
		"a string without its begin": {
			code: condition, in: "condition", old: `"… = :n"`, new: `"… >= :n"`, want: `"id = :id AND ver = :ver AND size(jobs) >= :n"`,
		},
		"quotes don't matter": {code: "const c = `a\"`", in: "c", old: `"a\""`, new: `"b"`, want: `const c = "b"`},
		"a literal of a variable": {
			code: "var v = map[string]int{\n\t\"a\": 1,\n\t\"b\": 2,\n}", in: "v", old: `"b": 2`, new: `"b": 3`, want: `"b": 3,`,
		},
		"a field is no $x":                       {code: "type T struct{ a int }\nfunc f(t T) { g(t.a) }", old: "g($t.$a)", new: "g()", err: "not there"},
		"a key of a literal is no $x":            {code: "type T struct{ a int }\nfunc f(a int) { g(T{a: a}) }", old: "T{$a: $a}", new: "T{}", err: "not there"},
		"a variable is not literal":              {code: "func f(a int) { g(a) }", old: "g(a)", new: "g()", err: `has "a" instead of "a" after "g("`},
		"$x is the same each time":               {code: "func f(a, b int) { g(a, b) }", old: "g($a, $a)", new: "g()", err: "not there"},
		"$x is one variable, whatever its name":  {code: "func f(a int) { g(a); { a := 1; g(a) } }", old: "g($a); { $a := 1; g($a) }", new: "g()", err: "not there"},
		"two variables with one name are two $x": {code: "func f(a int) { g(a); { a := 1; g(a) } }", old: "g($a); { $a2 := 1; g($a2) }", new: "g($a)", want: "{ g(a) }"},
		"twice":                                  {code: "func f(a int) { g(a); g(a) }", old: "g($a)", new: "", err: "2 times"},
		"where is there twice":                   {code: "func f(a int) { g(a); g(a) }", where: "g($a)", old: "g($a); g($a)", new: "", err: "where"},
		"never":                                  {code: "func f(a int) { g(a) }", old: "h($a)", new: "", err: "0 times"},
		"no such declaration":                    {code: "func f(a int) { g(a) }", in: "T.f", old: "g($a)", new: "", err: `0 declarations with the name "T.f"`},
		"nothing changes":                        {code: "func f(a int) { g(a) }", old: "g($a)", new: "g($a)", err: "nothing is changed"},
		"new has a $x of its own":                {code: "func f(a int) { g(a) }", old: "g($a)", new: "g($b)", err: "what $b is"},
		"a snippet that is no Go":                {code: "func f(a int) { g(a) }", old: `g("`, new: "", err: "not Go"},
		"an empty snippet":                       {code: "func f(a int) { g(a) }", old: "", new: "g()", err: "empty"},
		"a replacement that isn't":               {code: "func f(a int) { g(a) }", old: "g($a)", new: `g("`, err: "not Go"},
		"a method of a generic one":              {code: "type T[V any] struct{}\nfunc (t *T[V]) f() { g(t) }", in: "T.f", old: "g($t)", new: "", want: "{  }"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parse(map[string][]byte{"p.go": []byte("package p\n\n" + tc.code + "\n")})
			if err != nil {
				t.Fatal(err)
			}
			if tc.in == "" {
				tc.in = "f"
			}
			file, got, err := s.mutated(mutant{in: "some/p." + tc.in, where: tc.where, old: tc.old, new: tc.new})
			switch {
			case tc.err != "":
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q in it", err, tc.err)
				}
			case err != nil || file != "some/p/p.go" || !strings.Contains(string(got), tc.want):
				t.Errorf("%s, %v\n%s\nwant %s", file, err, got, tc.want)
			}
		})
	}
}

// A mistake in the table is told with the line's name.
func TestLineIsNamed(t *testing.T) {
	t.Parallel()
	r := sample(t)
	for old, want := range map[string]string{"return": "there 2 times", "return +$n": "not there"} {
		err := check(r.root, []mutant{{rule: "Rule", what: "what it does", in: "p.Abs", old: old, run: "^TestAbs$"}})
		if err == nil || !strings.HasPrefix(err.Error(), "Rule, what it does: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", old, err)
		}
	}
}

// Whoever renames parameters, variables and labels need not touch the table: each
// line fits as before, and what it puts in their place speaks of the new names.
func TestRenamedLocalsKeepTheTable(t *testing.T) {
	t.Parallel()
	for dir, ms := range byFolder() {
		s := loaded(t, dir)
		text := make(map[string][]byte)
		for file := range s.text {
			text[file] = renamed(s, file)
		}
		now, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		undefined := checker(t, text)
		for _, m := range ms {
			_, before, err := s.mutated(m)
			if err != nil {
				continue // TestTableFitsTheCode tells
			}
			file, after, err := now.mutated(m)
			if err != nil {
				t.Errorf("%s, %s: %v", m.rule, m.what, err)
				continue
			}
			if len(after) < len(before) {
				t.Errorf("%s, %s: another place is changed", m.rule, m.what)
			}
			_, name := m.place()
			for _, missing := range undefined(file[len(dir)+1:], after, name) {
				t.Errorf("%s, %s: %s is undefined with other names in the function; does its replacement lack a $?", m.rule, m.what, missing)
			}
		}
	}
}

// Whoever moves functions to another file need not either.
func TestMovedFunctionsKeepTheTable(t *testing.T) {
	t.Parallel()
	for dir, ms := range byFolder() {
		s := loaded(t, dir)
		text := make(map[string][]byte)
		var moved []byte
		for file, b := range s.text {
			f, fset := parsed(t, file, b)
			if moved == nil {
				moved = []byte("package " + f.Name.Name + "\n")
			}
			var rest []byte
			at := 0
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					from, to := fset.Position(d.Pos()).Offset, fset.Position(d.End()).Offset
					rest = append(rest, b[at:from]...)
					moved = slices.Concat(moved, b[from:to], []byte("\n"))
					at = to
				}
			}
			text[file] = append(rest, b[at:]...)
		}
		text["moved.go"] = moved
		now, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		functions := 0
		for _, m := range ms {
			was, before, err := s.mutated(m)
			if err != nil {
				continue
			}
			file, after, err := now.mutated(m)
			switch {
			case err != nil:
				t.Errorf("%s, %s: %v", m.rule, m.what, err)
			case strings.HasSuffix(file, "/moved.go"):
				functions++
				if got, want := len(after)-len(moved), len(before)-len(s.text[was[len(dir)+1:]]); got != want {
					t.Errorf("%s, %s: %d bytes more, want %d", m.rule, m.what, got, want)
				}
			}
		}
		if functions == 0 {
			t.Errorf("%s: no line is about a function that was moved", dir)
		}
	}
}

// byFolder is the table by the packages that it changes.
func byFolder() map[string][]mutant {
	all := make(map[string][]mutant)
	for _, m := range table() {
		all[m.dir()] = append(all[m.dir()], m)
	}
	return all
}

func loaded(t *testing.T, dir string) *source {
	t.Helper()
	root, err := harness.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := load(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parsed(t *testing.T, name string, text []byte) (*ast.File, *token.FileSet) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f, fset
}

// renamed is a file with another name for each identifier that belongs to a
// declaration, and for no two the same one.
func renamed(s *source, file string) []byte {
	all := make(map[int]word)
	for _, ds := range s.decls {
		for _, d := range ds {
			for _, w := range d.words {
				if d.file == file && w.local != 0 {
					all[w.from] = w
				}
			}
		}
	}
	var out bytes.Buffer
	at := 0
	for _, from := range slices.Sorted(maps.Keys(all)) {
		w := all[from]
		out.Write(s.text[file][at:w.from])
		fmt.Fprintf(&out, "%sRenamed%d", w.lit, w.local)
		at = w.to
	}
	out.Write(s.text[file][at:])
	return out.Bytes()
}

// checker returns a function that says what is undefined in a declaration of a
// changed file, and wasn't before. The bodies of all other functions are left out,
// so that it is fast.
func checker(t *testing.T, text map[string][]byte) func(file string, changed []byte, name string) []string {
	t.Helper()
	fset := token.NewFileSet()
	parse := func(file string, text []byte) *ast.File {
		f, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		return f
	}
	undefined := func(files map[string]*ast.File) (missing []string) {
		conf := types.Config{Error: func(err error) {
			if _, name, ok := strings.Cut(err.Error(), "undefined: "); ok {
				missing = append(missing, name)
			}
		}}
		_, _ = conf.Check("p", fset, slices.Collect(maps.Values(files)), nil)
		return missing
	}
	files := make(map[string]*ast.File)
	for file, b := range text {
		files[file] = parse(file, b)
	}
	before := undefined(files) // imports, which aren't read, whose name isn't the end of their path
	for _, f := range files {
		bare(f, "")
	}
	return func(file string, changed []byte, name string) []string {
		all := maps.Clone(files)
		all[file] = parse(file, changed)
		bare(all[file], name)
		return slices.DeleteFunc(undefined(all), func(missing string) bool { return slices.Contains(before, missing) })
	}
}
