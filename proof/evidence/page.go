package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	pageFile   = "docs/inside/proof.md"
	tablesFile = "proof/evidence/README.md"
	runsFile   = "proof/evidence/evidence.json"

	begin = "<!-- written by make evidence -->\n"
	end   = "<!-- end -->\n"
)

// proof is a run of a claim's command.
type proof struct {
	Command string             `json:"command"`
	Commit  string             `json:"commit"`
	Date    string             `json:"date"`
	Figures map[string]float64 `json:"figures"`
	Table   [][]string         `json:"table,omitempty"` // its head first
}

// load reads the last run of each claim.
func load(root string) (map[string]proof, error) {
	runs := make(map[string]proof)
	b, err := os.ReadFile(filepath.Join(root, runsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return runs, nil
	case err != nil:
		return nil, err
	}
	return runs, json.Unmarshal(b, &runs)
}

// save writes the runs, and the page's table from them.
func save(root string, runs map[string]proof) error {
	b, err := json.MarshalIndent(runs, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, runsFile), append(b, '\n'), 0o644); err != nil { //nolint:gosec // a page for everybody
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		return err
	}
	reports, err := reportsIn(filepath.Join(root, reportsDir))
	if err != nil {
		return err
	}
	text, tables, err := filled(string(page), runs, reports)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(root, pageFile), []byte(text), 0o644),     //nolint:gosec // as above
		os.WriteFile(filepath.Join(root, tablesFile), []byte(tables), 0o644), //nolint:gosec // as above
	)
}

// filled returns the page with the table of runs and reports, and the page of their own tables.
func filled(page string, runs map[string]proof, reports []report) (text, tables string, _ error) {
	head, rest, ok := strings.Cut(page, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", "", fmt.Errorf("%s has no place for the table", pageFile)
	}
	var b strings.Builder
	b.WriteString("\n| claim | how it was tried to break it | figures | command | date, commit | AWS |\n| --- | --- | --- | --- | --- | --- |\n")
	var own strings.Builder
	own.WriteString("# Tables of the evidence\n\n`make evidence` writes them. [Proof](../../docs/inside/proof.md) has the claims.\n")
	for _, c := range claims {
		r, ok := runs[c.name]
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` | %s, %s |%s |\n", c.claim, c.evidence, c.show(r.Figures), c.command, r.Date, r.Commit, c.inAccounts(reports))
		for i, row := range r.Table {
			if i == 0 {
				fmt.Fprintf(&own, "\n%s\n\n", c.table)
			}
			fmt.Fprintf(&own, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				fmt.Fprintf(&own, "|%s\n", strings.Repeat(" --- |", len(row)))
			}
		}
	}
	return head + begin + b.String() + "\n" + listed(reports) + "\n" + end + tail, own.String(), nil
}
