package doctor

import (
	"fmt"
	"strings"
)

// Check is a check of the deployment.
type Check struct {
	ID       string
	Severity Severity
	Looks    string   // what must be true
	Causes   string   // the consequence if Looks is false
	Mend     string   // what to change, so that Looks becomes true
	Needs    []Source // the questions whose answers the check needs

	// find returns what is wrong, or the reason why the check could not be made.
	find func(*Facts) ([]wrong, string)
}

// wrong is a finding of a check. Examine replaces an empty severity, causes or mend by
// the value of the Check.
type wrong struct {
	where, what  string
	severity     Severity
	causes, mend string
}

// All returns the checks in the order of docs/operate/doctor.md.
func All() []Check {
	all := append(tableChecks(), streamChecks()...)
	all = append(all, queueChecks()...)
	all = append(all, functionChecks()...)
	all = append(all, windowChecks()...)
	return append(all, otherChecks()...)
}

// found returns the findings of a check. The second result is "", because the check
// could be made.
func found(all ...wrong) ([]wrong, string) { return all, "" }

// Page returns the checks as Markdown lists, for docs/operate/doctor.md.
func Page() string {
	var b strings.Builder
	for _, s := range []Severity{Error, Warning, Note} {
		fmt.Fprintf(&b, "Checks that report %ss, and what each demands:\n\n", s)
		for _, c := range All() {
			if c.Severity == s {
				fmt.Fprintf(&b, "- `%s`: %s\n", c.ID, c.Looks)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
