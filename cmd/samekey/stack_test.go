package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samekey/samekey/deploy"
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
	t.Parallel()
	file := filepath.Join(t.TempDir(), "samekey.yaml")
	var out, errs bytes.Buffer
	stack := func(want int, args ...string) {
		t.Helper()
		out.Reset()
		errs.Reset()
		env := environment{stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}
		if code := run(t.Context(), env, append(append([]string{"stack"}, args...), file)); code != want {
			t.Fatalf("samekey stack %v: exit code %d, want %d\n%s%s", args, code, want, out.String(), errs.String())
		}
	}
	text := func() string {
		t.Helper()
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}

	stack(1, "-check")
	stack(0)
	if text() != deploy.Nested() {
		t.Error("another template was written")
	}
	stack(0, "-check")
	stack(0)

	changed := strings.Replace(text(), "Timeout: 120", "Timeout: 121", 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-check"}, {}} {
		stack(1, args...)
		if got := errs.String(); !strings.Contains(got, "  -       Timeout: 121\n  +       Timeout: 120") {
			t.Errorf("samekey stack %v tells %s", args, got)
		}
		if text() != changed {
			t.Fatalf("samekey stack %v changed the file", args)
		}
	}
	stack(0, "-update")
	if text() != deploy.Nested() {
		t.Error("-update left the file as it was")
	}
	stack(0, "-standalone", "-update")
	if text() != deploy.Standalone() {
		t.Error("-standalone writes another template")
	}
	stack(2, "-standalone", "-terraform")
	file = filepath.Join(filepath.Dir(file), "samekey", "main.tf") // a folder that isn't there
	stack(0, "-terraform")
	if text() != deploy.Terraform() {
		t.Error("-terraform writes another module")
	}
	stack(2, "-check", "-update")
}
