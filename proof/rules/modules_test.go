package rules

import (
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/proof/internal/harness"
)

// Make tidies, vets, lints and tests each module of its list.
func TestModulesAreListed(t *testing.T) {
	t.Parallel()
	var got []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "dist"):
			return filepath.SkipDir
		case d.Name() == "go.mod":
			dir, err := filepath.Rel(root, path.Dir(filepath.ToSlash(p)))
			if dir != "." {
				got = append(got, filepath.ToSlash(dir))
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := harness.MakeList(root, "MODULES")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the modules are %v, MODULES of the Makefile are %v", got, want)
	}
}

// OpenTelemetry is linked by programs that import module otel, and by no other.
func TestNothingHereLinksOpenTelemetry(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, module+"internal/trace") {
		t.Fatal("package internal/trace is not listed: something is wrong with this test")
	}
	for _, p := range packages {
		if strings.HasPrefix(p, "go.opentelemetry.io/") {
			t.Errorf("a package of this module links %s", p)
		}
	}
}
