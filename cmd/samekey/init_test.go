package main

import (
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/samekey/samekey/cmd/samekey/internal/scaffold"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

func TestInitTellsWhatItDid(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	// The module has all requirements already, so that no registry is asked.
	localtest.Write(t, filepath.Join(dir, "go.mod"), "module example.com/orders\n\ngo 1.26.0\n\nrequire github.com/samekey/samekey v0.0.0\n\n"+
		"tool (\n\tgithub.com/samekey/samekey/cmd/samekey\n\tgithub.com/samekey/samekey/cmd/samekey-worker\n)\n")
	localtest.Write(t, filepath.Join(dir, "Makefile"), "all:\n")
	code, stdout, stderr := call(t, nil, "init")
	if code != 0 || !strings.Contains(stdout, "created     cmd/api/main.go\n") || !strings.Contains(stdout, "left alone  Makefile\n") || !strings.Contains(stdout, "cmd/samekey@latest local --watch") {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, nil, "init"); code != 0 || strings.Contains(stdout, "created") || !strings.Contains(stdout, "up to date  template.yaml\n") {
		t.Errorf("the second time: code %d: %s%s", code, stdout, stderr)
	}
	if code, stdout, _ := call(t, nil, "init", "--check"); code != 0 || stdout != "" {
		t.Errorf("--check: code %d: %s", code, stdout)
	}
	memory := filepath.Join(dir, ".samekey-init")
	localtest.Write(t, memory, "0000  template.yaml\n")
	localtest.Write(t, filepath.Join(dir, "template.yaml"), "Resources: {}\n")
	if code, stdout, stderr := call(t, nil, "init", "--check"); code != 1 || !strings.Contains(stdout, "-Resources: {}\n") || !strings.Contains(stderr, "run samekey init") {
		t.Errorf("--check of another version: code %d: %s%s", code, stdout, stderr)
	}
}

// init prints what it wrote, completed and left alone, and what to do next.
func TestTellInit(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, r := range []scaffold.Result{
		{Created: []string{"a", "b"}, Module: "m", Required: true}, {Created: []string{"a"}, Example: "checkout"}, {Example: "checkout", LeftAlone: []string{"c"}}, {Created: []string{"a"}, LeftAlone: []string{"template.yaml"}}, {Unchanged: []string{"d"}, Module: "m"},
	} {
		tellInit(environment{stdout: &out}, r, "go run "+programPath+"@latest")
		out.WriteString("----\n")
	}
	says(t, "init", out.String(), "created  a\ncreated  b\ncompleted  go.mod of module m\n\nRun it:  make local\nCall it: curl -i localhost:3000/orders -H 'Authorization: Bearer tea'",
		"Run it:  make local\nExamine it: TOKEN='Bearer tea'", "go run github.com/samekey/samekey/cmd/samekey@latest check --contract acp --yes",
		"----\nleft alone  c\nFiles that were left alone may lack parts that this version creates. To see these parts, run samekey init in an empty folder.\n----",
		"left alone  template.yaml\n", "\nRun it:  go run github.com/samekey/samekey/cmd/samekey@latest local --watch\n----\nup to date  d\n----\n")
}

func TestBadInit(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOPROXY", "off")
	for want, tt := range map[string]struct {
		args []string
		code int
	}{
		`unexpected argument "more"`:      {[]string{"more"}, 2},
		"unknown flag: --nonsense":        {[]string{"-nonsense"}, 2},
		`"a b" is not a module path`:      {[]string{"-module", "a b"}, 1},
		"no .samekey-init in this folder": {[]string{"--check"}, 2},
		"module lookup disabled":          {[]string{"--module", "example.com/a"}, 1},
	} {
		if code, _, stderr := call(t, nil, append([]string{"init"}, tt.args...)...); code != tt.code || !strings.Contains(stderr, want) {
			t.Errorf("%v: code %d: %s", tt.args, code, stderr)
		}
	}
}

// A release writes its own version into the module; a build of a checkout writes "latest".
func TestReleased(t *testing.T) {
	t.Parallel()
	for is, want := range map[string]string{"v1.2.3": "v1.2.3", "v1.2.3+dirty": "latest", "(devel)": "latest", versionIn(nil): "latest"} {
		if got := released(is); got != want {
			t.Errorf("of %s it is %s", is, got)
		}
	}
	for is, want := range map[string]string{"": "(unknown)", "v1.2.3": "v1.2.3"} {
		if got := versionIn(&debug.BuildInfo{Main: debug.Module{Version: is}}); got != want {
			t.Errorf("%q is told as %s", is, got)
		}
	}
	const library = "github.com/samekey/samekey"
	for want, deps := range map[string][]*debug.Module{
		"(unknown)": {{Path: library + "/kms", Version: "v1.0.0"}}, "v1.2.3": {{Path: library, Version: "v1.2.3"}},
		"(devel)": {{Path: library, Version: "v0.0.0", Replace: &debug.Module{Path: "../../"}}},
	} {
		if got := libraryIn(&debug.BuildInfo{Deps: deps}); got != want {
			t.Errorf("the library is told as %s, want %s", got, want)
		}
	}
}
