package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/proof/internal/harness"
)

// program prints what it computes, with a place for each operator.
const program = `package main

import (
	"errors"
	"fmt"
	"os"
)

const most = 3

type kind int

const (
	low kind = iota
	high
)

func kindOf(n int) kind {
	switch {
	case n > most:
		return high
	}
	return low
}

func word(k kind) string {
	switch k {
	case low:
		return "low"
	}
	return "high"
}

func check(n int) error {
	if n < 1 || n == 7 {
		return errors.New("bad")
	}
	return nil
}

func sum(ns ...int) (s int) {
	for _, n := range ns {
		s += n
	}
	return s
}

func even(n int) bool { return n%2 == 0 }

func main() {
	n := sum(1, 2, 3)
	if even(n) && n > 5 {
		fmt.Print("even ")
	} else {
		panic("odd")
	}
	fmt.Print(word(kindOf(3)), " ", word(kindOf(4)), " ", check(0), " ", check(1), " ", check(7))
	defer os.Stdout.Sync()
}
`

// mutantsOf are the mutants of a program in one file, and its text with all of them.
func mutantsOf(t *testing.T, text string) (*pkg, []byte) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p/main.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object), Defs: make(map[*ast.Ident]types.Object)}
	p := &pkg{dir: "p", name: "main"}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if p.types, err = conf.Check("p", fset, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	f := &finder{pkg: p, file: "p/main.go", text: []byte(text), fset: fset, info: info}
	ast.Walk(f, file)
	p.mutants = f.found
	return p, rewritten([]byte(text), f.edits)
}

// One build plays each mutant: without one, or with that of another package, the program is
// as it was, each operator has mutants, and each mutant does something else.
func TestEachOperatorChangesTheProgram(t *testing.T) {
	t.Parallel()
	p, text := mutantsOf(t, program)
	dir := t.TempDir()
	for name, content := range map[string][]byte{"main.go": text, "switch.go": switchOf(p), "go.mod": []byte("module p\n\ngo 1.26\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "p", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, text)
	}
	run := func(env ...string) string {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "p"))
		cmd.Env = env
		out, _ := cmd.CombinedOutput() // a panic is told there
		return string(out)
	}
	const want = "even low high bad <nil> bad"
	reached := filepath.Join(dir, "reached")
	for _, env := range []string{"", chosenEnv + "=other 1", chosenEnv + "=p 0", reachedEnv + "=" + reached} {
		if got := run(env); got != want {
			t.Errorf("%s: %s", env, got)
		}
	}
	seen, err := os.ReadFile(reached)
	if err != nil {
		t.Fatal(err)
	}
	// What this program doesn't show.
	same := []string{
		"defer os.Stdout.Sync()", "n > 5 to >=", "high to (high)+1", "main.go:48: constant changed: 2 to (2)+1", "always holds: even(n) && n > 5", "dropped: even(n)", "dropped: n > 5",
		"4 to (4)+1", "main.go:57: constant changed: 1 to (1)+1",
	}
	all := make(map[string]bool)
	for _, m := range p.mutants {
		all[m.op] = true
		if !strings.Contains("\n"+string(seen), "\np "+strconv.Itoa(m.number)+"\n") {
			t.Errorf("%v is not reached", m)
		}
		expected := slices.ContainsFunc(same, func(s string) bool { return strings.Contains(m.String(), s) })
		if got := run(chosenEnv + "=p " + strconv.Itoa(m.number)); (got == want) != expected {
			t.Errorf("%v: %s", m, got)
		}
	}
	for _, op := range []string{negated, never, always, operand, boundary, number, statement, noCase, noError} {
		if !all[op] {
			t.Errorf("no mutant: %s", op)
		}
	}
}

// Mutants that change nothing are found by the text of their line.
func TestEquivalentMutantsAreLeftOut(t *testing.T) {
	t.Parallel()
	p, _ := mutantsOf(t, program)
	listed := []*equivalent{{file: "p/main.go", source: "if even(n) && n > 5 {", op: boundary, change: "*", why: "six"}}
	todo, same, err := split([]*pkg{p}, listed)
	if err != nil || same != 1 || len(todo) != len(p.mutants)-1 {
		t.Errorf("%d of %d are left, %d are left out, %v", len(todo), len(p.mutants), same, err)
	}
	listed[0].source, listed[0].used = "if odd(n) {", false
	if _, _, err := split([]*pkg{p}, listed); err == nil {
		t.Error("a line that fits nothing is no error")
	}
}

// A seed draws the same mutants each time.
func TestDraw(t *testing.T) {
	t.Parallel()
	p, _ := mutantsOf(t, program)
	a, b, c := (&use{sample: 5, seed: "1"}).draw(p.mutants), (&use{sample: 5, seed: "1"}).draw(p.mutants), (&use{sample: 5, seed: "2"}).draw(p.mutants)
	names := func(ms []*mutant) (all []string) {
		for _, m := range ms {
			all = append(all, m.String())
		}
		return all
	}
	if diff := cmp.Diff(names(a), names(b)); diff != "" || len(a) != 5 || cmp.Equal(names(a), names(c)) {
		t.Errorf("%v, %v, %v", names(a), names(b), names(c))
	}
	if all := (&use{}).draw(p.mutants); len(all) != len(p.mutants) {
		t.Errorf("%d of %d", len(all), len(p.mutants))
	}
}

// The file of equivalent mutants fits the code, and the modules' mutants are found.
func TestEquivalentFileFits(t *testing.T) {
	t.Parallel()
	root, err := harness.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := products(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := equivalents(root)
	if err != nil {
		t.Fatal(err)
	}
	todo, _, err := split(all, listed)
	if err != nil {
		t.Error(err)
	}
	for _, p := range all {
		if len(p.mutants) > 0 && len(p.testers()) == 0 {
			t.Errorf("no tests play the mutants of %s", p.dir)
		}
	}
	if len(todo) < 10_000 {
		t.Errorf("%d mutants", len(todo))
	}
}
