package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each of these packages is paid for at every cold start, by its own initialisation
// or by what is made of it there: a single regular expression took 0.7 ms.
func TestFunctionsLinkNothingSlowToStart(t *testing.T) {
	t.Parallel()
	slow := []string{"encoding/gob", "expvar", "html/template", "net/rpc", "regexp", "text/template"}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags="+functionTags(t), "-f", `{{.ImportPath}} {{join .Imports " "}}`,
		"./cmd/samekey-worker", "./examples/hello", "./examples/rides/cmd/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	ours := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if strings.HasSuffix(f[0], "/http2/hpack") {
			t.Errorf("functions link HTTP/2, 0.39 MB: the Makefile's tags must leave it out (nethttpomithttp2)")
		}
		if !strings.HasPrefix(f[0], module) {
			continue
		}
		ours++
		for _, p := range slow {
			if slices.Contains(f[1:], p) {
				t.Errorf("%s imports %s, and functions link it", f[0], p)
			}
		}
	}
	if ours < 10 {
		t.Errorf("%d packages of the module: the test looks at the wrong programs", ours)
	}
}

// functionTags returns the build tags of the functions.
func functionTags(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^BUILD .* -tags=(\S+)$`).FindSubmatch(b)
	if m == nil {
		t.Fatal("the Makefile's BUILD has no tags")
	}
	return string(m[1])
}
