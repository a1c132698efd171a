package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page's first command works as printed, with another URL.
func TestCheckAsThePageHasIt(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/use/check.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?s)\nsamekey (check .*?)\n` + "```").FindSubmatch(page)
	if command == nil {
		t.Fatal("docs/use/check.md has no command any more")
	}
	url, _ := wrongAPI(t)
	const printed = "https://api.example.com/orders"
	args := words(string(command[1]))
	for i, a := range args {
		args[i] = strings.Replace(a, printed, url, 1)
	}
	env := map[string]string{"TOKEN": callers["JANE"], "OTHER_TOKEN": callers["OMAR"]}
	code, stdout, stderr := callWith(t, "y\n", env, args...)
	if code != 0 || !strings.Contains(string(command[1]), printed) || strings.Contains(stdout, "?") {
		t.Errorf("code %d\n%s%s", code, stderr, stdout)
	}
}

// words splits a shell command with single quotes and continued lines.
func words(command string) (all []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|([^\s\\']+)`).FindAllStringSubmatch(command, -1) {
		all = append(all, m[1]+m[2])
	}
	return all
}
