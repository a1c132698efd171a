package rules

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// runs are the files that say what is run, by their paths.
type runs map[string]string

const (
	pageOfTests = "docs/inside/proof.md"
	makefile    = "Makefile"
	ciScript    = ".ci/run"
	proveScript = "proof/prove.sh"
	nightly     = ".github/workflows/nightly.yml"
)

// The page about tests says of each layer what make test, .ci/run and make prove run of
// it: the commands and proofs are there, and none is left out.
func TestWhoRunsWhat(t *testing.T) {
	t.Parallel()
	files := runs{}
	for _, path := range []string{pageOfTests, makefile, ciScript, proveScript, nightly} {
		raw, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(raw)
	}
	for _, problem := range files.problems(t) {
		t.Error(problem)
	}
	for what, change := range map[string]struct{ file, old, replacement string }{
		"a target that isn't there":              {makefile, "\nstress:", "\nstrain:"},
		"a step that CI doesn't run any more":    {ciScript, "make -s schedules", "make -s vet"},
		"a step that the page doesn't have":      {ciScript, "make -s model", "make -s model\nmake -s bench-paths"},
		"a proof that no job runs":               {nightly, "- fuzz-tenants\n", ""},
		"a proof that make prove has not":        {makefile, "PROOFS        ?= tests race traces", "PROOFS        ?= tests race"},
		"a proof without a command":              {proveScript, "load | soak", "soak"},
		"a proof that the page doesn't have":     {pageOfTests, "`crash-matrix`, `soak`", "`crash-matrix`"},
		"a sample of what nobody plays in whole": {pageOfTests, "| some | tests | `traces` |", "| some | tests | – |"},
		"a layer that nobody runs":               {pageOfTests, "| – | – | `stress` |", "| – | – | – |"},
	} {
		broken := maps.Clone(files)
		broken[change.file] = strings.Replace(files[change.file], change.old, change.replacement, 1)
		if broken[change.file] == files[change.file] || len(broken.problems(t)) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}

var (
	backticked = regexp.MustCompile("`([^`]+)`")
	makeTarget = regexp.MustCompile(`\bmake (?:-s )?([a-z][a-z-]*)`)
	targetLine = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

func (r runs) problems(t *testing.T) (problems []string) {
	t.Helper()
	add := func(parts ...string) { problems = append(problems, strings.Join(parts, "")) }
	targets := firsts(targetLine, r[makefile])
	proofs := strings.Fields(firsts(regexp.MustCompile(`(?m)^PROOFS\s*\?= (.*)$`), r[makefile])[0])
	inCI := firsts(makeTarget, regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(r[ciScript], ""))
	var told []string // what the page says of .ci/run and make prove
	_, table, _ := strings.Cut(r[pageOfTests], "| `make prove` |\n| --- | --- | --- | --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "or"), "|")
		if len(cells) != 8 {
			t.Fatalf("%s: %q has no six columns", pageOfTests, line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		layer, commands, test, ci, prove := cells[1], cells[3], cells[4], cells[5], cells[6]
		for _, target := range firsts(makeTarget, commands) {
			if !slices.Contains(targets, target) {
				add(layer, ": the Makefile has no target ", target)
			}
		}
		if !slices.Contains([]string{"all", "some", "seeds", "–"}, test) {
			add(layer, ": make test runs ", test)
		}
		if test == "some" && prove == "–" {
			add(layer, ": make test plays a sample, and nobody plays all of it")
		}
		if test+ci+prove == "–––" {
			add(layer, ": nobody runs it")
		}
		if test == "all" && !strings.HasPrefix(ci, "tests") || test == "–" && strings.HasPrefix(ci, "tests") {
			add(layer, ": .ci/run runs make test, and the columns don't agree about it")
		}
		for _, command := range firsts(backticked, ci) {
			told = append(told, firsts(makeTarget, command)...)
			if !strings.Contains(strings.ReplaceAll(r[ciScript], "make -s ", "make "), command) {
				add(layer, ": .ci/run doesn't run ", command)
			}
		}
		for _, proof := range firsts(backticked, prove) {
			told = append(told, proof)
			if !slices.Contains(proofs, proof) {
				add(layer, ": make prove has no proof ", proof)
			}
		}
	}
	// These are no tests.
	for _, target := range append([]string{"tidy", "sbom", "reproducible", "api", "vet", "lint", "lint-template"}, told...) {
		inCI = slices.DeleteFunc(inCI, func(s string) bool { return s == target })
	}
	for _, target := range inCI {
		add(".ci/run runs make ", target, ", and the page doesn't say so")
	}
	for _, proof := range proofs {
		if !slices.Contains(told, proof) {
			add("make prove has the proof ", proof, ", and the page doesn't say so")
		}
	}
	if diff := cmp.Diff(sorted(proofs), sorted(r.cases())); diff != "" {
		add(proveScript, " has other proofs (-want +got):\n", diff)
	}
	if diff := cmp.Diff(sorted(proofs), sorted(r.jobs(t))); diff != "" {
		add(nightly, " has other proofs (-want +got):\n", diff)
	}
	return problems
}

// cases are the proofs that the script knows.
func (r runs) cases() (proofs []string) {
	for _, line := range firsts(regexp.MustCompile(`(?m)^\t([a-z| -]+)\) `), r[proveScript]) {
		proofs = append(proofs, strings.Split(line, " | ")...)
	}
	return proofs
}

// jobs are the proofs of the nightly workflow.
func (r runs) jobs(t *testing.T) (proofs []string) {
	t.Helper()
	var w struct {
		Jobs struct {
			Prove struct {
				Strategy struct{ Matrix struct{ Proof []string } }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(r[nightly]), &w); err != nil {
		t.Fatal(err)
	}
	for _, job := range w.Jobs.Prove.Strategy.Matrix.Proof {
		proof, _, _ := strings.Cut(job, " ")
		proofs = append(proofs, proof)
	}
	return proofs
}

func sorted(s []string) []string { return slices.Compact(slices.Sorted(slices.Values(s))) }

// firsts are the first groups of all matches.
func firsts(re *regexp.Regexp, text string) (all []string) {
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// The steps of .ci/run and of make prove end with their minutes, also where one fails.
func TestStepsTellTheirTimes(t *testing.T) {
	t.Parallel()
	script := `set -euo pipefail; . ` + filepath.Join(root, "internal", "tools", "steps.sh") + `
step "go.mod is tidy"; true
step "vet"; SECONDS=150; false
step "never"`
	out, err := exec.CommandContext(t.Context(), "bash", "-c", script).Output()
	// The seconds are the machine's.
	got := regexp.MustCompile(`:\d\d `).ReplaceAllString(string(out), ":00 ")
	const want = `
== go.mod is tidy
==    0:00  go.mod is tidy

== vet
==    2:00  vet  FAILED

   0:00  go.mod is tidy
   2:00  vet  FAILED
   2:00  in all
`
	if err == nil {
		t.Error("a step failed, and the script did not")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}
