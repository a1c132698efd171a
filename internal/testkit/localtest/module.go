package localtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Module makes a module of a user in a new folder, with the same dependencies as this
// repository and the repository itself, and returns the folder. root is the
// repository's root, from the test.
func Module(t *testing.T, root string) string {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	mod := Read(t, filepath.Join(root, "go.mod"))
	const name = "github.com/samekey/samekey"
	if !strings.HasPrefix(mod, "module "+name+"\n") {
		t.Fatalf("%s is no root of this repository", root)
	}
	mod = strings.Replace(mod, name, "example.com/app", 1) + "\nrequire " + name + " v0.0.0\n\nreplace " + name + " => " + root + "\n"
	dir := t.TempDir()
	Write(t, filepath.Join(dir, "go.mod"), mod)
	Write(t, filepath.Join(dir, "go.sum"), Read(t, filepath.Join(root, "go.sum")))
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

// Write writes a file, and makes its folder.
func Write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// WriteProgram writes a program in the place of another, as a compiler does: a process
// may still run the old one.
func WriteProgram(t *testing.T, path, program string) {
	t.Helper()
	next := path + ".next"
	Write(t, next, program)
	if err := errors.Join(os.Chmod(next, 0o700), os.Rename(next, path)); err != nil {
		t.Fatal(err)
	}
}
