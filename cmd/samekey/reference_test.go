package main

import (
	"io"
	"strings"
	"testing"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor"
	"github.com/samekey/samekey/internal/testkit/pagetest"
)

// The command prints the parts of the pages that describe it.
func TestPagesAboutTheCommand(t *testing.T) {
	t.Parallel()
	pagetest.Blocks(t, "../..", *update, map[string]func(*testing.T) string{
		"check-checks": checks, "check-rules": rules, "check-report": wrongServer,
		"commands": printed,
		"doctor":   func(*testing.T) string { return doctor.Page() },
	})
}

// printed returns what the program prints about its commands.
func printed(t *testing.T) string {
	t.Helper()
	var stdout strings.Builder
	code := run(t.Context(), environment{stdout: &stdout, stderr: io.Discard, getenv: func(string) string { return "" }}, []string{"reference"})
	if code != 0 || stdout.Len() < 1000 {
		t.Fatalf("exit code %d: %s", code, &stdout)
	}
	return stdout.String()
}

// The help separates the commands for developers from those for operators.
func TestHelpByPurpose(t *testing.T) {
	t.Parallel()
	_, out, _ := call(t, nil, "--help")
	_, rest, grouped := strings.Cut(out, "Build and test:\n")
	_, rest, both := strings.Cut(rest, "Operate:\n")
	_, others, _ := strings.Cut(rest, "Additional Commands:\n")
	if others, _, _ = strings.Cut(others, "\n\n"); !grouped || !both || strings.Count(others, "\n") != 1 { // completion and help
		t.Errorf("got commands without a purpose, or no purposes:\n%s", out)
	}
}

// docs/operate/doctor.md names each permission that an examination needs.
func TestDoctorsRights(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(pagetest.Pages(t, "../..")["docs/operate/doctor.md"], "\n## Permissions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, c := range doctor.All() {
		for _, s := range c.Needs {
			service, action, is := strings.Cut(string(s), ":")
			if is && !strings.Contains(section, "`"+action+"`") && !strings.Contains(section, "`"+service+":"+action+"`") {
				t.Errorf("%s needs %s, which the section Permissions doesn't name", c.ID, s)
			}
		}
	}
}
