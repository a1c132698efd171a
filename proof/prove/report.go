package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Status is the outcome of a claim.
type Status string

// The outcomes.
const (
	Passed   Status = "passed"
	Failed   Status = "failed"
	NotShown Status = "not shown"
)

// Result is a claim and its outcome.
type Result struct {
	Name   string `json:"name"`
	Claim  string `json:"claim"`
	Page   string `json:"page,omitempty"`
	Status Status `json:"status"`
	Figure string `json:"figure,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Report is what a run has seen. As JSON it is samekey-proof.json.
type Report struct {
	Form   int       `json:"form"` // of the file
	Run    string    `json:"run"`
	Date   time.Time `json:"date"`
	Region string    `json:"region"`
	// StandIn names what stands in for AWS; "" in an account.
	StandIn  string            `json:"stand_in,omitempty"`
	Versions map[string]string `json:"versions"`
	Commit   string            `json:"commit,omitempty"`
	Claims   []Result          `json:"claims"`
	// Trouble says why the run ended early; "" if it didn't.
	Trouble string `json:"trouble,omitempty"`
	// Left is what couldn't be removed, or was kept.
	Left    string  `json:"left,omitempty"`
	Planned float64 `json:"dollars_at_most"`
	Counted float64 `json:"dollars_counted_at_most"`
}

// Count is the number of claims with an outcome.
func (r *Report) Count(s Status) (n int) {
	for _, c := range r.Claims {
		if c.Status == s {
			n++
		}
	}
	return n
}

// Line is the report in a line.
func (r *Report) Line() string {
	line := fmt.Sprintf("%d claims passed, %d failed, %d not shown", r.Count(Passed), r.Count(Failed), r.Count(NotShown))
	if r.Trouble != "" {
		line += ", ended early"
	}
	place := "in Region " + r.Region
	if r.StandIn != "" {
		place = "by a stand-in for AWS"
	}
	return fmt.Sprintf("%s, %s, on %s", line, place, r.Date.UTC().Format(time.DateOnly))
}

// The report's files.
const (
	MarkdownFile = "samekey-proof.md"
	JSONFile     = "samekey-proof.json"
)

// Write writes both files into a folder.
func (r *Report) Write(dir string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string]string{MarkdownFile: r.Markdown(), JSONFile: string(raw) + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil { //nolint:gosec // for all to read
			return err
		}
	}
	return nil
}

// Markdown is the report for people.
func (r *Report) Markdown() string {
	var b strings.Builder
	place := "an AWS account, Region " + r.Region
	if r.StandIn != "" {
		place = "**a stand-in for AWS**: " + r.StandIn
	}
	fmt.Fprintf(&b, "# Samekey, examined\n\nRun `%s` of %s in %s.\n\n", r.Run, r.Date.UTC().Format("2006-01-02 15:04 UTC"), place)
	if r.StandIn != "" {
		b.WriteString("No AWS account was used. Claims that only AWS can show are *not shown*.\n\n")
	}
	fmt.Fprintf(&b, "%d claims passed, %d failed, %d not shown. It cost less than %.2f dollars, by counted calls and the price list.\n\n",
		r.Count(Passed), r.Count(Failed), r.Count(NotShown), r.Counted)
	for _, line := range []struct{ what, text string }{{"It ended early", r.Trouble}, {"Left behind", r.Left}} {
		if line.text != "" {
			fmt.Fprintf(&b, "%s: %s\n\n", line.what, cell(line.text))
		}
	}
	b.WriteString("| program | version |\n| --- | --- |\n")
	for _, name := range []string{"samekey", "go", "aws-sdk-go-v2"} {
		fmt.Fprintf(&b, "| %s | %s |\n", name, cell(r.Versions[name]))
	}
	fmt.Fprintf(&b, "| commit | %s |\n\n| claim | outcome | figure or reason |\n| --- | --- | --- |\n", cell(r.Commit))
	for _, c := range r.Claims {
		text := c.Figure
		switch {
		case c.Why != "" && c.Figure != "":
			text = c.Why + " (" + c.Figure + ")"
		case c.Why != "":
			text = c.Why
		}
		fmt.Fprintf(&b, "| `%s`: %s | %s | %s |\n", c.Name, cell(c.Claim), c.Status, cell(text))
	}
	return b.String()
}

// cell is a text for a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
