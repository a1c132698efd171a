package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// form is the version of the report's file.
const form = 1

// Check reads a report that somebody sends, the JSON file and the Markdown file of the same name beside
// it, and says in which points it isn't what this version writes; none: it holds. It
// finds mistakes and omissions. Nothing signs a report, so it finds no forger.
func Check(file string, now time.Time) (r *Report, wrong []string, _ error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err = d.Decode(&r)
	if err == nil && (r == nil || d.More()) {
		err = errors.New("it isn't one object")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s is no report: %w", file, err)
	}
	if r.Form != form {
		return r, []string{fmt.Sprintf("it has form %d, and this version reads form %d", r.Form, form)}, nil
	}
	wrong = append(r.wrongHead(now), r.wrongClaims(Claims())...)
	beside := strings.TrimSuffix(file, ".json") + ".md"
	switch text, err := os.ReadFile(beside); {
	case err != nil:
		wrong = append(wrong, "the Markdown file isn't beside it: "+beside)
	case string(text) != r.Markdown():
		wrong = append(wrong, "the Markdown file says something else than the JSON file")
	}
	return r, wrong, nil
}

var (
	runName = regexp.MustCompile(`^` + Prefix + `[a-z0-9]{12}$`)
	commit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	region  = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-\d$`)
)

// wrongHead looks at all but the claims.
func (r *Report) wrongHead(now time.Time) (all []string) {
	for what, ok := range map[string]bool{
		"its run's name is none":                               runName.MatchString(r.Run),
		"its Region is none":                                   region.MatchString(r.Region),
		"its date is to come, or none":                         !r.Date.IsZero() && r.Date.Before(now.Add(maxSkew)),
		"it doesn't say with which versions of Go and the SDK": strings.HasPrefix(r.Versions["go"], "go") && strings.HasPrefix(r.Versions["aws-sdk-go-v2"], "v"),
		"it has no commit, or one that was changed":            commit.MatchString(r.Commit),
		"it cost nothing, or more than its plan":               0 < r.Counted && r.Counted <= r.Planned,
	} {
		if !ok {
			all = append(all, what)
		}
	}
	slices.Sort(all)
	return all
}

// wrongClaims compares the claims with those of this version.
func (r *Report) wrongClaims(claims []Claim) (all []string) {
	seen := map[string][]Result{}
	for _, c := range r.Claims {
		seen[c.Name] = append(seen[c.Name], c)
	}
	for _, c := range claims {
		results := seen[c.Name]
		delete(seen, c.Name)
		if len(results) != 1 {
			all = append(all, fmt.Sprintf("%s is in it %d times", c.Name, len(results)))
			continue
		}
		if why := c.contradicts(results[0], r.StandIn != ""); why != "" {
			all = append(all, c.Name+" "+why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, name+" is no claim of this version")
	}
	return all
}

// contradicts says why a result is none that a run of this version gives; "" if it is one.
func (c Claim) contradicts(r Result, standIn bool) string {
	switch {
	case r.Claim != c.Text || r.Page != c.Page:
		return "has another version's text"
	case r.Status != Passed && r.Status != Failed && r.Status != NotShown:
		return fmt.Sprintf("is neither passed nor failed nor not shown, but %q", r.Status)
	case r.Status == Passed && standIn && c.OnStandIn != "" && !c.Differs:
		return "is passed, and a stand-in can't show it"
	case r.Status == Passed && r.Why != "":
		return "is passed, with a reason why not"
	case r.Status != Passed && r.Why == "":
		return fmt.Sprintf("is %s without a reason", r.Status)
	case r.Status == Passed && !c.figure().MatchString(r.Figure):
		return fmt.Sprintf("is passed with the figure %q", r.Figure)
	}
	return ""
}

// figure matches the figures of a passed claim.
func (c Claim) figure() *regexp.Regexp {
	return regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(c.Figure), "#", `\d+`) + `$`)
}
