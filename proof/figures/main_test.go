package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pageBefore = `# Proof

| claim | figures | command | date, commit |
| --- | --- | --- | --- |
| holds | old | ` + "`printf '  a_test.go:1: FIGURES 1234567 states\\nFIGURES 12 rules\\n'`" + ` | 2026-01-01, COMMIT |
| fails | old | ` + "`false`" + ` | 2026-01-01, COMMIT |
| says nothing | old | ` + "`true`" + ` | 2026-01-01, COMMIT |

| another | table |
`

// A command's figures go into its row. The row of a command that fails, or says none, stays.
func TestFiguresAreWritten(t *testing.T) {
	t.Parallel()
	tab, err := read(pageBefore)
	if err != nil {
		t.Fatal(err)
	}
	b := bench{root: t.TempDir(), out: t.Output()}
	var got []string
	for _, r := range tab.rows {
		figures, err := b.measure(t.Context(), tab.command(r))
		if err == nil {
			r.cells[tab.figures] = figures
		}
		got = append(got, r.cells[tab.figures])
	}
	if diff := cmp.Diff([]string{"1,234,567 states, 12 rules", "old", "old"}, got); diff != "" {
		t.Error("figures (-want +got):", diff)
	}
	if want := strings.Replace(pageBefore, "| old |", "| 1,234,567 states, 12 rules |", 1); tab.String() != want {
		t.Error("page (-want +got):", cmp.Diff(want, tab.String()))
	}
}

// Figures are old if the library has changed since, and not if its tests or a page have.
func TestOldFiguresAreRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	b := bench{root: root, out: t.Output()}
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(file, text string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", file)
		return git("rev-parse", "HEAD")
	}
	git("init", "-q")
	first := commit("idem/engine.go", "package idem\n\nfunc A() int { return 1 } // one")
	for _, step := range []struct{ file, text, commit, want string }{
		{"idem/engine_test.go", "package idem", first, ""},
		{"README.md", "Samekey", first, ""},
		{"idem/engine.go", "package idem\n\n// A returns 1.\nfunc A() int { return 1 }\n", first, ""},
		{"idem/engine.go", "package idem\n\n// A returns 1.\nfunc A() int { return 2 }\n", first, "idem/engine.go and 0 other files have changed"},
		{"CHANGELOG.md", "0.1.0", "0123456789ab", "couldn't tell"},
	} {
		commit(step.file, step.text)
		tab, err := read(strings.ReplaceAll(pageBefore, "COMMIT", step.commit))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := b.check(t.Context(), tab); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, step.want) || (got == "") != (step.want == "") {
			t.Errorf("after a change of %s: got %q, want %q", step.file, got, step.want)
		}
	}
}
