package pages_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of a page, with what stands before it.
var block = regexp.MustCompile("(?ms)^ *(?:<!-- from (\\S+) -->\n *)?```([a-z]+)\n(.*?)^ *```$")

// A block of Go is a whole program, which is compiled, or an excerpt of a file that
// is compiled and tested, which the comment before it names. A line of nothing
// but … leaves something out.
func TestGoBlocks(t *testing.T) {
	t.Parallel()
	programs := make(map[string]string) // name → source
	for page, text := range pages(t) {
		excerpts, inGo := 0, 0
		for i, m := range block.FindAllStringSubmatch(text, -1) {
			from, language, source := m[1], m[2], m[3]
			if from != "" {
				excerpts++
			}
			if strings.Contains(source, "lambda.WrapEach(") && strings.Contains(source, "idem.New(") && !strings.Contains(source, "o.Retention = ") {
				t.Errorf("%s, block %d: a source's records outlast the default of Options.Retention", page, i+1)
			}
			if language == "go" {
				inGo++
			}
			name := fmt.Sprintf("%s, block %d", page, i+1)
			switch {
			case from != "":
				isExcerpt(t, name, from, source)
			case language != "go":
			case strings.HasPrefix(source, "package main\n"):
				programs[name] = source
				if strings.Contains(source, "lambda.HTTPAPI") && !regexp.MustCompile(`authorizer|OneScope|o\.Scope`).MatchString(source) {
					t.Errorf("%s refuses each keyed request, and doesn't say that it needs an authorizer or idem.OneScope", name)
				}
			default:
				t.Errorf("%s is neither a program nor said to be <!-- from … --> a file", name)
			}
		}
		if strings.Count(text, "<!-- from ") != excerpts || strings.Count(text, "```go") != inGo {
			t.Errorf("%s: a block is not understood: <!-- from … -->, if any, stands right above it, and it begins its line", page)
		}
	}
	if len(programs) == 0 {
		t.Fatal("not even the README's program was found: something is wrong with this test")
	}
	compile(t, programs)
}

// isExcerpt reports where source is not in the file from, line by line, but for
// indentation.
func isExcerpt(t *testing.T, name, from, source string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, from))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	at, file := 0, lines(string(b))
	for part := range strings.SplitSeq("\n"+strings.Join(lines(source), "\n")+"\n", "\n…\n") {
		part = strings.Trim(part, "\n")
		rest := "\n" + strings.Join(file[at:], "\n") + "\n"
		before, _, found := strings.Cut(rest, "\n"+part+"\n")
		if !found {
			t.Errorf("%s: %s doesn't have, from line %d on:\n%s", name, from, at+1, part)
			return
		}
		at += strings.Count(before, "\n") + strings.Count(part, "\n")
	}
}

func lines(s string) []string {
	all := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, l := range all {
		all[i] = strings.TrimSpace(l)
	}
	return all
}

// compile compiles programs as if they were packages of this module. It links none, which costs more.
func compile(t *testing.T, programs map[string]string) {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	replace := make(map[string]string)
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	args := []string{"list", "-export", "-overlay=" + overlay}
	for name, source := range programs {
		dir := fmt.Sprintf("program%d", len(replace)+1)
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte("// "+name+"\n\n"+source), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, dir, "main.go")] = file
		args = append(args, "./"+dir)
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
