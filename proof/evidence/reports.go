package main

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/cli/prove"
)

// reportsDir has the reports of samekey prove that users have sent from their AWS accounts: a JSON
// file and a Markdown file each.
const reportsDir = "proof/prove/reports"

// report is one of them, with the name of its Markdown file.
type report struct {
	*prove.Report
	page string
}

// reportsIn reads the reports of a folder, by their names. Each has to hold, and to be from an
// account.
func reportsIn(dir string) (all []report, _ error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		r, wrong, err := prove.Check(file, time.Now())
		switch {
		case err != nil:
			return nil, err
		case len(wrong) > 0:
			return nil, fmt.Errorf("%s doesn't hold: %s", file, strings.Join(wrong, "; "))
		case r.StandIn != "":
			return nil, fmt.Errorf("%s is of no AWS account", file)
		}
		all = append(all, report{r, strings.TrimSuffix(filepath.Base(file), ".json") + ".md"})
	}
	return all, nil
}

// link leads from the page to the report.
func (r report) link() string {
	return fmt.Sprintf("[%s](%s)", r.Date.UTC().Format(time.DateOnly), path.Join("../..", reportsDir, r.page))
}

// inAccounts tells what reports say about c: how many of its claims have passed.
func (c claim) inAccounts(reports []report) string {
	if c.aws == "" {
		return ""
	}
	said := make([]string, 0, len(reports))
	for _, r := range reports {
		count := map[prove.Status]int{}
		for _, x := range r.Claims {
			if strings.HasPrefix(x.Name, c.aws) {
				count[x.Status]++
			}
		}
		said = append(said, fmt.Sprintf("%s: %d passed, %d failed, %d not shown", r.link(), count[prove.Passed], count[prove.Failed], count[prove.NotShown]))
	}
	return strings.TrimSuffix(" "+strings.Join(said, "; "), " ")
}

// listed lists the reports for the page.
func listed(reports []report) string {
	if len(reports) == 0 {
		return "Reports from AWS accounts: none.\n"
	}
	lines := []string{"Reports from AWS accounts:\n"}
	for _, r := range reports {
		lines = append(lines, fmt.Sprintf("- %s: %s", r.link(), r.Line()))
	}
	return strings.Join(lines, "\n") + "\n"
}
