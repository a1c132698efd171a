package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Each of these packages is paid for at every cold start, by its own initialisation
// or by what is made of it there: a single regular expression took 0.7 ms.
func TestFunctionsLinkNothingSlowToStart(t *testing.T) {
	t.Parallel()
	slow := []string{"encoding/gob", "expvar", "html/template", "net/rpc", "regexp", "text/template"}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags=lambda.norpc", "-f", `{{.ImportPath}} {{join .Imports " "}}`,
		"./cmd/samekey-worker", "./examples/hello", "./examples/rides/cmd/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	ours := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
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
