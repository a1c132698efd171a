package doctor

import (
	"cmp"
	"slices"
	"time"
)

// Severity says how bad a finding is.
type Severity string

// The severities. A note is a choice that people should know of, not a mistake.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Finding is a mistake in the deployment, or a note.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Where    string   `json:"where"`
	What     string   `json:"what"`   // what is wrong
	Causes   string   `json:"causes"` // the consequence
	Mend     string   `json:"mend"`
}

// Unchecked is a check that could not be made.
type Unchecked struct {
	Check      string `json:"check"`
	Why        string `json:"why"`
	Unanswered bool   `json:"unanswered,omitempty"` // true: an answer of AWS is missing; false: there is nothing to examine, or a flag is missing
}

// Report is the result of an examination.
type Report struct {
	Table      string      `json:"table"`
	At         time.Time   `json:"at"`
	Good       []string    `json:"good"` // IDs of the checks that could be made and have no finding
	Findings   []Finding   `json:"findings"`
	NotChecked []Unchecked `json:"not_checked"`
}

// Mistakes counts the findings except notes.
func (r *Report) Mistakes() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity != Note {
			n++
		}
	}
	return n
}

// Unanswered counts the checks for which AWS gave no answer.
func (r *Report) Unanswered() int {
	n := 0
	for _, u := range r.NotChecked {
		if u.Unanswered {
			n++
		}
	}
	return n
}

// Examine applies all checks to the facts. The worst findings come first.
func Examine(f *Facts) *Report {
	r := &Report{Table: f.Options.Table, At: f.Now, Good: []string{}, Findings: []Finding{}, NotChecked: []Unchecked{}}
	for _, c := range All() {
		if why := f.missing(c.Needs); why != "" {
			r.NotChecked = append(r.NotChecked, Unchecked{c.ID, why, true})
			continue
		}
		found, why := c.find(f)
		for _, w := range found {
			r.Findings = append(r.Findings, Finding{
				Check: c.ID, Severity: cmp.Or(w.severity, c.Severity), Where: w.where, What: w.what, Causes: cmp.Or(w.causes, c.Causes), Mend: cmp.Or(w.mend, c.Mend),
			})
		}
		switch {
		case why != "":
			r.NotChecked = append(r.NotChecked, Unchecked{c.ID, why, false})
		case len(found) == 0:
			r.Good = append(r.Good, c.ID)
		}
	}
	rank := map[Severity]int{Error: 0, Warning: 1, Note: 2}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return r
}
