package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// The page of the commands is what the program says of them, with their flags, defaults and
// exit codes. go test -C proof ./pages -update writes it.
func TestCommandsOnTheirPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/use/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder // of a machine with defaults of its own
	code := run(t.Context(), environment{stdout: &stdout, stderr: io.Discard, terminal: true, getenv: func(string) string { return "7" }}, []string{"reference"})
	out := stdout.String()
	if code != 0 || len(out) < 1000 || !strings.Contains(string(page), "<!-- generated commands -->\n"+out+"<!-- end commands -->") {
		t.Errorf("exit code %d; the page has other commands than the program:\n%s", code, out)
	}
}

// The help shows which commands a developer needs, and which an operator does.
func TestHelpByPurpose(t *testing.T) {
	t.Parallel()
	_, out, _ := call(t, nil, "--help")
	build, rest, ok := strings.Cut(out, "Operate:\n")
	operate, _, _ := strings.Cut(rest, "\n\n")
	if _, build, _ = strings.Cut(build, "Build and test:\n"); !ok {
		t.Fatalf("no groups:\n%s", out)
	}
	for group, names := range map[string]string{
		build:   "check init local prove stack vet",
		operate: "cancel doctor erase forget get list names redrive release resend retry settle stats sweep table tail ui",
	} {
		var is []string
		for line := range strings.Lines(strings.TrimSpace(group)) {
			is = append(is, strings.Fields(line)[0])
		}
		if got := strings.Join(is, " "); got != names {
			t.Errorf("the commands %s, not %s", got, names)
		}
	}
}
