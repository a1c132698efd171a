package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/samekey/samekey/proof/internal/harness"
)

// bug is a planted one, with what has to find it.
type bug struct {
	mutant
	layer string
	// memory is the same bug in the memory store, for the finder that uses it.
	memory *mutant
	// outside says, by the finder's name, why a bug is outside of what it looks at.
	outside map[string]string
}

// onlyMutants returns the bugs as lines for the check of the table.
func onlyMutants(bugs []bug) []mutant {
	var all []mutant
	for _, b := range bugs {
		all = append(all, b.mutant)
		if b.memory != nil {
			m := *b.memory
			m.rule, m.what = b.rule, b.what+", in memory"
			all = append(all, m)
		}
	}
	for i := range all {
		all[i].run = "all finders"
	}
	return all
}

// finder is a proof that looks at the whole and not at a line.
type finder struct {
	name string
	target
	memory bool     // it uses the memory store
	env    []string // its sizes
}

// finders have to find each planted bug. They end with their first finding, and look
// for no shorter history of it: the time is that until the bug is found. A bug that
// leaves a request open is found when the crash matrix loses its patience. The crash
// matrix plays each cell at least once: some bugs show in a single one.
var finders = []finder{
	{"simulation", target{"proof/simulation", "^TestSimulation$"}, false, []string{"SIM_REQUESTS=2000", "SIM_SHRINK=1"}},
	{"traces", target{"proof/model", "^TestTraces$"}, true, []string{"SPEC_TRACES=1000"}},
	{"crash matrix", target{"proof/crash", "^TestCrashMatrix$"}, false, []string{"CRASH_REQUESTS=1300", "CRASH_PATIENCE=5m"}},
}

// finding is what a finder made of a bug.
type finding struct {
	bug
	finder string
	found  bool
	seen   string        // the begin of what the finder said
	after  time.Duration // of the finder's run alone
	err    error
}

// findPlanted has each finder look for each bug, one after the other: the times are
// theirs alone. A finder must find nothing without a bug.
func (r *runner) findPlanted(ctx context.Context, finders []finder, bugs []bug, w io.Writer) error {
	var all []finding
	for _, f := range finders {
		r := &runner{builder: builder{root: r.root, env: append(slices.Clone(r.env), f.env...)}, tmp: r.tmp, limit: r.limit, progress: r.progress}
		if err := r.passes(ctx, f.pkg, []string{f.run}, new(meter)); err != nil {
			return fmt.Errorf("without a bug, the %s: %w", f.name, err)
		}
		for i, b := range bugs {
			if b.outside[f.name] != "" {
				all = append(all, finding{bug: b, finder: f.name})
				continue
			}
			one := finding{bug: b, finder: f.name}
			if f.memory && b.memory != nil {
				one.in, one.where, one.old, one.new = b.memory.in, b.memory.where, b.memory.old, b.memory.new
			}
			one.pkg, one.run = f.pkg, f.run
			one.seen, one.found, one.after, one.err = r.find(ctx, one.mutant, fmt.Sprintf("planted-%s-%d", strings.ReplaceAll(f.name, " ", "-"), i))
			fmt.Fprintf(r.progress, "%s, %s: %s\n", b.layer, f.name, one)
			all = append(all, one)
		}
	}
	return printFindings(w, finders, bugs, all)
}

// find runs a finder with a bug planted: in its own binary, and by GOFLAGS in the
// programs that it builds.
func (r *runner) find(ctx context.Context, m mutant, name string) (seen string, found bool, after time.Duration, err error) {
	c, done, err := r.change(m, name)
	if err != nil {
		return "", false, 0, err
	}
	defer done()
	binary := c.tmp + "/planted.test"
	var cpu meter
	if err := r.binary(ctx, m.tests().pkg, binary, c, &cpu); err != nil {
		return "", false, 0, err
	}
	planted := &runner{builder: builder{root: r.root, env: append(slices.Clone(r.env), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+c.overlay))}}
	begun := time.Now()
	out, err := planted.test(ctx, binary, m.tests(), many*r.limit, &cpu, "-test.failfast")
	after = time.Since(begun)
	killer, err := killedBy(m, out, err)
	return told(out), killer != "", after, err
}

var errorLine = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: (.+(?:\n.+)?)`)

// told is the begin of the first error that tests have printed.
func told(out []byte) string {
	const most = 300
	found := errorLine.FindSubmatch(out)
	if found == nil {
		return ""
	}
	text := strings.Join(strings.Fields(string(found[1])), " ")
	return text[:min(most, len(text))]
}

func (f finding) String() string {
	switch {
	case f.outside[f.finder] != "":
		return "outside: " + f.outside[f.finder]
	case f.err != nil:
		return "ERROR: " + f.err.Error()
	case !f.found:
		return "NOT FOUND"
	}
	return fmt.Sprintf("%.1f s", f.after.Seconds())
}

// printFindings prints a line for each bug, and returns an error unless each finder
// found all bugs that are not outside of its subject.
func printFindings(w io.Writer, finders []finder, bugs []bug, all []finding) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tab, "LAYER\tBUG")
	for _, f := range finders {
		fmt.Fprintf(tab, "\t%s", strings.ToUpper(f.name))
	}
	fmt.Fprintln(tab)
	evidence := plantedEvidence{Name: "planted", Bugs: len(bugs), Slowest: map[string]float64{}, Table: [][]string{{"layer", "bug"}}}
	for _, f := range finders {
		evidence.Table[0] = append(evidence.Table[0], f.name)
	}
	for _, b := range bugs {
		fmt.Fprintf(tab, "%s\t%s", b.layer, b.what)
		row := []string{b.layer, b.what}
		for _, f := range all {
			if f.layer != b.layer {
				continue
			}
			text, _, _ := strings.Cut(f.String(), "\n")
			row = append(row, text)
			switch {
			case f.outside[f.finder] != "":
				evidence.Outside++
				text = "outside"
			case f.found && f.err == nil:
				evidence.Found++
				evidence.Slowest[f.finder] = max(evidence.Slowest[f.finder], float64(f.after.Round(time.Second/10))/float64(time.Second))
			default:
				evidence.Missed++
			}
			fmt.Fprintf(tab, "\t%s", text)
		}
		fmt.Fprintln(tab)
		evidence.Table = append(evidence.Table, row)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, f := range all {
		switch why := f.outside[f.finder]; {
		case why != "":
			fmt.Fprintf(w, "outside of the %s, %s: %s\n", f.finder, f.layer, why)
		case f.seen != "":
			fmt.Fprintf(w, "%s, by the %s: %s\n", f.layer, f.finder, f.seen)
		}
	}
	if err := harness.PrintEvidence(w, evidence); err != nil {
		return err
	}
	if evidence.Missed > 0 {
		return fmt.Errorf("%d planted bugs were not found", evidence.Missed)
	}
	return nil
}

// plantedEvidence are the figures of a run for docs/inside/proof.md.
type plantedEvidence struct {
	Name    string             `json:"name"`
	Bugs    int                `json:"bugs"`
	Found   int                `json:"found"`   // pairs of a bug and a finder
	Missed  int                `json:"missed"`  // likewise
	Outside int                `json:"outside"` // likewise
	Slowest map[string]float64 `json:"slowest_s"`
	Table   [][]string         `json:"table"` // its head, and a row for each bug
}
