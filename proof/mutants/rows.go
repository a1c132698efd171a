package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// noMutant are the requirements and threats that no mutant breaks, with the reason. Each
// other one has a mutant that fails a test of its row.
var noMutant = map[string]string{
	"R86":  "nothing deletes the items of users: there is no condition to remove",
	"R101": "the template decides; proof/signals shows that each alarm fires and ends",
	"R113": "it is about tests, which the crash matrix and its planted bugs examine",
	"R119": "it is about the processes of an example; its template decides",
	"R124": "it is about a page",
	"R140": "it is about a command for people, which shows and changes nothing",
	"R141": "the template decides",
	"R142": "the template decides; proof/signals shows that each alarm fires and ends",
	"R143": "it is about CI",
	"R202": "it is about a paragraph; the header in the fingerprint is broken by rows of its own",
	"R203": "it is about recipes, whose tests crash them at each call",
	"R204": "the template decides",
}

// requirement is a row of proof/requirements.md, or a threat of docs/operate/threats.md.
type requirement struct {
	number string
	tests  []string // "idem.TestFingerprintParts/body"
}

// requirements reads the rows of the pages.
func requirements(root string) ([]requirement, error) {
	row, name := regexp.MustCompile(`(?m)^\| ([A-Z]\d+) .*\| ([^|]*) \|$`), regexp.MustCompile("`([^`]+)`")
	var all []requirement
	for _, file := range []string{"proof/requirements.md", "docs/operate/threats.md"} {
		page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		rows := row.FindAllStringSubmatch(string(page), -1)
		if len(rows) == 0 {
			return nil, fmt.Errorf("%s has no rows", file)
		}
		for _, cells := range rows {
			r := requirement{number: cells[1]}
			for _, test := range name.FindAllStringSubmatch(cells[2], -1) {
				r.tests = append(r.tests, test[1])
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// breaks says whether m breaks r and a test that r names has to notice.
func (m mutant) breaks(r requirement) bool {
	return slices.Contains(strings.Fields(m.row), r.number) && slices.ContainsFunc(r.tests, m.runs)
}

// suites run the same cases, each on a store of its own.
var suites = []string{"dynamo.TestConformance", "internal/testkit/enginetest.TestMemoryStore"}

// testName is a package from the module's root, a test and the begin of a subtest.
var testName = regexp.MustCompile(`^((?:[\w-]+/)*[\w-]+\.\w+)(?:/(.*))?$`)

// runs says whether test is among the tests of m: a subtest is, if all are of its test.
func (m mutant) runs(test string) bool {
	parts := testName.FindStringSubmatch(test)
	if parts == nil {
		return false
	}
	function, sub := parts[1], parts[2]
	wanted, wantedSub, _ := strings.Cut(m.run, "/")
	among := []string{function}
	if slices.Contains(suites, function) {
		among = suites
		if _, one, ok := strings.Cut(wantedSub, "/"); ok {
			wantedSub = one // rows leave the group of a case out
		}
	}
	return matches(wantedSub, sub) && slices.ContainsFunc(among, func(name string) bool {
		dot := strings.LastIndexByte(name, '.')
		dir, name := name[:dot], name[dot+1:]
		return dir == m.tests().pkg && matches(wanted, name)
	})
}

// matches says whether pattern, "" for any, finds name.
func matches(pattern, name string) bool {
	found, err := regexp.MatchString(pattern, strings.ReplaceAll(name, " ", "_"))
	return found && err == nil
}

// unbroken returns the requirements (R) and threats (T) whose tests no mutant is shown to fail, and
// an error for each line of the table whose row isn't there.
func unbroken(rows []requirement, ms []mutant) (numbers []string, _ error) {
	var errs []error
	for _, m := range ms {
		for number := range strings.FieldsSeq(m.row) {
			if !slices.ContainsFunc(rows, func(r requirement) bool { return r.number == number }) {
				errs = append(errs, fmt.Errorf("%s, %s: proof/requirements.md and docs/operate/threats.md have no row %s", m.rule, m.what, number))
			}
		}
	}
	for _, r := range rows {
		if strings.ContainsAny(r.number[:1], "RT") && !slices.ContainsFunc(ms, func(m mutant) bool { return m.breaks(r) }) {
			numbers = append(numbers, r.number)
		}
	}
	return numbers, errors.Join(errs...)
}
