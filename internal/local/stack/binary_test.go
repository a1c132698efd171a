package stack

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestBinariesThatCannotRunAreRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || lambdaArch[runtime.GOARCH] == "" {
		t.Skip("there are no bootstraps for " + runtime.GOOS + "/" + runtime.GOARCH)
	}
	good, err := os.ReadFile(filepath.Join(stackDir, "dist", "bootstrap"))
	if err != nil {
		t.Fatal(err)
	}
	// The machine is the 16 bit number at 18, in the file's own byte order.
	foreign := append([]byte{}, good...)
	other := map[string]byte{"amd64": 183, "arm64": 62}
	foreign[18], foreign[19] = other[runtime.GOARCH], 0

	dir := t.TempDir()
	file := func(name string, data []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	advice := "make build ARCH=" + lambdaArch[runtime.GOARCH]
	for path, want := range map[string]string{
		file("good", good, 0o700):                  "",
		file("script", []byte("#!/bin/sh"), 0o700): "",
		file("foreign", foreign, 0o700):            advice,
		filepath.Join(dir, "missing"):              advice,
		file("plain", good, 0o600):                 "is not a program",
		dir:                                        "is not a program",
	} {
		err := checkBinary(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
