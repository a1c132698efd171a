package prove

import (
	"archive/zip"
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A program of another release has other templates.
func TestSameVersion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program, own string
		same         bool
	}{
		{"v0.1.0", "v0.1.0", true},
		{"v0.1.0", "v0.2.0", false},
		{"v0.0.0-20261127120000-0123456789ab", "v0.1.0", false},
		{"(devel)", "v0.1.0", true},
		{"v0.1.0", "(devel)", true},
		{"v0.1.0", "v0.0.0-20261127120000-0123456789ab+dirty", true},
		{"v0.1.0", "", true},
	} {
		if err := sameVersion(test.program, test.own); (err == nil) != test.same {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

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

// git plays commands in a folder, as nobody in particular.
func git(t *testing.T, dir string, commands ...string) string {
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

// The program is built of the version that the module uses, and the templates are beside it. Its commit is the one that go
// build notes, or else that of the folder. In this test the program does nothing.
func TestBuild(t *testing.T) {
	const program, root, main = "cmd/samekey/internal/prove/cmd/function/main.go", "module github.com/samekey/samekey\n\ngo 1.26\n", "package main\n\nfunc main() {}\n"
	checkout := files(t, map[string]string{"go.mod": root, program: main})
	commit := git(t, checkout, "init -q", "add .", "commit -qm a", "rev-parse HEAD")
	user := files(t, map[string]string{
		"go.mod": "module app\n\ngo 1.26\n\nrequire github.com/samekey/samekey v1.2.3\n\nreplace github.com/samekey/samekey => ./samekey\n", "samekey/go.mod": root, "samekey/" + program: main,
	})
	git(t, user, "init -q", "add .", "commit -qm a")
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("it was told to"))
	t.Setenv("GOWORK", "off")
	t.Setenv("CGO_ENABLED", "1")
	for _, test := range []struct {
		name, source, own, flags string
		ctx                      context.Context
		version, commit, err     string
	}{
		{"without notes", checkout, "v1.0.0", "-buildvcs=false", t.Context(), "(devel)", commit, ""},
		{"of a release", user, "v1.2.3", "-buildvcs=true", t.Context(), "v1.2.3", "", ""},
		{"of another release", user, "v1.0.0", "-buildvcs=true", t.Context(), "v1.2.3", "", "this is samekey v1.0.0, and the module uses v1.2.3: run that one"},
		{"of no program", files(t, map[string]string{"go.mod": root, program: "package function\n"}), "", "", t.Context(), "", "", "could not read Go build info"},
		{"of no module", t.TempDir(), "", "", t.Context(), "", "", "the program can't be built: name the folder cmd/samekey of a checkout by --source: exit status 1\n"},
		{"that was ended", checkout, "", "", ended, "", "", "it was told to"},
	} {
		t.Setenv("GOFLAGS", test.flags)
		app, err := buildApp(test.ctx, Options{Source: test.source, own: test.own}, here{})
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || app.Versions["samekey"] != test.version || app.Commit != test.commit {
			t.Errorf("a program %s: %+v, %v", test.name, app, err)
		}
		for name, want := range map[string]string{templateFile: Template(true), nestedFile: Nested(true)} {
			if got, err := os.ReadFile(filepath.Join(app.Dir, name)); test.version != "" && (err != nil || string(got) != want) {
				t.Errorf("a program %s has no %s: %v", test.name, name, err)
			}
		}
		if info, err := buildinfo.ReadFile(filepath.Join(app.Dir, bootstrap)); test.version != "" && (err != nil || !slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"})) {
			t.Errorf("a program %s: %v, %v", test.name, info, err)
		}
		app.Close()
		if _, err := os.Stat(app.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a program %s is left: %v", test.name, err)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if _, err := buildApp(t.Context(), Options{}, here{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program without a folder: %v", err)
	}
}

// The commit of a folder is told with its changes; without a work tree, or without a commit, nobody knows it.
func TestCommitOf(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"a": "a"})
	commit := git(t, dir, "init -q", "add .", "commit -qm a", "rev-parse HEAD")
	empty, bare := t.TempDir(), t.TempDir()
	git(t, empty, "init -q")
	git(t, bare, "clone -q --bare "+dir+" .")
	for where, want := range map[string]string{dir: commit, empty: "", bare: "", t.TempDir(): ""} {
		if got := commitOf(t.Context(), where); got != want {
			t.Errorf("%s: %q, not %q", where, got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := commitOf(t.Context(), dir); got != commit+", changed" {
		t.Error(got)
	}
}

// A program's notes say which versions it was built of, also if it is Samekey's own.
func TestVersions(t *testing.T) {
	t.Parallel()
	sdk, own := &debug.Module{Path: "github.com/aws/aws-sdk-go-v2", Version: "v1.40.0"}, &debug.Module{Path: "github.com/samekey/samekey", Version: "v1.2.3"}
	revision, clean, dirty := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}, debug.BuildSetting{Key: "vcs.modified", Value: "false"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, test := range []struct {
		info         debug.BuildInfo
		samekey, sdk string
		commit       string
	}{
		{debug.BuildInfo{GoVersion: "go1", Main: debug.Module{Version: "(devel)"}, Deps: []*debug.Module{sdk}, Settings: []debug.BuildSetting{revision, clean}}, "(devel)", "v1.40.0", "abc"},
		{debug.BuildInfo{GoVersion: "go1", Main: debug.Module{Version: "v0.0.1"}, Deps: []*debug.Module{sdk, own, {Path: "more", Version: "v7.0.0"}}, Settings: []debug.BuildSetting{revision, dirty}}, "v1.2.3", "v1.40.0", "abc, changed"},
		{debug.BuildInfo{GoVersion: "go1", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{dirty, {Key: "more", Value: "true"}}}, "v1.2.3", "", "changed"},
		{debug.BuildInfo{GoVersion: "go1", Settings: []debug.BuildSetting{clean, {Key: "more", Value: "true"}}}, "", "", ""},
	} {
		want := map[string]string{"go": "go1", "samekey": test.samekey}
		if test.sdk != "" {
			want["aws-sdk-go-v2"] = test.sdk
		}
		got, commit := versions(&test.info)
		if diff := cmp.Diff(want, got); diff != "" || commit != test.commit {
			t.Error(diff, commit)
		}
	}
	if own := LibraryVersion(); own != (Options{}).withDefaults().own || own == "" {
		t.Errorf("this program has the version %q", own)
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
