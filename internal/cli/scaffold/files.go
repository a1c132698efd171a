// Package scaffold writes the files of a new application into a user's module, and
// tells what a newer version of them would change.
//
// The files are in the folder files, as a user gets them, and one is the template of
// package deploy; the Go files are a package of this module as well, so that they are
// compiled, tested and linted here. [Init] writes
// them, all or none, and overwrites nothing. [Check] compares.
package scaffold

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/samekey/samekey/deploy"
)

//go:embed all:files
var embedded embed.FS

// file is a file as this version writes it. Its path is seen from the module's folder,
// with slashes.
type file struct{ path, text string }

// defaultStack is the stack's name in the embedded files.
const defaultStack = "samekey-app"

// files returns the files for a module, in the order of their paths.
func files(module string) ([]file, error) {
	var all []file
	all = append(all, file{path: deploy.File, text: deploy.Nested()})
	err := fs.WalkDir(embedded, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		all = append(all, file{
			path: strings.TrimPrefix(name, "files/"),
			text: strings.ReplaceAll(string(text), defaultStack, stackName(module)),
		})
		return nil
	})
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return all, err
}

var notInStackNames = regexp.MustCompile(`[^A-Za-z0-9-]+`)

// stackName makes a name for a CloudFormation stack of the last part of a module's path.
func stackName(module string) string {
	base := path.Base(module)
	if version.MatchString(base) {
		base = path.Base(path.Dir(module))
	}
	name := strings.Trim(notInStackNames.ReplaceAllString(base, "-"), "-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "app-" + name
	}
	return strings.TrimSuffix(name, "-")
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// sum is a file's checksum. Line ends count as those of Unix, whatever git made of them.
func sum(text string) string {
	h := sha256.Sum256([]byte(strings.ReplaceAll(text, "\r\n", "\n")))
	return hex.EncodeToString(h[:])
}
