package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed has the licences whose only condition is that the licence text accompanies a binary.
var allowed = []string{"Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "ISC"}

// module is a module that one of the repository's programs or packages links.
type module struct {
	Path, Version, Dir string
	Main               bool
}

// ours is the prefix of the repository's module paths.
const ours = "github.com/samekey/samekey"

// imported has the folders of the modules that users import or run.
var imported = []string{".", "cmd/samekey", "kms", "otel"}

// linked returns the modules that the programs and packages of the list imported link.
// Modules that only tests link are left out. root is the repository's folder.
func linked(root string) (modules []module, err error) {
	for _, dir := range imported {
		more, err := linkedBy(filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		modules = append(modules, more...)
	}
	slices.SortFunc(modules, func(a, b module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
	return slices.CompactFunc(modules, func(a, b module) bool { return a.Path == b.Path && a.Version == b.Version }), nil
}

// linkedBy returns the modules that the module in the folder root links, except the repository's
// own.
func linkedBy(root string) ([]module, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", "./...") //nolint:noctx // a tool for developers
	cmd.Dir, cmd.Stderr = root, os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	seen := make(map[string]module)
	for dec := json.NewDecoder(bytes.NewReader(raw)); ; {
		var pkg struct{ Module *module }
		err := dec.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if m := pkg.Module; m != nil && !m.Main && !strings.HasPrefix(m.Path, ours) {
			seen[m.Path] = *m
		}
	}
	var modules []module
	for _, m := range seen {
		modules = append(modules, m)
	}
	return modules, nil
}

// mostOf is the minimum percentage of known licence text in a licence file. The rest
// may be names and years.
const mostOf = 75.0

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([-.].*)?$`)

// licenceOf returns the licence of the module in the folder dir. It returns an error if
// a licence file isn't mostly known text, or has a licence that isn't allowed.
func licenceOf(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), "-SUMMARY") { // a SUMMARY only lists the licence files
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name())) //nolint:gosec // a file of the module cache
		if err != nil {
			return "", err
		}
		cov := licensecheck.Scan(text)
		if cov.Percent < mostOf {
			return "", fmt.Errorf("%s: %.0f %% of it is a known licence", e.Name(), cov.Percent)
		}
		for _, m := range cov.Match {
			if !slices.Contains(allowed, m.ID) {
				return "", fmt.Errorf("%s: %s is not allowed", e.Name(), m.ID)
			}
			if !slices.Contains(found, m.ID) {
				found = append(found, m.ID)
			}
		}
	}
	if len(found) == 0 {
		return "", errors.New("it has no licence file")
	}
	slices.Sort(found)
	return strings.Join(found, " AND "), nil
}

// licenceTable returns the table of LICENCES.md. The error names each module whose
// licence is unknown or not allowed.
func licenceTable(modules []module) (string, error) {
	var b strings.Builder
	var errs []error
	b.WriteString("| module | version | licence |\n| --- | --- | --- |\n")
	for _, m := range modules {
		licence, err := licenceOf(m.Dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
			licence = "?"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Path, m.Version, licence)
	}
	return b.String(), errors.Join(errs...)
}
