package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

func (r result) verdict() string {
	switch {
	case r.err != nil:
		return "ERROR: " + r.err.Error()
	case r.killer == "":
		return "SURVIVES"
	}
	return r.killer
}

// printResults prints a line for each mutant, and returns an error unless all
// were killed.
func printResults(w io.Writer, results []result, took time.Duration) error {
	bad := 0
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "RULE\tMUTANT\tKILLED BY\tSECONDS\tCPU")
	for _, r := range results {
		if r.err != nil || r.killer == "" {
			bad++
		}
		verdict := r.verdict()
		if r.err != nil {
			verdict = "ERROR (above)"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%.1f\t%.1f\n", r.rule, r.what, verdict, r.took.Seconds(), r.cpu.seconds())
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	printPackages(w, results)
	fmt.Fprintf(w, "%d mutants, %d killed, in %s\n", len(results), len(results)-bad, took.Round(time.Second))
	if bad > 0 {
		return fmt.Errorf("%d of %d mutants were not killed", bad, len(results))
	}
	return nil
}

// tally counts the mutants of a package.
type tally struct {
	mutants, killed int
	cpu             meter
}

// byPackage counts results by the package that was changed.
func byPackage(results []result) map[string]tally {
	all := make(map[string]tally)
	for _, r := range results {
		t := all[r.dir()]
		t.mutants++
		t.cpu += r.cpu
		if r.err == nil && r.killer != "" {
			t.killed++
		}
		all[r.dir()] = t
	}
	return all
}

// printPackages prints a line for each package, with a processor's seconds for each
// of its mutants.
func printPackages(w io.Writer, results []result) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "\npackage\tmutants\tkilled\tCPU s\tCPU s each\t")
	all := byPackage(results)
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		t := all[pkg]
		fmt.Fprintf(tab, "%s\t%d\t%d\t%.0f\t%.1f\t\n", pkg, t.mutants, t.killed, t.cpu.seconds(), t.cpu.seconds()/float64(t.mutants))
	}
	_ = tab.Flush()
}

// printTable prints what would be done.
func printTable(w io.Writer, ms []mutant) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "RULE\tMUTANT\tIN\tTESTS")
	for _, m := range ms {
		fmt.Fprintf(tab, "%s\t%s\t%s\t./%s -run '%s'\n", m.rule, m.what, m.in, m.tests().pkg, m.run)
	}
	_ = tab.Flush()
}
