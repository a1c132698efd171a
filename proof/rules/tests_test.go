package rules

import (
	"errors"
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

	"github.com/samekey/samekey/proof/internal/harness"
)

const (
	// conformance and engine have the names of the cases that TestMemoryStore and
	// TestConformance run.
	conformance, engine = "idem/idemtest", "internal/testkit/enginetest"
)

// Each test that make test leaves to make samples is one of the packages where make
// samples looks for it.
func TestLongTestsAreThere(t *testing.T) {
	t.Parallel()
	list := func(name string) []string {
		t.Helper()
		words, err := harness.MakeList(root, name)
		if err != nil {
			t.Fatal(err)
		}
		return words
	}
	var declared []string
	for _, dir := range append(list("LONG_PKGS"), "cmd/samekey", "proof/memory", "proof/prove", "proof/rules", "proof/signals") {
		files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(code), -1) {
				declared = append(declared, m[1])
			}
		}
	}
	for _, test := range list("LONG") {
		if !slices.Contains(declared, test) {
			t.Errorf("no package of LONG_PKGS has the test %s: nobody runs it", test)
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
