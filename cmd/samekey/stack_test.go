package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// The first difference is that of a line, also of one that isn't there.
func TestFirstDifference(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"a", "b", "line 1:\n- a\n+ b"},
		{"a\nb\nc\n", "a\nx\ny\n", "line 2:\n- b\n+ x"},
		{"a", "a\nb\n", "line 2:\n- \n+ b"},
		{"a\nb\n", "a", "line 2:\n- b\n+ "},
		{"a", "a\n", "line 2:\n- \n+ "},
	} {
		if got := firstDifference(tt[0], tt[1]); got != tt[2] {
			t.Errorf("of %q and %q: %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

// The file is written once, left alone if it differs, and compared without being touched.
func TestStackIsWrittenAndCompared(t *testing.T) {
	var seen strings.Builder
	t.Run("in a folder", func(t *testing.T) { playStack(t, &seen) })
	golden(t, "stack.txt", seen.String())
}

func playStack(t *testing.T, seen io.Writer) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Symlink(filepath.Join("not", "there"), "link"); err != nil {
		t.Fatal(err)
	}
	stack := func(args string) {
		t.Helper()
		var out strings.Builder
		code := run(t.Context(), environment{stdout: &out, stderr: &out, getenv: func(string) string { return "" }}, append([]string{"stack"}, strings.Fields(args)...))
		fmt.Fprintf(seen, "$ samekey stack %s\n%s[%d]\n", args, out.String(), code)
	}
	is := func(file, want string) {
		t.Helper()
		if got := localtest.Read(t, file); got != want {
			t.Errorf("%s has another text", file)
		}
	}
	stack("--check")
	stack("")
	is("samekey.yaml", deploy.Nested())
	stack("--check")
	localtest.Write(t, "samekey.yaml", strings.ReplaceAll(deploy.Nested(), "\n", "\r\n")) // by git
	stack("")
	const changed = "Description: mine\n"
	localtest.Write(t, "samekey.yaml", changed)
	stack("--check")
	stack("")
	is("samekey.yaml", changed)
	stack("--update")
	is("samekey.yaml", deploy.Nested())
	stack("--standalone --update")
	is("samekey.yaml", deploy.Standalone())
	stack("--terraform")
	is("samekey.tf", deploy.Terraform())
	stack("--terraform samekey/main.tf") // a folder that isn't there
	is("samekey/main.tf", deploy.Terraform())
	for _, wrong := range []string{"--standalone --terraform", "--check --update", "samekey", "samekey.tf/x", "link", "link/x/y"} {
		stack(wrong)
	}
	for _, args := range []string{"", "--update"} {
		if code := run(t.Context(), environment{stdout: full{}, stderr: io.Discard, getenv: func(string) string { return "" }}, strings.Fields("stack full.yaml "+args)); code != 1 {
			t.Errorf("on a full disk: code %d", code)
		}
	}
}
