package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// pkg is a package with mutants.
type pkg struct {
	dir     string // from the repository's root
	module  string // the folder of its module, from the root
	name    string
	types   *types.Package
	mutants []*mutant
	files   map[string][]byte // rewritten, by their paths from the root
	tested  bool
	own     bool // only its own tests play
}

// modules are those with product packages, and what of them has mutants.
var modules = []struct {
	dir  string
	pkgs []string
}{
	{".", []string{"./idem/...", "./dynamo/...", "./lambda/...", "./seal/...", "./internal/state/...", "./internal/cli/...", "./internal/readyworker/...", "./cmd/..."}},
	{"kms", []string{"./..."}},
	{"otel", []string{"./..."}},
}

// without are packages that have no mutants, with the reason.
var without = map[string]string{
	"idem/idemtest":                              "it is a test: broken stores and planted bugs examine it",
	"dynamo/dynamotest":                          "it starts a database for tests",
	"dynamo/dynamotest/ddblocal":                 "it starts a database for tests",
	"lambda/lambdatest":                          "it is a test: planted bugs examine it",
	"dynamo/internal/tabletest":                  "it is a test's table",
	"cmd/samekey-worker":                         "it is a main: the deployment plays it",
	"kms/cmd/samekey-keys":                       "it is a main: a test of kms builds it and asks it",
	"kms/cmd/samekey-worker":                     "it is a main: the deployment plays it",
	"internal/cli/doctor/doctortest":             "it is a test's account",
	"internal/cli/prove/cmd/function":            "it is a main: samekey prove on this machine plays it",
	"internal/cli/scaffold/files/cmd/api":        "it is a text that init writes",
	"internal/cli/scaffold/files/cmd/authorizer": "it is a text that init writes",
}

// more are packages whose tests hold another package, too: what the package is made for,
// or the only tests that it has.
var more = map[string][]string{
	"idem":                     {"internal/testkit/enginetest"},
	"idem/store":               {"idem"},
	"internal/state":           {"idem", "dynamo/stream"},
	"dynamo/internal/item":     {"dynamo"},
	"lambda/internal/envelope": {"lambda"},
	"lambda/internal/rawjson":  {"lambda"},
	"internal/cli/maketable":   {"cmd/samekey"},
	"internal/cli/stats":       {"cmd/samekey"},
	"internal/cli/tablescan":   {"cmd/samekey"},
	"internal/cli/tail":        {"cmd/samekey"},
	"internal/cli/names":       {"cmd/samekey"},
	"internal/cli/recordkey":   {"cmd/samekey"},
	"internal/cli/ui":          {"cmd/samekey"},
	"internal/cli/prove/fault": {"internal/cli/prove"},
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Name, Export      string
	DepOnly                            bool
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// products finds all packages and their mutants.
func products(ctx context.Context, root string) (all []*pkg, err error) {
	for _, m := range modules {
		found, err := productsOf(ctx, root, m.dir, m.pkgs)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func productsOf(ctx context.Context, root, module string, patterns []string) (all []*pkg, err error) {
	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Name,Export,DepOnly,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = filepath.Join(root, module), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := make(map[string]string)
	var list []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			list = append(list, l)
		}
	}
	for _, l := range list {
		dir, err := filepath.Rel(root, l.Dir)
		if err != nil {
			return nil, err
		}
		if dir = filepath.ToSlash(dir); without[dir] != "" {
			continue
		}
		p := &pkg{dir: dir, module: module, name: l.Name, files: make(map[string][]byte), tested: len(l.TestGoFiles)+len(l.XTestGoFiles) > 0}
		if err := p.find(l, exports); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// find finds the package's mutants.
func (p *pkg) find(l listed, exports map[string]string) error {
	fset := token.NewFileSet()
	files := make([]*ast.File, len(l.GoFiles))
	texts := make([][]byte, len(l.GoFiles))
	for i, name := range l.GoFiles {
		var err, perr error
		texts[i], err = os.ReadFile(filepath.Join(l.Dir, name))
		files[i], perr = parser.ParseFile(fset, filepath.Join(l.Dir, name), texts[i], parser.SkipObjectResolution)
		if err := errors.Join(err, perr); err != nil {
			return err
		}
	}
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object), Defs: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("nothing is known of %s", path)
		}
		return os.Open(exports[path])
	})}
	var err error
	if p.types, err = conf.Check(l.ImportPath, fset, files, info); err != nil {
		return err
	}
	for i, file := range files {
		name := path.Join(p.dir, l.GoFiles[i])
		f := &finder{pkg: p, file: name, text: texts[i], fset: fset, info: info}
		ast.Walk(f, file)
		p.mutants = append(p.mutants, f.found...)
		if len(f.edits) > 0 {
			p.files[name] = rewritten(texts[i], f.edits)
		}
	}
	return nil
}

// testers are the packages whose tests play the package's mutants, its own first.
func (p *pkg) testers() (dirs []string) {
	if p.tested {
		dirs = append(dirs, p.dir)
	}
	if p.own {
		return dirs
	}
	return append(dirs, more[p.dir]...)
}

// overlay writes the rewritten files to tmp, and returns the file for go build -overlay.
func overlay(root, tmp string, all []*pkg) (string, error) {
	replace := make(map[string]string)
	write := func(name string, text []byte) error {
		file := filepath.Join(tmp, strings.ReplaceAll(name, "/", "+"))
		replace[filepath.Join(root, filepath.FromSlash(name))] = file
		return os.WriteFile(file, text, 0o600)
	}
	for _, p := range all {
		if len(p.mutants) == 0 {
			continue
		}
		if err := write(path.Join(p.dir, "mutant_switch.go"), switchOf(p)); err != nil {
			return "", err
		}
		for name, text := range p.files {
			if err := write(name, text); err != nil {
				return "", err
			}
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	file := filepath.Join(tmp, "overlay.json")
	return file, errors.Join(err, os.WriteFile(file, b, 0o600))
}

// switchOf is the switch of a package.
func switchOf(p *pkg) []byte { return fmt.Appendf(nil, switchFile, p.name, p.dir) }
