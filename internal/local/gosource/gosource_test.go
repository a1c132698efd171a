package gosource

import (
	"context"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

// app makes a module with a program, a package of its own, an embedded file, and a
// module that a replace takes from a folder.
func app(t *testing.T) (dir string, p Package) {
	t.Helper()
	dir = t.TempDir()
	for path, text := range map[string]string{
		"app/go.mod":            "module example.com/app\n\ngo 1.26\n\nrequire example.com/lib v0.0.0\n\nreplace example.com/lib => ../lib\n",
		"app/cmd/main.go":       "package main\n\nimport (\n\t_ \"embed\"\n\n\t\"example.com/app/words\"\n\t\"example.com/lib\"\n)\n\n//go:embed data/text.txt\nvar text string\n\nfunc main() { print(text, words.One, lib.Two) }\n",
		"app/cmd/data/text.txt": "text",
		"app/cmd/main_test.go":  "package main\n",
		"app/words/words.go":    "package words\n\nconst One = \"one\"\n",
		"app/other/other.go":    "package other\n",
		"lib/go.mod":            "module example.com/lib\n\ngo 1.26\n",
		"lib/lib.go":            "package lib\n\nconst Two = \"two\"\n",
	} {
		localtest.Write(t, filepath.Join(dir, path), text)
	}
	return dir, Package{Path: ".", Dir: filepath.Join(dir, "app/cmd")}
}

func TestInputsAreWhatTheProgramIsMadeOf(t *testing.T) {
	t.Parallel()
	dir, p := app(t)
	in, err := p.Inputs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path         string
		program, all bool // it, and all sources of the modules, have changed
	}{
		{"app/cmd/notes.txt", false, false},
		{"app/cmd/main_test.go", false, false},
		{"app/other/other.go", false, true},
		{"app/cmd/data/text.txt", true, true},
		{"app/cmd/new.go", true, true},
		{"app/words/words.go", true, true},
		{"app/go.sum", true, true},
		{"lib/lib.go", true, true},
	} {
		before, all := in.Stamp(), in.StampModules()
		localtest.Write(t, filepath.Join(dir, tt.path), "package changed // and longer than before, whatever it was: "+strings.Repeat("x", 500))
		if program, modules := !maps.Equal(before, in.Stamp()), !maps.Equal(all, in.StampModules()); program != tt.program || modules != tt.all {
			t.Errorf("%s: changed %t, the modules %t, want %t, %t", tt.path, program, modules, tt.program, tt.all)
		}
	}
}

func TestBuildTellsAnotherProgramFromTheSame(t *testing.T) {
	t.Parallel()
	dir, p := app(t)
	out := filepath.Join(t.TempDir(), "fn", "bootstrap")
	says := func(want string) {
		t.Helper()
		if got, err := exec.CommandContext(t.Context(), out).CombinedOutput(); err != nil || string(got) != want {
			t.Errorf("the program says %q, %v", got, err)
		}
	}
	build := func(want bool) {
		t.Helper()
		before, after := make(Stamp), make(Stamp)
		before.File(out)
		err := p.Build(t.Context(), out)
		after.File(out)
		if changed := !maps.Equal(before, after); changed != want || err != nil {
			t.Errorf("changed: %v, %v", changed, err)
		}
	}
	build(true)
	says("textonetwo")
	localtest.Write(t, filepath.Join(dir, "app/other/other.go"), "package other\n\nconst New = 1\n")
	build(false)
	localtest.Write(t, filepath.Join(dir, "lib/lib.go"), "package lib\n\nconst Two = \"drei\"\n")
	build(true)
	says("textonedrei")
	localtest.Write(t, filepath.Join(dir, "lib/lib.go"), "package lib\n\nconst Two = drei\n")
	if err := p.Build(t.Context(), out); err == nil || !strings.Contains(err.Error(), "undefined: drei") {
		t.Errorf("error %v", err)
	}
	says("textonedrei")
}

func TestWhatIsNoProgramIsRefused(t *testing.T) {
	t.Parallel()
	dir, p := app(t)
	for want, p := range map[string]Package{
		"is package words, not a program": {Path: "example.com/app/words", Dir: p.Dir},
		"no such file or directory":       {Path: ".", Dir: filepath.Join(dir, "nowhere")},
		"example.com/nowhere":             {Path: "example.com/nowhere", Dir: p.Dir},
	} {
		if _, err := p.Inputs(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Inputs(ctx); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMissingGoIsNamed(t *testing.T) {
	_, p := app(t)
	t.Setenv("PATH", t.TempDir())
	_, listErr := p.Inputs(t.Context())
	buildErr := p.Build(t.Context(), filepath.Join(t.TempDir(), "bootstrap"))
	for _, err := range []error{listErr, buildErr} {
		if err == nil || !strings.Contains(err.Error(), "install Go") {
			t.Errorf("error %v", err)
		}
	}
}
