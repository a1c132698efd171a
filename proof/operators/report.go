package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/samekey/samekey/proof/internal/harness"
)

// evidence are the figures of a run for docs/inside/proof.md.
type evidence struct {
	Name     string     `json:"name"`
	Mutants  int        `json:"mutants"`
	Killed   int        `json:"killed"` // those that hung, too
	Hung     int        `json:"hung"`
	Survived int        `json:"survived"`
	Seed     string     `json:"seed"`
	Seconds  int        `json:"seconds"`
	Table    [][]string `json:"table"`
}

// tally counts the mutants of a package.
type tally map[verdict]int

func (t tally) all() int  { return t[killed] + t[hung] + t[survived] + t[unseen] }
func (t tally) dead() int { return t[killed] + t[hung] }

func (t tally) share() float64 { return 100 * float64(t.dead()) / float64(max(1, t.all())) }

// report prints the results, and fails if too few mutants were killed.
func (u *use) report(w io.Writer, results []result, took time.Duration) error {
	byPackage, sum := make(map[string]tally), make(tally)
	var left []result
	var bad []string
	for _, r := range results {
		if r.err != nil {
			return fmt.Errorf("%v: %w", r.mutant, r.err)
		}
		t := byPackage[r.pkg.dir]
		if t == nil {
			t = make(tally)
			byPackage[r.pkg.dir] = t
		}
		t[r.verdict]++
		sum[r.verdict]++
		if r.verdict == survived || r.verdict == unseen {
			left = append(left, r)
			if slices.ContainsFunc(strict, func(place string) bool { return strings.HasPrefix(r.file, place) }) {
				bad = append(bad, r.String())
			}
		}
	}
	slices.SortFunc(left, func(a, b result) int { return cmp.Or(cmp.Compare(a.file, b.file), a.line-b.line, a.number-b.number) })
	figures := evidence{
		Name: "operators", Mutants: sum.all(), Killed: sum.dead(), Hung: sum[hung], Survived: len(left), Seed: u.seed, Seconds: int(took.Seconds()),
		Table: [][]string{{"package", "mutants", "killed", "of these hung", "share"}},
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "package\tmutants\tkilled\thung\tshare\t")
	for _, dir := range slices.Sorted(maps.Keys(byPackage)) {
		t := byPackage[dir]
		row := []string{dir, strconv.Itoa(t.all()), strconv.Itoa(t.dead()), strconv.Itoa(t[hung]), fmt.Sprintf("%.1f %%", t.share())}
		figures.Table = append(figures.Table, row)
		fmt.Fprintln(tab, strings.Join(row, "\t")+"\t")
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, r := range left {
		figures.Table = append(figures.Table, []string{r.String(), "", "", "", string(r.verdict)})
		fmt.Fprintf(w, "%s %v\n", r.verdict, r.mutant)
	}
	fmt.Fprintf(w, "%d mutants, %d killed, %d of them by a hang, %.1f %%, in %s\n", sum.all(), sum.dead(), sum[hung], sum.share(), took.Round(time.Second))
	if err := harness.PrintEvidence(w, figures); err != nil {
		return err
	}
	switch {
	case len(bad) > 0:
		return fmt.Errorf("where none may survive:\n%s", strings.Join(bad, "\n"))
	case sum.share() < u.least:
		return fmt.Errorf("%.1f %% were killed, want %.1f", sum.share(), u.least)
	}
	return nil
}
