package prove

import (
	"archive/zip"
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// App is a folder with the stack's templates and its program, for one machine.
type App struct {
	Dir      string
	Versions map[string]string
	Commit   string
}

// Close removes the folder.
func (a App) Close() {
	_ = os.RemoveAll(a.Dir) // the system's own folder for such things; "" is none
}

// programPackage is the program of all functions.
const programPackage = "github.com/samekey/samekey/cmd/samekey/internal/prove/cmd/function"

const (
	templateFile = "stack.yaml"
	nestedFile   = "samekey.yaml"
	codeKey      = "program.zip"
	bootstrap    = "dist/program/bootstrap"
)

// buildApp builds the version of Samekey that the module in the source folder uses.
func buildApp(ctx context.Context, o Options, site Site) (app App, err error) {
	if app.Dir, err = os.MkdirTemp("", "samekey-prove-"); err != nil {
		return app, err
	}
	system, arch, packaged := site.Program()
	out := filepath.Join(app.Dir, bootstrap)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s", "-tags=lambda.norpc", "-o", out, programPackage)
	cmd.Dir, cmd.WaitDelay = o.Source, 5*time.Second
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	if said, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return app, context.Cause(ctx)
		}
		return app, fmt.Errorf("the program can't be built: name the folder cmd/samekey of a checkout by --source: %w\n%s",
			err, strings.TrimSpace(string(said)))
	}
	for name, text := range map[string]string{templateFile: Template(packaged), nestedFile: Nested(packaged)} {
		if err := os.WriteFile(filepath.Join(app.Dir, name), []byte(text), 0o600); err != nil {
			return app, err
		}
	}
	info, err := buildinfo.ReadFile(out)
	if err != nil {
		return app, err
	}
	app.Versions, app.Commit = versions(info)
	if app.Commit == "" && app.Versions["samekey"] == "(devel)" {
		app.Commit = commitOf(ctx, o.Source)
	}
	return app, sameVersion(app.Versions["samekey"], o.own)
}

// sameVersion refuses a program of another release: the templates are those of this one. Versions of checkouts are not
// compared.
func sameVersion(program, own string) error {
	if program == own || !released(program) || !released(own) {
		return nil
	}
	return fmt.Errorf("this is samekey %s, and the module uses %s: run that one", own, program)
}

func released(version string) bool {
	return version != "" && version != "(devel)" && !strings.Contains(version, "+dirty")
}

// LibraryVersion is the version of the library, the root module, in this process; "" if nobody
// knows.
func LibraryVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return versionIn(info)
}

// versionIn is the version of Samekey of which a program was built.
func versionIn(info *debug.BuildInfo) string {
	for _, m := range info.Deps {
		if m.Path == "github.com/samekey/samekey" {
			return m.Version
		}
	}
	return info.Main.Version
}

// commitOf is the commit of a checkout; "" if git doesn't know it.
func commitOf(ctx context.Context, dir string) string {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err1 := git("rev-parse", "HEAD")
	changes, err2 := git("status", "--porcelain", "--untracked-files=no")
	switch {
	case err1 != nil || err2 != nil:
		return ""
	case changes != "":
		return commit + ", changed"
	}
	return commit
}

// versions are those of which a program was built, and its commit.
func versions(info *debug.BuildInfo) (map[string]string, string) {
	all := map[string]string{"go": info.GoVersion, "samekey": versionIn(info)}
	for _, m := range info.Deps {
		if m.Path == "github.com/aws/aws-sdk-go-v2" {
			all["aws-sdk-go-v2"] = m.Version
		}
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed"
		}
	}
	return all, strings.TrimPrefix(commit+changed, ", ")
}

// zipped is the program as Lambda takes it.
func (a App) zipped() ([]byte, error) {
	program, err := os.ReadFile(filepath.Join(a.Dir, bootstrap))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}
