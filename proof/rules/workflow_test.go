package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Actions are pinned by commit, and workflows may only read.
func TestWorkflowsArePinned(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d workflows, %v", len(files), err)
	}
	uses, pinned := regexp.MustCompile(`(?m)\buses: (\S+)`), regexp.MustCompile(`@[0-9a-f]{40}$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: got %s, want a commit", file, m[1])
			}
		}
		if !strings.Contains(string(text), "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: got other permissions, want contents: read at the top", file)
		}
	}
}
