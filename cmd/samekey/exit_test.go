package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// One dash before the name of a flag works like two; a value with a dash is unchanged.
func TestOneDash(t *testing.T) {
	t.Parallel()
	root := newRoot(environment{getenv: func(string) string { return "" }})
	for typed, want := range map[string]string{
		"stack -check":                             "stack --check",
		"stack -check=false f":                     "stack --check=false f",
		"-version":                                 "--version",
		"vet -lock -f -update ./...":               "vet --lock -f --update ./...",
		"check -body -json -json u":                "check --body -json --json u",
		"check --body -json -json u":               "check --body -json --json u",
		"check -body=-json -h - u":                 "check --body=-json -h - u",
		"check u -- -json":                         "check u -- -json",
		"nonsense -flag":                           "nonsense --flag",
		"__complete stack -":                       "__complete stack -",
		"__complete stack -ch":                     "__complete stack -ch",
		"local -env A=-b -parameter -watch -ttl":   "local --env A=-b --parameter -watch --ttl",
		"doctor -as operator -strict":              "doctor --as operator --strict",
		"local --nonsense -watch -api-port 1 -ttl": "local --nonsense --watch --api-port 1 --ttl",
	} {
		if diff := cmp.Diff(strings.Fields(want), doubleDashed(root, strings.Fields(typed))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", typed, diff)
		}
	}
}

// The help of every command has the exit codes, and a short text in a uniform style.
func TestEveryCommandTellsItsExitCodes(t *testing.T) {
	t.Parallel()
	root := newRoot(environment{getenv: func(string) string { return "" }})
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			all(sub)
		}
		if !c.Runnable() || c.Hidden || c == root || slices.Contains([]string{"help", "completion"}, c.Name()) {
			return
		}
		exits := c.Annotations[annotationExits]
		if !strings.Contains(exits, "  0  ") || !strings.Contains(exits, "  1  ") || !strings.Contains(exits, "  2  ") {
			t.Errorf("%s: the exit codes are %q: use exitCodes", c.CommandPath(), exits)
		}
		if strings.Contains(c.Use, "REF") != strings.Contains(c.Long, refHelp) || strings.Contains(c.Use, "REF") && c.Name() != "get" != strings.Contains(c.Long, "The command shows the change and asks.") {
			t.Errorf("%s: its help says other things of REF and of the question than its use", c.CommandPath())
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.ToUpper(c.Short[:1]) != c.Short[:1] {
			t.Errorf("%s: %q should be a sentence without a full stop", c.CommandPath(), c.Short)
		}
	}
	all(root)
}

// Texts from a table may come from anyone: no cell ends its line, moves
// the cursor or changes colours.
func TestTablesArePrintable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	e := environment{stdout: &out}
	if err := e.printTable([]string{"ROUTE", "ERROR"}, [][]string{{"POST /a\nPOST /b", "\x1b[2J\tgone\u202e"}, {"<b>&amp;", "e"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "ROUTE            ERROR\nPOST /a POST /b   [2J gone \n<b>&amp;         e\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// codeOf returns the exit code of an error.
func codeOf(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitDone
}
