// Package gosource builds a function from its Go package, and detects changes of its
// sources.
//
//	p := gosource.Package{Path: ".", Dir: "cmd/orders"}
//	inputs, err := p.Inputs(ctx)
//	…
//	before := inputs.Stamp()
//	err = p.Build(ctx, "dist/orders/bootstrap")
//	…
//	if !maps.Equal(before, inputs.Stamp()) {
//		// somebody has edited a file since
//	}
//
// Callers find changes by polling. The reason is in
// docs/inside/decisions/0011-samekey-local.md.
package gosource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// Package is a main package. Path names the package to a go command that runs in the
// folder Dir.
type Package struct{ Path, Dir string }

// Build builds the package for this machine into the file out, with the flags for
// Lambda. It replaces out atomically, so that processes of the old program continue, and
// no process starts an incomplete program. If out has the same program already, Build
// leaves the file as it is. Build leaves a folder "build" beside out.
func (p Package) Build(ctx context.Context, out string) error {
	built := filepath.Join(filepath.Dir(out), "build", filepath.Base(out))
	if err := os.MkdirAll(filepath.Dir(built), 0o750); err != nil {
		return fmt.Errorf("build %s: %w", p, err)
	}
	if err := lambdarun.BuildBootstrapIn(ctx, p.Dir, p.Path, built); err != nil {
		return p.explain(err)
	}
	program, err := os.ReadFile(built)
	if err != nil {
		return fmt.Errorf("build %s: %w", p, err)
	}
	if old, err := os.ReadFile(out); err == nil && bytes.Equal(old, program) {
		return nil
	}
	if err := replace(out, program); err != nil {
		return fmt.Errorf("build %s: %w", p, err)
	}
	return nil
}

// replace writes the bytes in program to a new file, and renames this file to the path out.
func replace(out string, program []byte) error {
	next, err := os.CreateTemp(filepath.Dir(out), "next-*")
	if err != nil {
		return err
	}
	_, err = next.Write(program)
	err = errors.Join(err, next.Chmod(0o755), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), out)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}

// String names the package for people.
func (p Package) String() string {
	if p.Path == "." {
		return p.Dir
	}
	return p.Path
}

func (p Package) explain(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("build %s: the go command is not on the PATH: install Go", p)
	}
	return fmt.Errorf("build %s: %w", p, err)
}

// listed is go list's description of a package.
type listed struct {
	Dir, Name, ImportPath string
	DepOnly, Standard     bool
	EmbedFiles            []string
	Module                *struct {
		Main       bool
		Dir, GoMod string
		Replace    *struct{ Version string }
	}
}

// listed.own reports whether the package belongs to the main module, or to a module
// that a replace directive takes from a folder. People edit only such packages.
func (l listed) own() bool {
	return !l.Standard && l.Module != nil && (l.Module.Main || l.Module.Replace != nil && l.Module.Replace.Version == "")
}

// Inputs finds the program's source files in the main module, and in modules that a
// replace directive takes from a folder. The error quotes the go command, or says that
// the package is not a program.
func (p Package) Inputs(ctx context.Context) (Inputs, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-tags="+lambdarun.Tags,
		"-json=Dir,Name,ImportPath,DepOnly,Standard,EmbedFiles,Module", p.Path)
	cmd.Dir, cmd.Env = p.Dir, lambdarun.Environ()
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return Inputs{}, fmt.Errorf("build %s: %w", p, context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return Inputs{}, p.explain(err)
	case err != nil:
		return Inputs{}, fmt.Errorf("build %s: %w\n%s", p, err, strings.TrimSpace(stderr.String()))
	}
	var in Inputs
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return Inputs{}, fmt.Errorf("build %s: go list: %w", p, err)
		}
		if !l.DepOnly && l.Name != "main" {
			return Inputs{}, fmt.Errorf("build %s: %s is package %s, not a program", p, l.ImportPath, l.Name)
		}
		if l.own() {
			in.add(l)
		}
	}
	return in, nil
}

// Inputs are the files that a program is built from. The zero value has no files.
type Inputs struct {
	packages []string // folders of Go packages
	embeds   []string // folders of embedded files
	files    []string // single files
	modules  []string // folders of modules
}

func (in *Inputs) add(l listed) {
	in.packages = append(in.packages, l.Dir)
	for _, name := range l.EmbedFiles {
		if dir := filepath.Dir(filepath.Join(l.Dir, name)); !slices.Contains(in.embeds, dir) {
			in.embeds = append(in.embeds, dir)
		}
	}
	if !slices.Contains(in.modules, l.Module.Dir) {
		in.modules = append(in.modules, l.Module.Dir)
		in.files = append(in.files, l.Module.GoMod, strings.TrimSuffix(l.Module.GoMod, ".mod")+".sum")
	}
}

// Stamp describes the state of files. Compare stamps with maps.Equal.
type Stamp map[string]FileStamp

// FileStamp is a file's size and the time of its last change.
type FileStamp struct {
	Size    int64
	Changed time.Time
}

// Stamp returns the state of the files. It reads the folders of packages and of
// embedded files again, so it finds files that were added after the call of
// Package.Inputs. It leaves out the packages' tests.
func (in Inputs) Stamp() Stamp {
	s := make(Stamp)
	for _, dir := range in.packages {
		s.folder(dir, isSource)
	}
	for _, dir := range in.embeds {
		s.folder(dir, func(string) bool { return true })
	}
	for _, file := range in.files {
		s.File(file)
	}
	return s
}

// StampModules is like Stamp, but includes all source files of the modules. Use it if a
// program doesn't build because a package is missing: the stamp changes when somebody
// adds the package.
func (in Inputs) StampModules() Stamp {
	s := in.Stamp()
	for _, module := range in.modules {
		_ = filepath.WalkDir(module, func(path string, d os.DirEntry, err error) error {
			hidden := d != nil && path != module && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules")
			switch {
			case err != nil:
				return nil //nolint:nilerr // an unreadable file is left out
			case d.IsDir() && hidden:
				return filepath.SkipDir
			case !d.IsDir() && isSource(d.Name()):
				s.File(path)
			}
			return nil
		})
	}
	return s
}

func isSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".s")
}

// File adds a file's state. It adds nothing for a missing file.
func (s Stamp) File(path string) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		s[path] = FileStamp{info.Size(), info.ModTime()}
	}
}

func (s Stamp) folder(dir string, want func(name string) bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if want(e.Name()) {
			s.File(filepath.Join(dir, e.Name()))
		}
	}
}
