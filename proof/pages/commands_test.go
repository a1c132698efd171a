package pages_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testCommand = regexp.MustCompile(`go test (?:-C (\S+) )?(\./[\w./-]+) -run (?:'([^']+)'|([^\s'` + "`" + `]+))`)
	testNames   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
)

// A command of a page runs tests: each alternative of its -run matches one in the
// folder that it names. Otherwise go test would say "no tests to run", and pass.
func TestCommandsRunTests(t *testing.T) {
	t.Parallel()
	commands := 0
	for page, text := range pages(t) {
		if strings.HasPrefix(page, "docs/inside/decisions/") || page == "CHANGELOG.md" {
			continue // records of their time
		}
		for _, m := range testCommand.FindAllStringSubmatch(text, -1) {
			commands++
			folder := path.Join(m[1], m[2])
			names := testsOf(t, folder)
			for pattern := range strings.SplitSeq(strings.ReplaceAll(m[3]+m[4], `\|`, "|"), "|") {
				top, _, _ := strings.Cut(pattern, "/")
				wanted, err := regexp.Compile(top)
				if err != nil {
					t.Errorf("%s: %s: %v", page, m[0], err)
				} else if !slices.ContainsFunc(names, wanted.MatchString) {
					t.Errorf("%s: %s: no test of %s matches %q", page, m[0], folder, top)
				}
			}
		}
	}
	if commands < 10 {
		t.Errorf("%d commands found: something is wrong with this test", commands)
	}
}

// A command of samekey that a page names is one that the binary has: docs/use/cli.md, which is
// made from it, describes it.
func TestCommandsOfSamekeyExist(t *testing.T) {
	t.Parallel()
	all := pages(t)
	named := regexp.MustCompile("`samekey ([a-z]+)")
	known := map[string]bool{"help": true, "completion": true, "version": true}
	for _, m := range regexp.MustCompile(`(?m)^#+ `+"`?"+`samekey ([a-z]+)`).FindAllStringSubmatch(all["docs/use/cli.md"], -1) {
		known[m[1]] = true
	}
	if len(known) < 15 {
		t.Errorf("%d commands are known: something is wrong with this test", len(known))
	}
	for page, text := range all {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !known[m[1]] {
				t.Errorf("%s names samekey %s, which doesn't exist", page, m[1])
			}
		}
	}
}

func testsOf(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testNames.FindAllStringSubmatch(string(b), -1) {
			names = append(names, m[1])
		}
	}
	return names
}
