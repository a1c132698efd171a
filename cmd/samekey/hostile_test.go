package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/hostiletest"
)

// tableless are commands that print no texts of a table, and ui, whose page has its own test.
var tableless = []string{"init", "local", "stack", "check", "vet", "ui", "doctor", "sweep", "reference", "help", "completion"}

// Texts from a table can't command the terminal or the shell of an operator:
// each command runs over records of each state with hostile texts everywhere.
func TestHostileRecords(t *testing.T) {
	d := newDesk(t)
	now := time.Now().Add(-time.Minute)
	all := hostiletest.Claimed(t, d.store, "rides", now)
	on := func(args ...string) (runs [][]string) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			runs = append(runs, append(slices.Clone(args), all[name].PK))
		}
		return runs
	}
	commands := map[string][][]string{
		"get":     slices.Concat(on("get"), on("get", "--data"), on("get", "--json", "--data"), [][]string{{"get", "v1#" + hostiletest.Text + "#x"}, {"get", hostiletest.Text}}),
		"list":    {{"list"}, {"list", "--each"}, {"list", "--json"}, {"list", "--scan", "--pages", "1000"}, {"list", "--reason", hostiletest.Text}},
		"stats":   {{"list", "--stats"}, {"list", "--stats", "--json"}, {"list", "--stats", "--fingerprints"}, {"list", "--stats", "--fingerprints", "--json"}},
		"names":   {{"vet", "--open", "--lock", "../../examples/samekey.lock"}, {"vet", "--open", "--json", "--lock", "../../examples/samekey.lock"}},
		"retry":   slices.Concat(on("retry", "--dry-run"), on("retry", "--yes", "--by", hostiletest.Text)),
		"release": on("release", "--dry-run"),
		"forget":  slices.Concat(on("forget", "--yes"), on("forget", "--dry-run", "--lose-attempt", "--lose-work", "--lose-jobs")),
		"redrive": slices.Concat(on("redrive", "--dry-run"), [][]string{{"redrive", "--yes", all["kept"].PK, hostiletest.Text}, {"redrive", "--yes", all["kept"].PK, hostiletest.Text + ".0.0"}}),
		"cancel":  slices.Concat(on("cancel", "--dry-run"), [][]string{{"cancel", "--yes", all["later"].PK, hostiletest.Text}, {"cancel", "--yes", all["later"].PK, hostiletest.Text + ".0.0"}}),
		"settle": slices.Concat(on("settle", "--not-made", "--dry-run"), on("settle", "--risk-twice", "--dry-run"), on("settle", "--result", `{"a":"`+"\u202e"+`"}`, "--dry-run"),
			on("settle", "--result", hostiletest.Text), on("settle", "--answer", "410", "--body", hostiletest.Text, "--dry-run"), on("settle", "--answer", "410", "--yes", "--json")),
		"erase": {{"erase", "--caller", "jwt:" + hostiletest.Text, "--dry-run"}, {"erase", "--caller", "jwt:" + hostiletest.Text, "--yes"}, {"erase", "--caller", "jwt:" + hostiletest.Text, "--yes", "--json"}},
	}
	for _, cmd := range newRoot(environment{getenv: func(string) string { return "" }}).Commands() {
		if commands[cmd.Name()] == nil && !slices.Contains(tableless, cmd.Name()) {
			t.Errorf("no run of %s over hostile records", cmd.Name())
		}
	}
	// Commands that change records come last.
	for _, name := range []string{"get", "list", "stats", "names", "release", "redrive", "cancel", "forget", "settle", "retry", "erase"} {
		for _, args := range commands[name] {
			var out, errs bytes.Buffer
			code := run(t.Context(), environment{stdin: strings.NewReader("y\n"), stdout: &out, stderr: &errs, getenv: func(n string) string { return d.env[n] }}, args)
			hostiletest.Check(t, strings.Join(args[:min(2, len(args))], " "), out.String())
			hostiletest.Check(t, strings.Join(args[:min(2, len(args))], " ")+": stderr", errs.String())
			if (code != 0) == (strings.Count(errs.String(), "\n") == 1) && name == "get" {
				t.Errorf("%q: code %d, %q", args, code, errs.String())
			}
			if slices.Contains(args, "--json") && code == 0 && !json.Valid(out.Bytes()) {
				t.Errorf("%q prints no JSON: %s", args, out.String())
			}
		}
	}
}

// A command that get prints quotes the record's key for a shell, whatever the key is.
func TestPrintedCommandsAreQuoted(t *testing.T) {
	d := newDesk(t)
	now := time.Now().Add(-time.Minute)
	rec := hostiletest.Records("rides", now)["kept"]
	if held, err := d.store.Claim(t.Context(), store.Claim{Next: rec.Clone(), Now: now}); err != nil || held != nil {
		t.Fatalf("%v, %v", held, err)
	}
	_, printed, found := strings.Cut(d.ok(t, "get", rec.PK), "samekey redrive ")
	printed, _, _ = strings.Cut(printed, "\n")
	out, err := exec.CommandContext(t.Context(), "bash", "-c", `printf '%s\0' `+printed).Output()
	if words := strings.Split(string(out), "\x00"); !found || err != nil || len(words) != 4 || words[0] != rec.PK || rec.Jobs[words[1]].Failed == "" || rec.Jobs[words[2]].Failed == "" {
		t.Errorf("%s gives a shell %q, %v", printed, words, err)
	}
}
