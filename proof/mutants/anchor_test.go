package main

import (
	"strings"
	"testing"
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
