package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is no release is refused, and changes nothing. make rehearse makes one.
func TestRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	run := func(in, command string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "MFLAGS=", "VERSION=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(dir, "git clone --quiet "+source+" clone && git -C clone checkout --quiet -B main"); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	for command, why := range map[string]string{
		"make -s release VERSION=1.2":   "write it as 0.1.0",
		"make -s release VERSION=7.0.0": "there is no dynamo/testdata/golden/v7.0-plain.json",
		"make -s tag VERSION=9.9.9":     "is not the release",
		"echo >x && make -s release VERSION=0.1.0; status=$?; rm x; exit $status":                        "the checkout has changes",
		"git checkout -q --detach && make -s release VERSION=0.1.0; s=$?; git checkout -q main; exit $s": "the release is made on main",
		"git tag v9.8.7 && make -s tag VERSION=9.8.7":                                                    "tags are never moved",
	} {
		if out, err := run(filepath.Join(dir, "clone"), command); err == nil || !strings.Contains(out, why) {
			t.Errorf("%s: got %v, want it refused because %q\n%s", command, err, why, out)
		}
	}
	if out, err := run(filepath.Join(dir, "clone"), "git status --porcelain && git log --oneline origin/HEAD.."); err != nil || out != "" {
		t.Errorf("got changes %q, %v, want none", out, err)
	}
}
