package client_test

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashingClient) != "" {
		runCrashingClient()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestImportsStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		for _, i := range parsed.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if first, _, _ := strings.Cut(path, "/"); err != nil || strings.Contains(first, ".") {
				t.Errorf("%s imports %s", f.Name(), i.Path.Value)
			}
		}
	}
	if seen < 10 {
		t.Errorf("looked at %d files only", seen)
	}
}
