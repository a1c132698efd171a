package archtest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Permissions map[string]string
		Steps       []struct {
			Uses, Run string
			With      map[string]string
		}
	}
}

// The workflow runs .ci/run and takes Go's version from go.mod; its actions are pinned by
// commit, and it may only read.
func TestWorkflowRunsCI(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(root + "/.github/workflows/ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range workflowProblems(t, string(raw)) {
		t.Error(problem)
	}
	for what, broken := range map[string]string{
		"a tag in place of a commit": regexp.MustCompile(`actions/setup-go@[0-9a-f]+`).ReplaceAllString(string(raw), "actions/setup-go@v5"),
		"another command":            strings.Replace(string(raw), "run: .ci/run", "run: make test", 1),
		"more rights":                strings.Replace(string(raw), "contents: read", "contents: write", 1),
		"a version of its own":       strings.Replace(string(raw), "go-version-file: go.mod", `go-version: "1.20"`, 1),
		"a command more":             strings.Replace(string(raw), "run: make vuln", "run: make test", 1),
	} {
		if len(workflowProblems(t, broken)) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}

func workflowProblems(t *testing.T, text string) (problems []string) {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		problems = append(problems, "the workflow may do more than read")
	}
	runs, pinned := 0, regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	for name, job := range w.Jobs {
		if job.Permissions != nil {
			problems = append(problems, name+" has permissions of its own")
		}
		for _, s := range job.Steps {
			switch {
			case s.Uses != "" && !pinned.MatchString(s.Uses):
				problems = append(problems, s.Uses+" is not pinned by a commit")
			case strings.HasPrefix(s.Uses, "actions/setup-go@") && s.With["go-version-file"] != "go.mod":
				problems = append(problems, "Go's version is not that of go.mod")
			case s.Run == ".ci/run":
				runs++
			case s.Run != "" && s.Run != "make vuln":
				problems = append(problems, s.Run+" is a check that .ci/run hasn't")
			}
		}
	}
	if runs != 1 {
		problems = append(problems, "it doesn't run .ci/run once")
	}
	return problems
}
