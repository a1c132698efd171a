package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samekey/samekey/proof/internal/harness"
)

// builder makes test binaries. The go command compiles a changed package and every
// package above it. The compiler and the linker alone need the changed package only,
// for as long as it offers the same to its importers: the linker compares. Otherwise
// the go command builds the binary.
type builder struct {
	root string
	env  []string

	mu    sync.Mutex
	parts map[string]*parts // by the tested package
	slow  int               // binaries that the go command has built
}

// parts are the compiled packages of one test binary.
type parts struct {
	once  sync.Once
	err   error
	main  string            // the compiled package main
	files map[string]string // the compiled package, by its import path
	code  map[string]listed // packages of this module, by their folder from its root
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath, Dir, Export, ForTest, Name string
	GoFiles, CgoFiles, SFiles, EmbedFiles  []string
	Module                                 *struct{ Dir, GoVersion string }
}

// gcflags are for our packages. Without optimizing, a test binary takes half of the
// time, and a package offers no bodies of functions to inline.
const (
	ours    = "github.com/samekey/samekey/..."
	gcflags = "-N -l"
)

// binary writes the tests of pkg to file: with change, or without any if it is nil.
func (b *builder) binary(ctx context.Context, pkg, file string, change *change, cpu *meter) error {
	b.mu.Lock()
	if b.parts == nil {
		b.parts = make(map[string]*parts)
	}
	p := b.parts[pkg]
	if p == nil {
		p = new(parts)
		b.parts[pkg] = p
	}
	b.mu.Unlock()
	p.once.Do(func() { p.err = b.list(ctx, pkg, p, cpu) })
	if p.err != nil {
		return p.err
	}
	files := maps.Clone(p.files)
	// What isn't in the binary may be in programs that the tests build.
	if l, in := p.code[cmp.Or(change, &noChange).dir]; in {
		if len(l.CgoFiles)+len(l.SFiles)+len(l.EmbedFiles) > 0 {
			return b.slowly(ctx, pkg, file, change, cpu)
		}
		archive := filepath.Join(change.tmp, "changed.a")
		if err := b.compile(ctx, l, files, archive, change, cpu); err != nil {
			return err
		}
		files[importPath(l)] = archive
	}
	err := b.link(ctx, p.main, files, file, cpu)
	if _, ended := errors.AsType[*exec.ExitError](err); ended && change != nil {
		return b.slowly(ctx, pkg, file, change, cpu)
	}
	return err
}

// noChange is in no package.
var noChange = change{dir: "?"}

// change is one changed file.
type change struct {
	dir     string // the package's folder, from the module's root
	name    string // the file's name
	source  string // the changed text's file
	overlay string // the same for go build -overlay
	tmp     string // a folder for what is built on the way
}

// importPath is the path under which a package is linked.
func importPath(l listed) string {
	p, _, _ := strings.Cut(l.ImportPath, " ")
	return p
}

func (b *builder) list(ctx context.Context, pkg string, p *parts, cpu *meter) error {
	module, rest := harness.ModuleOf(pkg)
	out, err := b.run(ctx, module, cpu, "list", "-test", "-deps", "-export", "-gcflags=all=", "-gcflags="+ours+"="+gcflags,
		"-json=ImportPath,Dir,Export,ForTest,Name,GoFiles,CgoFiles,SFiles,EmbedFiles,Module", rest)
	if err != nil {
		return fmt.Errorf("does not compile: %w\n%s", err, out)
	}
	p.files, p.code = make(map[string]string), make(map[string]listed)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if l.Name == "main" && strings.HasSuffix(l.ImportPath, ".test") {
			p.main = l.Export
			continue
		}
		// What is compiled for this test comes after what it stands for.
		if l.Export != "" {
			p.files[importPath(l)] = l.Export
		}
		if l.Module == nil || !inside(b.root, l.Module.Dir) || strings.HasSuffix(importPath(l), "_test") {
			continue
		}
		dir, err := filepath.Rel(b.root, l.Dir)
		if err != nil {
			return err
		}
		p.code[filepath.ToSlash(dir)] = l
	}
	if p.main == "" {
		return fmt.Errorf("%s has no tests", pkg)
	}
	return nil
}

