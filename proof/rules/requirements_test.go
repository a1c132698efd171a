package rules

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/proof/internal/harness"
)

const (
	root = "../.."
	page = root + "/proof/requirements.md"
	// conformance and engine have the names of the cases that TestMemoryStore and
	// TestConformance run.
	conformance, engine = "idem/idemtest", "internal/testkit/enginetest"
)

// proof/requirements.md has a row for each number, and names nothing that isn't
// there: a test that is renamed or removed takes its row along.
func TestRequirementsNameTheirTests(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("`([^`]+)`")
	got := make(map[string]bool)
	tests := make(tests)
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		number := strings.TrimSpace(cells[0])
		if len(cells) < 3 || number == "" || strings.HasPrefix(number, "-") {
			continue
		}
		if got[number] {
			t.Errorf("%s has two rows", number)
		}
		got[number] = true
		if len(cells) == 4 {
			places := code.FindAllStringSubmatch(cells[2], -1)
			if len(places) == 0 && !strings.HasPrefix(strings.TrimSpace(cells[2]), notBuilt) {
				t.Errorf("%s is built nowhere", number)
			}
			for _, place := range places {
				if err := isBuilt(place[1]); err != nil {
					t.Errorf("%s is built in %s: %v", number, place[1], err)
				}
			}
		}
		held := strings.TrimSpace(cells[len(cells)-1])
		if strings.HasPrefix(held, "not yet: ") {
			continue
		}
		names := code.FindAllStringSubmatch(held, -1)
		if len(names) == 0 {
			t.Errorf("%s is held by nothing", number)
		}
		for _, name := range names {
			if err := tests.find(name[1]); err != nil {
				t.Errorf("%s is held by %s: %v", number, name[1], err)
			}
		}
	}
	for kind, last := range map[string]int{"R": 154, "B": 34, "A": 34, "M": 192} {
		for n := 1; n <= last; n++ {
			if number := kind + strconv.Itoa(n); !got[number] {
				t.Errorf("%s has no row", number)
			}
		}
	}
	if len(got) != 154+34+34+192+15 { // and R167, R168, R170, R172, R190 to R196, R201 to R204
		t.Errorf("%d rows", len(got))
	}
}

// proofs are rows about a proof itself, which make test doesn't run.
var proofs = []string{"M64", "M65", "M113", "M157", "M158", "M159"}

// Each requirement has a test that make test runs: what repeats rules by force is left
// to make samples and make prove, and holds no rule alone.
func TestMakeTestHoldsEachRequirement(t *testing.T) {
	t.Parallel()
	force, err := harness.MakeList(root, "FORCE")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	byForce := regexp.MustCompile("`proof/(?:" + strings.Join(force, "|") + ")[.`/]")
	code := regexp.MustCompile("`[^`]+`")
	var alone []string
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		tests := code.FindAllString(cells[len(cells)-1], -1)
		if len(cells) >= 3 && len(tests) > 0 && !slices.ContainsFunc(tests, func(test string) bool { return !byForce.MatchString(test) }) {
			alone = append(alone, strings.TrimSpace(cells[0]))
		}
	}
	if diff := cmp.Diff(proofs, alone); diff != "" {
		t.Errorf("rows that only proofs by force hold (-want +got):\n%s", diff)
	}
}

// Each test that make test leaves to make samples is one of the packages where make
// samples looks for it, and no requirement rests on it.
func TestLongTestsAreThere(t *testing.T) {
	t.Parallel()
	rows, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	list := func(name string) []string {
		t.Helper()
		words, err := harness.MakeList(root, name)
		if err != nil {
			t.Fatal(err)
		}
		return words
	}
	var declared []string
	for _, dir := range append(list("LONG_PKGS"), "proof/bench", "proof/memory", "proof/signals") {
		files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, firsts(regexp.MustCompile(`(?m)^func (Test\w+)\(`), string(code))...)
		}
	}
	for _, test := range list("LONG") {
		if !slices.Contains(declared, test) {
			t.Errorf("no package of LONG_PKGS has the test %s: nobody runs it", test)
		}
		if strings.Contains(string(rows), test) {
			t.Errorf("a requirement rests on %s, which make test doesn't run", test)
		}
	}
}

