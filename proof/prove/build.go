package main

import (
	"archive/zip"
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/samekey/samekey/proof/internal/harness"
)

// App is a folder with the stack's templates and its program, for one machine.
type App struct {
	Dir      string
	Samekey  string // the command, for this machine
	Versions map[string]string
	Commit   string
}

// Close removes the folder.
func (a App) Close() {
	_ = os.RemoveAll(a.Dir) // the system's own folder for such things; "" is none
}

const (
	templateFile = "stack.yaml"
	nestedFile   = "samekey.yaml"
	codeKey      = "program.zip"
	bootstrap    = "dist/program/bootstrap"
)

// buildApp builds the functions' program for the site, and samekey for this machine, of a checkout.
func buildApp(ctx context.Context, o Options, site Site) (app App, err error) {
	if app.Dir, err = os.MkdirTemp("", "samekey-prove-"); err != nil {
		return app, err
	}
	system, arch, packaged := site.Program()
	out := filepath.Join(app.Dir, bootstrap)
	app.Samekey = filepath.Join(app.Dir, "samekey")
	for _, b := range []struct {
		module, pkg, out string
		env              []string
	}{
		{"proof", "./prove/function", out, []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch}},
		{"cmd/samekey", ".", app.Samekey, nil},
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s", "-tags=lambda.norpc", "-o", b.out, b.pkg)
		cmd.Dir, cmd.WaitDelay = filepath.Join(o.Source, b.module), 5*time.Second
		cmd.Env = append(os.Environ(), b.env...)
		if said, err := cmd.CombinedOutput(); err != nil {
			if ctx.Err() != nil {
				return app, context.Cause(ctx)
			}
			return app, fmt.Errorf("%s can't be built: name the folder of a checkout by --source: %w\n%s", b.module, err, strings.TrimSpace(string(said)))
		}
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
	app.Versions = map[string]string{"go": info.GoVersion, "samekey": git(ctx, o.Source, "describe", "--tags", "--always")}
	for _, m := range info.Deps {
		if m.Path == "github.com/aws/aws-sdk-go-v2" {
			app.Versions["aws-sdk-go-v2"] = m.Version
		}
	}
	app.Commit = git(ctx, o.Source, "rev-parse", "HEAD")
	if app.Commit != "" && git(ctx, o.Source, "status", "--porcelain", "--untracked-files=no") != "" {
		app.Commit += ", changed"
	}
	return app, nil
}

// git is what git says of a checkout; "" if it says nothing.
func git(ctx context.Context, dir string, args ...string) string {
	out, err := harness.Output(ctx, "git", append([]string{"-C", dir}, args...)...)
	if err != nil {
		return ""
	}
	return out
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
