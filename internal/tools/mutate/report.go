package main

import (
	"fmt"
	"io"
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
	fmt.Fprintln(tab, "RULE\tMUTANT\tKILLED BY\tSECONDS")
	for _, r := range results {
		if r.err != nil || r.killer == "" {
			bad++
		}
		verdict := r.verdict()
		if r.err != nil {
			verdict = "ERROR (above)"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%.1f\n", r.rule, r.what, verdict, r.took.Seconds())
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d mutants, %d killed, in %s\n", len(results), len(results)-bad, took.Round(time.Second))
	if bad > 0 {
		return fmt.Errorf("%d of %d mutants were not killed", bad, len(results))
	}
	return nil
}

// printTable prints what would be done.
func printTable(w io.Writer, ms []mutant) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "RULE\tMUTANT\tIN\tTESTS")
	for _, m := range ms {
		fmt.Fprintf(tab, "%s\t%s\t%s\t./%s -run '%s'\n", m.rule, m.what, m.in, m.tests().pkg, m.run)
	}
	_ = tab.Flush()
	fmt.Fprintln(w, "\nWithout a condition in the code:")
	for _, e := range exceptions {
		fmt.Fprintf(w, "%s: %s\n", e.rule, e.why)
	}
}
