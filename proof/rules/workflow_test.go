package rules

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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

// CI takes the README's two commands from the README, to the letter, and runs them.
func TestReadmesCommandsAreRun(t *testing.T) {
	t.Parallel()
	for file, line := range map[string]string{
		".ci/run":    ".ci/readme\n",
		".ci/readme": "internal/tools/readme.sh \"Two commands\" | while read -r command; do\n\tprintf '$ %s\\n' \"$command\"\n\tbash -c \"$command\" </dev/null\ndone\n",
	} {
		raw, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains("\n"+string(raw), "\n"+line) {
			t.Errorf("%s doesn't have the lines %q", file, line)
		}
	}
	script, err := os.ReadFile(filepath.Join(root, "internal", "tools", "readme.sh"))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "## Two commands\n")
	_, block, _ := strings.Cut(section, "```")
	_, block, _ = strings.Cut(block, "\n")
	block, _, _ = strings.Cut(block, "```")
	var want strings.Builder
	for line := range strings.Lines(block) {
		command, _, _ := strings.Cut(line, " #")
		if command = strings.TrimSpace(command); command != "" {
			want.WriteString(command + "\n")
		}
	}
	if strings.Count(want.String(), "\n") != 2 {
		t.Errorf("the README's commands are %q, want two", want.String())
	}
	for name, tc := range map[string]struct{ readme, want string }{
		"the README":       {string(readme), want.String()},
		"comments":         {"## Two commands\n\n```sh\nmake demo   # a story\n\nmake test\n```\n```\nrm -rf x\n```\n", "make demo\nmake test\n"},
		"another section":  {"## One\n```\nmake one\n```\n## Two commands\n```\nmake two\n```\n## Three\n```\nmake three\n```\n", "make two\n"},
		"no such section":  {"## One\n```\nmake one\n```\n", ""},
		"an empty section": {"## Two commands\n\ntext\n\n## Three\n```\nmake three\n```\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "internal", "tools", "readme.sh")
			err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, script, 0o600), os.WriteFile(filepath.Join(dir, "README.md"), []byte(tc.readme), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "bash", file, "Two commands").Output()
			if string(out) != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%q, %v; want %q", out, err, tc.want)
			}
		})
	}
}
