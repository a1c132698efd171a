package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// The first difference may be a line that only one text has.
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

// The command writes the file once, leaves a different file alone, and compares without writing.
func TestStackIsWrittenAndCompared(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Symlink(filepath.Join("not", "there"), "link"); err != nil {
		t.Fatal(err)
	}
	stack := func(args string, code int, want string) {
		t.Helper()
		var out strings.Builder
		got := run(t.Context(), environment{stdout: &out, stderr: &out, getenv: func(string) string { return "" }}, append([]string{"stack"}, strings.Fields(args)...))
		if got != code || !strings.Contains(out.String(), want) {
			t.Errorf("samekey stack %s: got %d, %q, want %d, %q", args, got, out.String(), code, want)
		}
	}
	is := func(file, want string) {
		t.Helper()
		if got := localtest.Read(t, file); got != want {
			t.Errorf("%s has another text", file)
		}
	}
	stack("--check", 1, "samekey.yaml does not exist: run samekey stack to write it")
	stack("", 0, "wrote samekey.yaml")
	is("samekey.yaml", deploy.Nested())
	stack("--check", 0, "samekey.yaml is up to date")
	localtest.Write(t, "samekey.yaml", strings.ReplaceAll(deploy.Nested(), "\n", "\r\n")) // as git writes it on Windows
	stack("", 0, "samekey.yaml is up to date")
	const changed = "Description: mine\n"
	localtest.Write(t, "samekey.yaml", changed)
	stack("--check", 1, "samekey.yaml differs from this version's template at line 1:")
	stack("", 1, "samekey.yaml differs from this version's template and was not changed; give --update to overwrite it. First difference: line 1:")
	is("samekey.yaml", changed)
	stack("--update", 0, "wrote samekey.yaml")
	is("samekey.yaml", deploy.Nested())
	stack("--standalone --update", 0, "wrote samekey.yaml")
	is("samekey.yaml", deploy.Standalone())
	stack("--terraform", 0, "wrote samekey.tf")
	is("samekey.tf", deploy.Terraform())
	stack("--terraform samekey/main.tf", 0, "wrote samekey/main.tf") // the folder doesn't exist
	is("samekey/main.tf", deploy.Terraform())
	stack("--standalone --terraform", 2, "give --standalone or --terraform, not both")
	stack("--check --update", 2, "give --check or --update, not both")
	stack("samekey", 1, "read samekey: is a directory")
	stack("samekey.tf/x", 1, "open samekey.tf/x: not a directory")
	stack("link", 1, "open link: no such file or directory")
	stack("link/x/y", 1, "mkdir link: file exists")
	for _, args := range []string{"", "--update"} {
		if code := run(t.Context(), environment{stdout: full{}, stderr: io.Discard, getenv: func(string) string { return "" }}, strings.Fields("stack full.yaml "+args)); code != 1 {
			t.Errorf("on a full disk: code %d", code)
		}
	}
}
