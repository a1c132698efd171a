package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/samekey/samekey/proof/internal/harness"
)

// Each bug fits the code as it is. That the changed code compiles is shown when it is planted.
func TestBugsFit(t *testing.T) {
	t.Parallel()
	root, err := harness.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bugs() {
		dir := t.TempDir()
		if _, err := b.plant(root, dir); err != nil {
			t.Errorf("%s: %s: %v", b.layer, b.what, err)
			continue
		}
		changed, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(changed) != len(b.edits) {
			t.Fatalf("%s: %s: got the files %q, %v, want %d", b.layer, b.what, changed, err, len(b.edits))
		}
		for _, file := range changed {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %s: %v", b.layer, b.what, err)
			}
		}
	}
}
