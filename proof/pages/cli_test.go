package pages_test

import (
	"os/exec"
	"testing"
)

// commands are the commands of samekey with their flags and exit codes, as the
// program's tree has them.
func commands(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/samekey", "reference")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("samekey reference: %v", err)
	}
	return string(out)
}