// compile compiles l with change.
func (b *builder) compile(ctx context.Context, l listed, files map[string]string, archive string, change *change, cpu *meter) error {
	config, err := importConfig(change.tmp, files)
	if err != nil {
		return err
	}
	// Positions are the original's: they are a part of what a package offers.
	args := []string{
		"tool", "compile", "-o", archive, "-p", importPath(l), "-lang=go" + language(l.Module.GoVersion), "-pack",
		"-importcfg", config, "-trimpath", filepath.Dir(change.source) + "=>" + l.Dir,
	}
	args = append(args, strings.Fields(gcflags)...)
	for _, name := range l.GoFiles {
		switch {
		case name == change.name:
			name = change.source
		case !filepath.IsAbs(name):
			name = filepath.Join(l.Dir, name)
		}
		args = append(args, name)
	}
	if out, err := b.run(ctx, ".", cpu, args...); err != nil {
		return fmt.Errorf("does not compile: %w\n%s", err, out)
	}
	return nil
}

// language is the language version of a go line: 1.26.0 is Go 1.26.
func language(goVersion string) string {
	parts := strings.SplitN(goVersion, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func (b *builder) link(ctx context.Context, main string, files map[string]string, binary string, cpu *meter) error {
	dir, err := os.MkdirTemp(filepath.Dir(binary), "link-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the whole of tmp goes in the end
	config, err := importConfig(dir, files)
	if err != nil {
		return err
	}
	// testBinary is what testing.Testing reads.
	out, err := b.run(ctx, ".", cpu, "tool", "link", "-o", binary, "-importcfg", config, "-s", "-w", "-buildmode=exe", "-X=testing.testBinary=1", main)
	if err != nil {
		return fmt.Errorf("does not link: %w\n%s", err, out)
	}
	return nil
}

// slowly has the go command build a binary.
func (b *builder) slowly(ctx context.Context, pkg, file string, change *change, cpu *meter) error {
	b.mu.Lock()
	b.slow++
	b.mu.Unlock()
	module, rest := harness.ModuleOf(pkg)
	out, err := b.run(ctx, module, cpu, "test", "-c", "-vet=off", "-gcflags="+ours+"="+gcflags, "-ldflags=-s -w", "-o", file, "-overlay="+change.overlay, rest)
	if err != nil {
		return fmt.Errorf("does not compile: %w\n%s", err, out)
	}
	return nil
}

// meter counts the processor's time, which a busy machine doesn't change.
type meter time.Duration

func (m *meter) add(p *os.ProcessState) {
	if p != nil {
		*m += meter(p.UserTime() + p.SystemTime())
	}
}

func (m meter) seconds() float64 { return time.Duration(m).Seconds() }

// inside reports whether dir is root, or below it.
func inside(root, dir string) bool {
	return dir == root || strings.HasPrefix(dir, root+string(filepath.Separator))
}

// run runs the go command in a module of the repository and returns its output; its
// errors, if it fails.
func (b *builder) run(ctx context.Context, module string, cpu *meter, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(b.root, module), &stdout, &stderr
	cmd.Env = append(slices.Clone(b.env), "GOGC="+collection(args))
	err := cmd.Run()
	cpu.add(cmd.ProcessState)
	if err != nil {
		return append(stderr.Bytes(), stdout.Bytes()...), err
	}
	return stdout.Bytes(), nil
}

// collection is how compilers and linkers collect garbage: a compiler or linker alone
// needs less memory than a collection is worth; the go command runs several.
func collection(args []string) string {
	if args[0] == "tool" {
		return "off"
	}
	return "400"
}

// importConfig tells compiler and linker where the compiled packages are.
func importConfig(dir string, files map[string]string) (string, error) {
	var text strings.Builder
	for _, p := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&text, "packagefile %s=%s\n", p, files[p])
	}
	file := filepath.Join(dir, "importcfg")
	return file, os.WriteFile(file, []byte(text.String()), 0o600)
}
