package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command's help has an example, which the command understands.
func TestExamples(t *testing.T) {
	t.Parallel()
	root := newRoot(environment{getenv: func(string) string { return "" }})
	seen := 0
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
				visit(sub)
			}
		}
		seen++
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			_, line, _ = strings.Cut(line, "samekey ")
			line, _, _ = strings.Cut("samekey "+line, "  #")
			words := commandWords(strings.TrimSpace(line))
			named, rest, err := root.Find(words[1:])
			switch {
			case err != nil, c != root && named != c && named.Parent() != c:
				t.Errorf("%s: %q is of %v, %v", c.CommandPath(), line, named, err)
			case named == root || named.Name() == "help":
			default:
				if err := named.ParseFlags(rest); err != nil {
					t.Errorf("%q: %v", line, err)
				}
			}
		}
	}
	visit(root)
	if seen != len(examples) {
		t.Errorf("%d commands, %d with examples", seen, len(examples))
	}
}

// A mistyped word is answered with the command or the flag that is meant.
func TestDidYouMean(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"setle":              "unknown command setle (did you mean samekey settle?); samekey help lists the commands",
		"show v1#a#b":        "did you mean samekey get?",
		"LS":                 "did you mean samekey list?",
		"redr":               "did you mean samekey redrive?",
		"SET":                "did you mean samekey settle?",
		"check --REQ 1":      "did you mean --requests?",
		"referenc":           "unknown command referenc; samekey help lists the commands",
		"settle --reslt {}":  "unknown flag: --reslt (did you mean --result?)",
		"list --resaon x":    "did you mean --reason?",
		"get -namspace shop": "did you mean --namespace?",
	} {
		code, stdout, stderr := call(t, nil, strings.Fields(typed)...)
		if code != exitWrong || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %q, %q; want %q", typed, code, stdout, stderr, want)
		}
	}
	for _, typed := range []string{"zzzzzz", "local --nonsense", "list --x"} {
		if _, _, stderr := call(t, nil, strings.Fields(typed)...); strings.Contains(stderr, "did you mean") {
			t.Errorf("%s: %q", typed, stderr)
		}
	}
	if code, _, stderr := call(t, nil); code != exitWrong || !strings.Contains(stderr, "Examples:\n  samekey init") {
		t.Errorf("alone: code %d, %q", code, stderr)
	}
}
