// Package scaffold writes the files of a new application into a user's module, and
// shows what a newer version of the files would change.
//
// Most files are in the folder "files". The template samekey.yaml comes from package
// deploy. The authorizer and the examples come from package checkout. This repository
// compiles, tests and lints the Go files as packages of its own. [Init] writes all
// missing files or, if it fails, none. [Check] compares the user's files with this
// version.
package scaffold

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/examples/checkout"
)

//go:embed all:files
var embedded embed.FS

// file is a file that this version writes. path is relative to the module's folder,
// with slashes.
type file struct{ path, text string }

// defaultStack is the stack's name in the embedded files.
const defaultStack = "samekey-app"

// examples are the applications that Init can write in place of the first handler. An
// example's files replace cmd/api and the template. If an example has an additional
// function, the Makefile gets a line that builds this function.
var examples = map[string]struct {
	files    embed.FS
	function string // a function besides api and authorizer
}{
	"checkout": {checkout.Files, "webhook"},
}

// Examples returns the names for Options.Example.
func Examples() []string { return slices.Sorted(maps.Keys(examples)) }

// files returns the files for a module, in the order of their paths.
func files(module, example string) ([]file, error) {
	other, named := examples[example]
	if example != "" && !named {
		return nil, fmt.Errorf("unknown example %q: give one of %s", example, strings.Join(Examples(), ", "))
	}
	all := []file{{path: deploy.File, text: deploy.Nested()}}
	add := func(from embed.FS, folder string) error {
		return fs.WalkDir(from, folder, func(name string, d fs.DirEntry, _ error) error { // the error is always nil, because the files are embedded
			if d.IsDir() {
				return nil
			}
			text, err := from.ReadFile(name)
			if path := strings.TrimPrefix(name, "files/"); folder != "files" || !named || path != "template.yaml" && !strings.HasPrefix(path, "cmd/api/") {
				all = append(all, file{path, strings.ReplaceAll(string(text), defaultStack, stackName(module))})
			}
			return err
		})
	}
	err := add(embedded, "files")
	if !named {
		err = errors.Join(err, add(checkout.Files, "cmd/authorizer"))
	} else {
		err = errors.Join(err, add(other.files, "."))
		for i, f := range all {
			all[i].text = strings.ReplaceAll(f.text, "../../deploy/"+deploy.File, deploy.File)
			if f.path == "Makefile" {
				line := func(function string) string {
					return "\t$(GO_BUILD) -o dist/" + function + "/bootstrap ./cmd/" + function + "\n"
				}
				all[i].text = strings.ReplaceAll(f.text, line("authorizer"), line("authorizer")+line(other.function))
			}
		}
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return all, err
}

var notInStackNames = regexp.MustCompile(`[^A-Za-z0-9-]+`)

// stackName makes the name of a CloudFormation stack from the last part of a module's
// path.
func stackName(module string) string {
	base := path.Base(module)
	if version.MatchString(base) {
		base = path.Base(path.Dir(module))
	}
	name := strings.Trim(notInStackNames.ReplaceAllString(base, "-"), "-")
	if name == "" || name[0] <= '9' {
		name = "app-" + name
	}
	return strings.TrimSuffix(name, "-")
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// sum returns a file's checksum. It reads \r\n as \n, because git may have changed the
// line ends.
func sum(text string) string {
	h := sha256.Sum256([]byte(strings.ReplaceAll(text, "\r\n", "\n")))
	return hex.EncodeToString(h[:])
}
