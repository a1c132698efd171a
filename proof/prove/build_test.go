package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// files writes files into a new folder.
func files(t *testing.T, all map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range all {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// played plays git's commands in a folder, as nobody in particular.
func played(t *testing.T, dir string, commands ...string) string {
	t.Helper()
	said := ""
	for _, c := range commands {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, strings.Fields(c)...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Skipf("git %s: %v: %s", c, err, out)
		}
		said = strings.TrimSpace(string(out))
	}
	return said
}

// here is a site that runs programs as this machine does.
type here struct{ Site }

func (here) Program() (system, arch string, packaged bool) { return runtime.GOOS, runtime.GOARCH, true }

// The functions' program and the command are built of a checkout, whose commit is told with its changes; the templates are
// beside them. In this test the programs do nothing.
func TestBuild(t *testing.T) {
	const mod, main = "module example.com/a\n\ngo 1.26\n", "package main\n\nfunc main() {}\n"
	all := map[string]string{"proof/go.mod": mod, "proof/prove/function/main.go": main, "cmd/samekey/go.mod": mod, "cmd/samekey/main.go": main}
	checkout, changed, loose := files(t, all), files(t, all), files(t, all)
	commit := played(t, checkout, "init -q", "add .", "commit -qm a", "tag v1.2.3", "rev-parse HEAD")
	played(t, changed, "init -q", "add .", "commit -qm a", "rm -q cmd/samekey/go.mod", "checkout HEAD cmd/samekey/go.mod", "rm -q --cached cmd/samekey/go.mod")
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("it was told to"))
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	for _, test := range []struct {
		name, source string
		ctx          context.Context
		samekey      string
		commit, err  string
	}{
		{"of a checkout", checkout, t.Context(), "v1.2.3", commit, ""},
		{"of a changed one", changed, t.Context(), "", ", changed", ""},
		{"of no checkout", loose, t.Context(), "", "", ""},
		{"of nothing", t.TempDir(), t.Context(), "", "", "proof can't be built: name the folder of a checkout by --source: "},
		{"that was ended", checkout, ended, "", "", "it was told to"},
	} {
		app, err := buildApp(test.ctx, Options{Source: test.source}, here{})
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) ||
			!strings.HasSuffix(app.Commit, test.commit) || (app.Commit == "") != (test.commit == "") || test.samekey != "" && app.Versions["samekey"] != test.samekey {
			t.Errorf("a program %s: got %+v, %v, want %+v", test.name, app, err, test)
		}
		for _, name := range []string{templateFile, nestedFile, bootstrap, "samekey"} {
			if _, missing := os.Stat(filepath.Join(app.Dir, name)); test.err == "" && missing != nil {
				t.Errorf("a program %s: %v", test.name, missing)
			}
		}
		app.Close()
		if _, err := os.Stat(app.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a program %s is left: %v", test.name, err)
		}
	}
}

// Lambda gets a zip file with one program that it may run.
func TestZipped(t *testing.T) {
	t.Parallel()
	raw, err := App{Dir: files(t, map[string]string{bootstrap: "program"})}.zipped()
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || len(z.File) != 1 || z.File[0].Name != "bootstrap" || z.File[0].Mode() != 0o755 {
		t.Fatalf("%+v, %v", z, err)
	}
	f, err := z.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if program, err := io.ReadAll(f); string(program) != "program" || err != nil {
		t.Errorf("%q, %v", program, err)
	}
}
