package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const example = JSONFile

func checkedExample(t *testing.T) *Report {
	t.Helper()
	r, wrong, err := Check(example, time.Now())
	if err != nil || len(wrong) > 0 {
		t.Fatalf("%q, %v: make prove-local", wrong, err)
	}
	return r
}

// The example in the repository is a whole run of this version on a stand-in.
func TestExample(t *testing.T) {
	t.Parallel()
	if r := checkedExample(t); r.StandIn == "" || r.Trouble != "" || r.Count(Failed) > 0 {
		t.Errorf("%s: make prove-local", r.Line())
	}
}

// A report that somebody has changed, or of another version, doesn't hold, and the check names
// the point.
func TestCheck(t *testing.T) {
	t.Parallel()
	of := func(r *Report, name string) *Result {
		return &r.Claims[slices.IndexFunc(r.Claims, func(c Result) bool { return c.Name == name })]
	}
	passed := func(r *Report, name, figure string) Result {
		c := *of(r, name)
		c.Status, c.Figure, c.Why = Passed, figure, ""
		return c
	}
	for _, test := range []struct {
		says   string
		change func(*Report)
	}{
		{"", func(*Report) {}},
		{"", func(r *Report) { // another stand-in may do as AWS does
			r.Counted, r.Date = r.Planned, time.Now().Add(maxSkew-time.Minute)
			*of(r, "dynamodb.conflicts") = passed(r, "dynamodb.conflicts", "3 transactions and 4 writes of 180 met one")
		}},
		{"", func(r *Report) {
			r.StandIn = ""
			*of(r, "crash.api.memory") = passed(r, "crash.api.memory", "1 faults met, 0 lost, 0 doubled, 0 wrong")
		}},
		{"it has no commit", func(r *Report) { r.Commit = "" }},
		{"it has no commit", func(r *Report) { r.Commit = "0123" }},
		{"its date is to come, or none", func(r *Report) { r.Date = time.Time{} }},
		{"it cost nothing, or more than its plan; its Region is none; its date is to come, or none; its run's name is none", func(r *Report) {
			r.Counted, r.Region, r.Date, r.Run = -1, "", time.Time{}, ""
		}},
		{"and the SDK", func(r *Report) { delete(r.Versions, "aws-sdk-go-v2") }},
		{"crash.api.lose has another version's text", func(r *Report) { of(r, "crash.api.lose").Page = "README.md" }},
		{"form 2, and this version reads form 1", func(r *Report) { r.Form = 2 }},
		{"its run's name", func(r *Report) { r.Run = "payments" }},
		{"its Region", func(r *Report) { r.Region = "Ireland" }},
		{"its date is to come", func(r *Report) { r.Date = time.Now().Add(maxSkew + time.Minute) }},
		{"which versions of Go", func(r *Report) { delete(r.Versions, "go") }},
		{"or one that was changed", func(r *Report) { r.Commit += ", changed" }},
		{"it cost nothing", func(r *Report) { r.Counted = 0 }},
		{"or more than its plan", func(r *Report) { r.Counted = r.Planned + 1 }},
		{"dynamodb.one-winner is in it 0 times", func(r *Report) {
			r.Claims = slices.DeleteFunc(r.Claims, func(c Result) bool { return c.Name == "dynamodb.one-winner" })
		}},
		{"dynamodb.refused-put-has-item is in it 2 times", func(r *Report) { r.Claims = append(r.Claims, *of(r, "dynamodb.refused-put-has-item")) }},
		{"weather is no claim of this version", func(r *Report) { r.Claims = append(r.Claims, Result{Name: "weather"}) }},
		{"dynamodb.one-winner has another version's text", func(r *Report) { of(r, "dynamodb.one-winner").Claim = "one may win" }},
		{`contract.http-api is neither passed nor failed nor not shown`, func(r *Report) { of(r, "contract.http-api").Status = "fine" }},
		{"crash.api.memory is passed, and a stand-in can't show it", func(r *Report) { of(r, "crash.api.memory").Status = Passed }},
		{"contract.http-api is passed, with a reason why not", func(r *Report) { of(r, "contract.http-api").Why = "no answer" }},
		{"contract.http-api is failed without a reason", func(r *Report) { of(r, "contract.http-api").Status = Failed }},
		{`is passed with the figure "5 faults met, 1 lost, 0 doubled, 0 w`, func(r *Report) { of(r, "crash.api.lose").Figure = "5 faults met, 1 lost, 0 doubled, 0 wrong" }},
		{`dynamodb.one-winner is passed with the figure ""`, func(r *Report) { of(r, "dynamodb.one-winner").Figure = "" }},
	} {
		r, dir := checkedExample(t), t.TempDir()
		test.change(r)
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
		_, wrong, err := Check(filepath.Join(dir, JSONFile), time.Now())
		if all := strings.Join(wrong, "; "); err != nil || (test.says == "") != (all == "") || !strings.Contains(all, test.says) {
			t.Errorf("%s: %q, %v", test.says, wrong, err)
		}
	}
}

func TestCheckOfFiles(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(checkedExample(t).Markdown())
	for says, files := range map[string][2][]byte{
		"the Markdown file isn't beside it":     {raw, nil},
		"the Markdown file says something else": {raw, bytes.Replace(text, []byte("0 failed"), []byte("1 failed"), 1)},
		"is no report: invalid":                 {text, text},
		"no such file or directory":             {nil, text},
		`is no report: json: u`:                 {bytes.Replace(raw, []byte(`"run"`), []byte(`"signature": "", "run"`), 1), text},
		"is no report: it isn't one":            {append(raw, raw...), text},
		"is no report: it isn't one object":     {[]byte("null"), text},
	} {
		file := filepath.Join(t.TempDir(), "report.json")
		for name, content := range map[string][]byte{file: files[0], strings.TrimSuffix(file, "json") + "md": files[1]} {
			if content != nil {
				if err := os.WriteFile(name, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		_, wrong, err := Check(file, time.Now())
		if err != nil {
			wrong = []string{err.Error()}
		}
		if len(wrong) != 1 || !strings.Contains(wrong[0], says) {
			t.Errorf("%s: %q", says, wrong)
		}
	}
}