// notBuilt begins a row of what isn't there, before the reason.
const notBuilt = "not built: "

// isBuilt finds a place such as "idem/key.go: parseKey, Engine.Acts": a Go file
// declares each name. Other files, and folders, are places without names.
func isBuilt(place string) error {
	path, names, _ := strings.Cut(place, ": ")
	file := filepath.Join(root, filepath.FromSlash(path))
	if _, err := os.Stat(file); err != nil {
		return err
	}
	if strings.HasSuffix(path, ".go") == (names == "") {
		return errors.New("a Go file, and nothing else, has the names of its declarations")
	}
	if names == "" {
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	declared := declarations(parsed)
	for name := range strings.SplitSeq(names, ", ") {
		if !declared[name] {
			err = errors.Join(err, fmt.Errorf("it doesn't declare %s", name))
		}
	}
	return err
}

// declarations are the names at the top of a file; Type.Method for methods.
func declarations(f *ast.File) map[string]bool {
	names := make(map[string]bool)
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			if decl.Recv != nil {
				of := decl.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				switch generic := of.(type) {
				case *ast.IndexExpr:
					of = generic.X
				case *ast.IndexListExpr:
					of = generic.X
				}
				name = nameOf(of) + "." + name
			}
			names[name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// A place that isn't there, or names what its file doesn't declare, is none.
func TestPlacesAreDeclared(t *testing.T) {
	t.Parallel()
	for place, ok := range map[string]bool{
		"idem/key.go: parseKey": true, "idem/modes.go: KeyMode, InFlightMode": true, "idem/presets.go: Stripe": true, "idem/fingerprint.go: neverFingerprinted": true,
		"lambda/wrap.go: Handler.again": true, "deploy/samekey.yaml": true, "proof/killsweep": true,
		"idem/key.go": false, "idem/key.go: Acts": false, "idem/key.go: parseKey, Stripe": false, "idem/none.go: parseKey": false, "docs/operate/item.md: parseKey": false,
	} {
		if err := isBuilt(place); (err == nil) != ok {
			t.Errorf("%s: %v, want it to be there: %t", place, err, ok)
		}
	}
}

// tests are the test functions of each folder, with the texts that can be names
// of subtests.
type tests map[string]folder

type folder struct {
	functions map[string]bool
	texts     []string
}

// find looks for a name such as lambda.TestBadInput/08 any case.
func (ts tests) find(name string) error {
	dir, test, _ := strings.Cut(name, ".")
	function, sub, isSub := strings.Cut(test, "/")
	f, err := ts.in(dir)
	if err != nil {
		return err
	}
	if !f.functions[function] {
		return errors.New("there is no such test")
	}
	if function == "TestConformance" || function == "TestMemoryStore" {
		var texts []string
		for _, suite := range []string{conformance, engine} {
			if f, err = ts.in(suite); err != nil {
				return err
			}
			texts = append(texts, f.texts...)
		}
		f.texts = texts
	}
	if isSub && !slices.ContainsFunc(f.texts, func(text string) bool { return strings.HasPrefix(text, sub) }) {
		return errors.New("there is no such subtest")
	}
	return nil
}

// in parses the Go files of a folder.
func (ts tests) in(dir string) (folder, error) {
	if f, ok := ts[dir]; ok {
		return f, nil
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
	if err != nil {
		return folder{}, err
	}
	f := folder{functions: make(map[string]bool)}
	for _, path := range files {
		isTest := strings.HasSuffix(path, "_test.go")
		if !isTest && dir != conformance && dir != engine {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return folder{}, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if isTest && n.Recv == nil && isTestName(n.Name.Name) {
					f.functions[n.Name.Name] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
					f.texts = append(f.texts, text)
				}
			}
			return true
		})
	}
	ts[dir] = f
	return f, nil
}

func isTestName(name string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Example"} {
		if strings.HasPrefix(name, prefix) && name != "TestMain" {
			return true
		}
	}
	return false
}
