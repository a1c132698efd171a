package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// titles are the contracts' names in reports.
var titles = map[string]string{Default: "default", Stripe: "Stripe", IETF: "IETF draft", ACP: "ACP", UCP: "UCP"}

// Section returns a readable reference to a contract's section.
func Section(contract, section string) string {
	switch contract {
	case Default:
		return "docs/use/http.md#" + section
	case IETF:
		return "section " + section
	case ACP:
		return "agentic checkout, section " + section
	}
	return section
}

// Print writes the report as text: a row for each check, then each broken rule.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, requests: %d, keys begin with %s\n", r.Method, r.URL, r.Requests, r.Keys)
	if len(r.Checks) > 0 {
		b.WriteString("\n")
		r.table(&b)
	}
	for _, o := range r.Checks {
		for _, f := range o.Faults {
			f.print(&b, r.Contract)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNote: %s\n", n)
	}
	if r.Trouble != "" {
		fmt.Fprintf(&b, "\nNot completed: %s\n", r.Trouble)
	}
	if len(r.Checks) > 0 {
		b.WriteString("\nRules broken: ")
		for i, c := range columns(r.Contract) {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s %d", titles[c], r.faults(c))
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) table(b *strings.Builder) {
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "check")
	for _, c := range columns(r.Contract) {
		fmt.Fprintf(tw, "\t%s", titles[c])
	}
	fmt.Fprintln(tw)
	for _, o := range r.Checks {
		fmt.Fprint(tw, o.Check)
		for _, c := range columns(r.Contract) {
			fmt.Fprintf(tw, "\t%s", cell(o.Under[c]))
		}
		if o.Why != "" {
			fmt.Fprintf(tw, "\t(%s)", o.Why)
		}
		fmt.Fprintln(tw)
	}
	_ = tw.Flush() // into memory
}

func cell(outcome string) string {
	switch outcome {
	case Fault:
		return "FAULT"
	case NoRule:
		return "-"
	case NotKnown:
		return "?"
	}
	return outcome
}

func (f *Finding) print(b *strings.Builder, contract string) {
	says := ""
	for _, r := range rulesOf(contract) {
		if r.Name == f.Rule {
			says = r.Says
		}
	}
	fmt.Fprintf(b, "\n%s: %s\n  seen: %s\n  breaks:", f.Rule, strings.ReplaceAll(says, "`", ""), f.Seen)
	sep := " "
	for _, c := range columns(contract) {
		if section, ok := f.Breaks[c]; ok {
			fmt.Fprintf(b, "%s%s, %s", sep, titles[c], Section(c, section))
			sep = "; "
		}
	}
	b.WriteString("\n")
}

// Broken returns the sorted names of a contract's broken rules. If contract is "",
// Broken returns the broken rules of all contracts in the report.
func (r *Report) Broken(contract string) (rules []string) {
	for _, o := range r.Checks {
		for _, f := range o.Faults {
			if _, ok := f.Breaks[contract]; ok || contract == "" {
				rules = append(rules, f.Rule)
			}
		}
	}
	slices.Sort(rules)
	return rules
}
