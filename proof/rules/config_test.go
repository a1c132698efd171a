package rules

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A function's client reads the environment only. The SDK's config, which also
// reads files and asks services, is for the tool that people call.
func TestOnlyTheCommandLinksTheConfigModule(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if slices.Contains(f[1:], "github.com/aws/aws-sdk-go-v2/config") {
			got = append(got, f[0])
		}
	}
	if want := []string{module + "cmd/samekey"}; !slices.Equal(got, want) {
		t.Errorf("%v link the SDK's config, want %v", got, want)
	}
}
