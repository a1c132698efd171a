package main

import (
	"errors"
	"fmt"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	modulepath "golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

func moduleCache() (string, error) {
	out, err := exec.Command("go", "env", "GOMODCACHE").Output() //nolint:noctx // a tool for developers
	return strings.TrimSpace(string(out)), err
}

func cachedDir(cache, path, version string) (string, error) {
	escaped, err := modulepath.EscapePath(path)
	if err != nil {
		return "", err
	}
	v, err := modulepath.EscapeVersion(version)
	return filepath.Join(cache, escaped+"@"+v), err
}

// errIncompatible is the error for incompatible changes that the rules of compareAPI
// forbid.
var errIncompatible = errors.New("the API has incompatible changes")

// compareAPI prints how the exported API of the module in the folder root has changed
// since the module's last tag. From 1.0 on, an incompatible change is an error. Before
// 1.0 it needs a new minor version, and is an error only if strict is set.
func compareAPI(out io.Writer, root string, strict bool) error {
	tag, err := lastTag(root)
	if err != nil {
		return err
	}
	if tag == "" {
		fmt.Fprintln(out, "api: no tag yet: there is nothing to compare with")
		return nil
	}
	old, err := os.MkdirTemp("", "api")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(old) }()
	if err := checkOut(root, tag, old); err != nil {
		return err
	}
	was, err := exported(old)
	if err != nil {
		return fmt.Errorf("%s: %w", tag, err)
	}
	is, err := exported(root)
	if err != nil {
		return err
	}
	incompatible := report(out, tag, was, is)
	if incompatible && (strict || semver.Major(tag) != "v0") {
		return fmt.Errorf("%w since %s", errIncompatible, tag)
	}
	if incompatible {
		fmt.Fprintln(out, "api: the next version is a minor one")
	}
	return nil
}

// report prints the changes and reports whether one is incompatible.
func report(out io.Writer, tag string, was, is map[string]*types.Package) (incompatible bool) {
	paths := make([]string, 0, len(was)+len(is))
	for path := range was {
		paths = append(paths, path)
	}
	for path := range is {
		if was[path] == nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		switch {
		case is[path] == nil:
			fmt.Fprintf(out, "%s: the package is gone\n", path)
			incompatible = true
		case was[path] == nil:
			fmt.Fprintf(out, "%s: new since %s\n", path, tag)
		default:
			for _, c := range apidiff.Changes(was[path], is[path]).Changes {
				kind := "compatible"
				if !c.Compatible {
					kind, incompatible = "INCOMPATIBLE", true
				}
				fmt.Fprintf(out, "%s: %s: %s\n", path, kind, c.Message)
			}
		}
	}
	return incompatible
}

// lastTag returns the newest release tag of the root module, or "" if there is none.
func lastTag(root string) (string, error) {
	out, err := git(root, "tag", "--merged", "HEAD")
	if err != nil {
		return "", err
	}
	last := ""
	for tag := range strings.FieldsSeq(out) { // IsValid skips a nested module's tag, which begins with the module's folder
		if semver.IsValid(tag) && semver.Prerelease(tag) == "" && (last == "" || semver.Compare(tag, last) > 0) {
			last = tag
		}
	}
	return last, nil
}

// checkOut copies the tree of a tag to dir, without touching the repository.
func checkOut(root, tag, dir string) error {
	archive := filepath.Join(dir, "tree.tar")
	if _, err := git(root, "archive", "-o", archive, tag); err != nil {
		return err
	}
	if out, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil { //nolint:noctx // a tool for developers
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	return os.Remove(archive)
}

func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...) //nolint:gosec,noctx // a tool for developers
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// exported returns the importable packages of the module in the folder dir.
func exported(dir string) (map[string]*types.Package, error) {
	pkgs, err := packages.Load(&packages.Config{Dir: dir, Mode: packages.LoadTypes | packages.NeedModule}, "./...")
	if err != nil {
		return nil, err
	}
	all := make(map[string]*types.Package)
	var errs []error
	for _, p := range pkgs {
		for _, err := range p.Errors {
			errs = append(errs, err)
		}
		private := strings.Contains(p.PkgPath+"/", "/internal/") || p.Name == "main" || strings.Contains(p.PkgPath, "/examples/")
		if !private && p.Types != nil {
			all[p.PkgPath] = p.Types
		}
	}
	return all, errors.Join(errs...)
}
