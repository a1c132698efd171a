package localtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Module makes a user's module in a new folder, and returns the folder. The module
// requires the library, and all that another module of the repository requires. The
// parameter root is the path from the test's folder to the repository's root. The
// parameter of is the path from the root to the other module.
func Module(t *testing.T, root, of string) string {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	const name = "github.com/samekey/samekey"
	var mod strings.Builder
	for line := range strings.Lines(Read(t, filepath.Join(root, of, "go.mod"))) {
		switch {
		case strings.HasPrefix(line, "module "+name):
			line = "module example.com/app\n"
		case strings.Contains(line, name):
			continue // the lines about the library are written below
		}
		mod.WriteString(line)
	}
	mod.WriteString("\nrequire " + name + " v0.0.0\n\nreplace " + name + " => " + root + "\n")
	dir := t.TempDir()
	Write(t, filepath.Join(dir, "go.mod"), mod.String())
	Write(t, filepath.Join(dir, "go.sum"), Read(t, filepath.Join(root, of, "go.sum")))
	return dir
}

// Read returns a file's text.
func Read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Write writes a file, and makes the file's folder if necessary.
func Write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// WriteProgram puts a new file in the place of a program's file, as a compiler does. A
// process that runs the old program can go on.
func WriteProgram(t *testing.T, path, program string) {
	t.Helper()
	next := path + ".next"
	Write(t, next, program)
	if err := errors.Join(os.Chmod(next, 0o700), os.Rename(next, path)); err != nil {
		t.Fatal(err)
	}
}
