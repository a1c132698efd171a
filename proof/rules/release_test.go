package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The five commands of the page lead from main to tags: those that change something are
// typed in a clone, as they stand there; the two that check are CI's.
func TestRelease(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "inside", "releasing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\n```\n")
	block, _, _ = strings.Cut(block, "\n```\n")
	commands := strings.Split(block, "\n")
	if len(commands) != 5 || commands[1] != ".ci/run" || commands[2] != "make prove" {
		t.Fatalf("the page's commands are %q", commands)
	}

	dir := t.TempDir()
	origin, clone := filepath.Join(dir, "origin.git"), filepath.Join(dir, "clone")
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	run := func(in, command string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "TAGFLAGS=-a", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "MAKEFLAGS=", "MAKELEVEL=", "MFLAGS=", "VERSION=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	do := func(in, command string) string {
		t.Helper()
		out, err := run(in, command)
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return out
	}
	refused := func(command, why string) {
		t.Helper()
		if out, err := run(clone, command); err == nil || !strings.Contains(out, why) {
			t.Errorf("%s: %v, want it refused because %q\n%s", command, err, why, out)
		}
	}
	do(dir, "git init --quiet --bare "+origin+" && git clone --quiet "+source+" clone")
	do(clone, "git checkout --quiet -B main && git remote set-url origin "+origin)

	refused("make -s release VERSION=1.2", "write it as 0.1.0")
	refused("make -s release VERSION=7.0.0", "there is no dynamo/testdata/golden/v7.0-plain.json")
	refused("make -s tag VERSION=0.1.0", "the last commit is not the release")
	refused("echo >x && make -s release VERSION=0.1.0; status=$?; rm x; exit $status", "the checkout has changes")
	do(clone, commands[0])
	changelog, err := os.ReadFile(filepath.Join(clone, "CHANGELOG.md"))
	if err != nil || !regexp.MustCompile(`(?m)^## 0\.1\.0 - \d{4}-\d{2}-\d{2}$`).Match(changelog) {
		t.Errorf("the changelog has no date: %v", err)
	}
	do(clone, commands[3])
	refused(commands[3], "tags are never moved")
	do(clone, commands[4])
	if tags := do(origin, "git tag"); tags != "kms/v0.1.0\notel/v0.1.0\nv0.1.0\n" {
		t.Errorf("tags are %q", tags)
	}
	for _, module := range []string{"kms", "otel"} {
		got := do(clone, "git show "+module+"/v0.1.0:"+module+"/go.mod")
		if !strings.Contains(got, "\tgithub.com/samekey/samekey v0.1.0\n") {
			t.Errorf("%s requires another version:\n%s", module, got)
		}
		do(clone, "go list -C "+module+" -m github.com/samekey/samekey")
	}
}
