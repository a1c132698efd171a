package vet

import (
	"fmt"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	_ "github.com/stripe/stripe-go/v85" // the fixtures import it, which go mod tidy doesn't see
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/samekey/samekey/cmd/samekey/internal/vet/lock"
)

// every runs all rules in one pass: a handler without a finding passes every rule, and the SDK
// is loaded once. For a package with a lock file, every also reports the handlers and engines.
var every = &analysis.Analyzer{
	Name: "every", Doc: "run all rules", Requires: []*analysis.Analyzer{finder}, ResultType: Program.ResultType,
	Run: func(pass *analysis.Pass) (any, error) {
		for _, a := range Analyzers() {
			if _, err := a.Run(pass); err != nil {
				return nil, err
			}
		}
		if path.Base(pass.Pkg.Path()) == "lookups" {
			if _, err := Hints.Run(pass); err != nil {
				return nil, err
			}
		}
		if lockFile(pass.Pkg.Path()) == nil {
			return lock.Program{}, nil
		}
		program, err := Program.Run(pass)
		reportProgram(pass, program.(lock.Program))
		return program, err
	},
}

// lockFile returns the lock file of a fixture; nil if there is none.
func lockFile(pkg string) *lock.File {
	f, err := lock.Read(filepath.Join("testdata", path.Base(pkg), "samekey.lock"))
	if err != nil || f.Packages == nil {
		return nil
	}
	return f
}

// reportProgram reports the engines of a package, and its handlers: each
// phase with the phases that may run before it.
func reportProgram(pass *analysis.Pass, program lock.Program) {
	report := func(at token.Position, text string) {
		for _, f := range pass.Files {
			if f := pass.Fset.File(f.Pos()); f.Name() == at.Filename {
				pass.Reportf(f.Pos(at.Offset), "%s", text)
			}
		}
	}
	for _, h := range program.Handlers {
		text := "handler " + h.Name
		for j, p := range h.Phases {
			text += ", " + p.Name
			for i, before := range h.Phases {
				if h.Before(i, j) {
					text += " < " + before.Name
				}
			}
		}
		report(h.Pos, text)
	}
	for i, e := range program.Engines {
		report(e.Pos, fmt.Sprintf("engine %d %s", i, e.Name))
	}
}

// The rules find each planted mistake, and nothing else. The test reads the fixtures'
// imports from the compiler's export data: analysistest would type-check whole SDKs.
func TestPlantedMistakes(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range folders {
		folders[i] = "./" + f
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedExportFile |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
	}, folders...)
	if err != nil || packages.PrintErrors(pkgs) > 0 {
		t.Fatal(err)
	}
	results, err := checker.Analyze([]*analysis.Analyzer{every}, pkgs, &checker.Options{SanityCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, res := range results.Roots {
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		compareWithComments(t, res)
		for _, d := range res.Diagnostics {
			found[d.Category] = true
		}
		if want := lockFile(res.Package.PkgPath); want != nil {
			got := new(lock.File).Updated(res.Result.(lock.Program), nil, nil)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the lock file of %s (-want +got):\n%s", res.Package, diff)
			}
		}
	}
	for _, a := range Analyzers() {
		if a != ignores && !found[a.Name] {
			t.Errorf("no fixture has a mistake for the rule %s", a.Name)
		}
	}
}

// wanted matches a comment as in analysistest: the findings on its line,
// or on the line that is the given number of lines below.
var wanted = regexp.MustCompile("// want (?:\\+(\\d+) )?(`.*`)$")

func compareWithComments(t *testing.T, res *checker.Action) {
	place := func(pos token.Pos, below int) string {
		p := res.Package.Fset.Position(pos)
		return fmt.Sprintf("%s:%d", p.Filename, p.Line+below)
	}
	want := make(map[string][]string)
	for _, f := range res.Package.Syntax {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if m := wanted.FindStringSubmatch(c.Text); m != nil {
					below, _ := strconv.Atoi(m[1])
					want[place(c.Pos(), below)] = strings.Split(strings.Trim(m[2], "`"), "` `")
				}
			}
		}
	}
	for _, d := range res.Diagnostics {
		at := place(d.Pos, 0)
		i := slices.IndexFunc(want[at], func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(d.Message) })
		if i < 0 {
			t.Errorf("%s: found, and not wanted: %s", at, d.Message)
			continue
		}
		want[at] = slices.Delete(want[at], i, i+1)
	}
	for at, patterns := range want {
		if len(patterns) > 0 {
			t.Errorf("%s: wanted, and not found: %q", at, patterns)
		}
	}
}

// The URL of each rule leads to a section of the page.
func TestRulesAreExplained(t *testing.T) {
	t.Parallel()
	if err := analysis.Validate(Analyzers()); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile("../../../../docs/use/vet.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Analyzers() {
		if a.URL != page+a.Name || !strings.Contains(string(text), "\n## "+a.Name+"\n") {
			t.Errorf("%s leads to %s, and docs/use/vet.md has no such part", a.Name, a.URL)
		}
	}
}
