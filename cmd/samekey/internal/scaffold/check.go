package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
)

// ErrNotInit says that Init was never run in a folder.
var ErrNotInit = errors.New("no " + memoryFile + " in this folder: run samekey init first")

// Check writes a diff to w. Applied in dir, the diff replaces the user's files with
// this version's files. If the diff is empty, changes is false. Check leaves out files
// that the user has removed. Check also leaves out files that are the same in this
// version as in the version that Init wrote, whether or not the user has changed them.
func Check(ctx context.Context, dir string, w io.Writer) (changes bool, err error) {
	known, err := readMemory(dir)
	if err != nil {
		return false, err
	}
	if known == nil {
		return false, ErrNotInit
	}
	mod, err := readModule(ctx, dir)
	if err != nil {
		return false, err
	}
	all, err := files(mod.path, known.example)
	if err != nil {
		return false, err
	}
	for _, f := range all {
		was, known := known.sums[f.path]
		if was == sum(f.text) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.path)))
		there := err == nil
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, err
		case !there && known, sum(string(text)) == sum(f.text):
			continue
		}
		changes = true
		old := "a/" + f.path
		switch {
		case !there:
			old = "/dev/null"
		case sum(string(text)) != was:
			fmt.Fprintf(w, "# You have changed %s: the diff also reverts your changes.\n", f.path)
		}
		// git apply and patch need the diff without the line "diff old new"
		fmt.Fprintf(w, "%s", withoutHead(diff.Diff(old, text, "b/"+f.path, []byte(f.text))))
	}
	return changes, nil
}

func withoutHead(d []byte) []byte {
	for i, c := range d {
		if c == '\n' {
			return d[i+1:]
		}
	}
	return d
}
