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

	r := newReleaser(t)
	clone, do, refused := r.clone, r.do, r.refused
	refused("make -s release VERSION=1.2", "write it as 0.1.0")
	refused("make -s release VERSION=7.0.0", "there is no dynamo/testdata/golden/v7.0-plain.json")
	refused("make -s tag VERSION=0.1.0", "is not the release")
	refused("echo >x && make -s release VERSION=0.1.0; status=$?; rm x; exit $status", "the checkout has changes")
	do(clone, commands[0])
	changelog, err := os.ReadFile(filepath.Join(clone, "CHANGELOG.md"))
	if err != nil || !regexp.MustCompile(`(?m)^## 0\.1\.0 - \d{4}-\d{2}-\d{2}$`).Match(changelog) {
		t.Errorf("the changelog has no date: %v", err)
	}
	do(clone, commands[3])
	refused(commands[3], "tags are never moved")
	do(clone, commands[4])
	if tags := do(r.origin, "git tag"); tags != "cmd/samekey/v0.1.0\ninternal/local/v0.1.0\nkms/v0.1.0\notel/v0.1.0\nv0.1.0\n" {
		t.Errorf("tags are %q", tags)
	}
	for _, module := range []string{"cmd/samekey", "internal/local", "kms", "otel"} {
		got := do(clone, "git show "+module+"/v0.1.0:"+module+"/go.mod")
		if !strings.Contains(got, "github.com/samekey/samekey v0.1.0\n") || strings.Contains(got, "replace") {
			t.Errorf("%s requires another version, or has a replace:\n%s", module, got)
		}
		do(clone, "go list -C "+module+" -m github.com/samekey/samekey") // the tree goes on as it was
	}
}

// releaser releases from a clone of this repository.
type releaser struct {
	*testing.T
	origin, clone string
}

func newReleaser(t *testing.T) *releaser {
	t.Helper()
	dir := t.TempDir()
	r := &releaser{t, filepath.Join(dir, "origin.git"), filepath.Join(dir, "clone")}
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	r.do(dir, "git init --quiet --bare "+r.origin+" && git clone --quiet "+source+" clone")
	r.do(r.clone, "git checkout --quiet -B main && git remote set-url origin "+r.origin)
	return r
}

func (r *releaser) run(in, command string, env ...string) (string, error) {
	cmd := exec.CommandContext(r.Context(), "bash", "-c", command)
	cmd.Dir = in
	cmd.Env = append(os.Environ(), "TAGFLAGS=-a", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "MAKEFLAGS=", "MAKELEVEL=", "MFLAGS=", "VERSION=")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *releaser) do(in, command string, env ...string) string {
	r.Helper()
	out, err := r.run(in, command, env...)
	if err != nil {
		r.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

func (r *releaser) refused(command, why string) {
	r.Helper()
	if out, err := r.run(r.clone, command); err == nil || !strings.Contains(out, why) {
		r.Errorf("%s: %v, want it refused because %q\n%s", command, err, why, out)
	}
}

// What a stranger types once there are releases, from a module proxy in a folder: an application
// is made, tested and built, and taken to the next release; the other programs are installed.
func TestReleasesFromAProxy(t *testing.T) {
	t.Parallel()
	r := newReleaser(t)
	dir := t.TempDir()
	proxy, app, cache := filepath.Join(dir, "proxy"), filepath.Join(dir, "orders"), filepath.Join(dir, "cache")
	publish := func(version string) {
		t.Helper()
		r.do(r.clone, "make -s release VERSION="+version+" && git checkout --quiet HEAD~1 && go run -C internal/tools/supply . proxy -o "+proxy+
			" ../../.. v"+version+" . internal/local cmd/samekey kms otel && git checkout --quiet main")
	}
	publish("0.1.0")
	if err := os.Mkdir(app, 0o755); err != nil {
		t.Fatal(err)
	}
	env := strings.Split(strings.TrimSpace(r.do(dir, "echo GOPROXY=file://"+proxy+",file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"))+
		"\nGONOSUMDB=github.com/samekey\nGOMODCACHE="+cache+"\nGOFLAGS=-modcacherw\nGOBIN="+dir, "\n")
	typed := func(command string) string { t.Helper(); return r.do(app, command, env...) }
	const command = "go run github.com/samekey/samekey/cmd/samekey@"
	typed(command + "latest init")
	typed("make test")
	lines := strings.Count(typed("cat go.sum"), "\n")
	modules := strings.Count(typed("go list -m all"), "\n")
	t.Logf("a new application: %d modules, %d lines of go.sum", modules, lines)
	if got := typed("make -n local"); !strings.Contains(got, command+"v0.1.0 local") {
		t.Errorf("make local runs another version:\n%s", got)
	}

	r.do(r.clone, `sed -i '0,/^## 0.1.0/s//## Unreleased: 0.1.1\n\nMore.\n\n## 0.1.0/' CHANGELOG.md && git commit --quiet --all --message "changelog: begin 0.1.1"`)
	publish("0.1.1")
	typed("go get github.com/samekey/samekey@v0.1.1 && go mod tidy")
	typed("make test build")
	typed(command + "v0.1.1 init --check")
	if got := typed("make -n local"); !strings.Contains(got, command+"v0.1.1 local") {
		t.Errorf("make local runs another version:\n%s", got)
	}
	typed("go install github.com/samekey/samekey/kms/cmd/samekey-keys@v0.1.1 github.com/samekey/samekey/kms/cmd/samekey-worker@v0.1.1")
	typed("go install github.com/samekey/samekey/cmd/samekey@v0.1.1")
	if got := r.do(dir, "./samekey --version"); !strings.Contains(got, "v0.1.1") {
		t.Errorf("the command's version is %s", got)
	}
}
