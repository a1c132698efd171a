package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/cli/prove"
)

const root = "../.."

// The page's table is made of the kept runs, and every run has its command, date and
// commit.
func TestPageIsOfTheRuns(t *testing.T) {
	t.Parallel()
	runs, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	reports, err := reportsIn(filepath.Join(root, reportsDir))
	if err != nil {
		t.Fatal(err)
	}
	want, tables, err := filled(string(page), runs, reports)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(root, tablesFile)); err != nil || tables != string(got) {
		t.Errorf("%s is of other runs, %v: go run -C proof ./evidence -only '^$'", tablesFile, err)
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("go run -C proof ./evidence -only '^$' (-want +got):\n%s", diff)
	}
	known := make(map[string]claim)
	for _, c := range claims {
		known[c.name] = c
	}
	date, commit := regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`), regexp.MustCompile(`^[0-9a-f]{12}(, changed)?$`)
	for name, r := range runs {
		c, ok := known[name]
		if !ok || r.Command != c.command || !date.MatchString(r.Date) || !commit.MatchString(r.Commit) {
			t.Errorf("%s: %+v, want a run of %q with date and commit", name, r, c.command)
		}
		for _, f := range c.figures {
			if _, ok := r.Figures[f]; !ok {
				t.Errorf("%s: the run has no figure %q", name, f)
			}
		}
	}
	if len(runs) == 0 {
		t.Error("no run is kept")
	}
}

// Every command of a claim is there: a target of the Makefile, or a test.
func TestCommandsExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		target, isMake := strings.CutPrefix(c.command, "make ")
		if isMake {
			target, _, _ = strings.Cut(target, " ")
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:.*##`).Match(makefile) {
				t.Errorf("%s: the Makefile has no target %q", c.name, target)
			}
			continue
		}
		m := regexp.MustCompile(`go test -C proof (\./\S+) -run '\^(\w+)\$'`).FindStringSubmatch(c.command)
		if m == nil {
			t.Errorf("%s: %s is neither make nor go test", c.name, c.command)
			continue
		}
		if out, err := exec.CommandContext(t.Context(), "grep", "-rlE", `^func `+m[2]+`\(`, "../"+m[1]).CombinedOutput(); err != nil {
			t.Errorf("%s: %s is not in %s: %v %s", c.name, m[2], m[1], err, out)
		}
	}
}

func TestFiguresAreRead(t *testing.T) {
	t.Parallel()
	byLine := claim{name: "matrix", figures: []string{"requests", "lost"}}
	byText := claim{figures: []string{"runs"}, finds: expressions(`in (?P<runs>\d+) runs`)}
	for name, tc := range map[string]struct {
		c    claim
		out  string
		want string // "": an error
	}{
		"a line":               {byLine, "    x_test.go:1: EVIDENCE {\"name\":\"matrix\",\"requests\":123456,\"lost\":0,\"seed\":7}\nok\n", "123,456 requests, 0 lost"},
		"the last line":        {byLine, "EVIDENCE {\"name\":\"matrix\",\"requests\":1,\"lost\":1}\nEVIDENCE {\"name\":\"matrix\",\"requests\":2,\"lost\":0}", "2 requests, 0 lost"},
		"another proof's":      {byLine, "EVIDENCE {\"name\":\"soak\",\"requests\":1,\"lost\":0}\n", ""},
		"a figure is missing":  {byLine, "EVIDENCE {\"name\":\"matrix\",\"requests\":1}\n", ""},
		"a figure is a text":   {byLine, "EVIDENCE {\"name\":\"matrix\",\"requests\":1,\"lost\":\"none\"}\n", ""},
		"no JSON":              {byLine, "EVIDENCE {\"name\":}\n", ""},
		"nothing":              {byLine, "ok\n", ""},
		"no table":             {claim{name: "matrix", table: "## Rows"}, `EVIDENCE {"name":"matrix"}`, ""},
		"an empty table":       {claim{name: "matrix", table: "## Rows"}, `EVIDENCE {"name":"matrix","table":[["package"]]}`, ""},
		"by an expression":     {byText, "3 schedules in 1000 runs", "1,000 runs"},
		"not by an expression": {byText, "no runs", ""},
	} {
		figures, _, err := tc.c.read(tc.out)
		if (err == nil) != (tc.want != "") || err == nil && tc.c.show(figures) != tc.want {
			t.Errorf("%s: %v, %v; want %q", name, figures, err, tc.want)
		}
	}
}

// A command that fails leaves no figures, whatever it has printed.
func TestFailedProofIsNone(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for command, ok := range map[string]bool{
		`echo 'EVIDENCE {"name":"x","n":1}'`:         true,
		`echo 'EVIDENCE {"name":"x","n":1}'; exit 1`: false,
		"true": false,
	} {
		c := claim{name: "x", command: command, figures: []string{"n"}}
		r, err := c.prove(t.Context(), "../..", &log)
		if (err == nil) != ok || ok && (r.Figures["n"] != 1 || r.Date == "" || r.Commit == "") {
			t.Errorf("%s: %+v, %v", command, r, err)
		}
	}
}

// A report from an account fills the column and the list; one of a stand-in, or one that doesn't hold, is
// refused.
func TestReports(t *testing.T) {
	t.Parallel()
	if none, err := reportsIn(t.TempDir()); len(none) != 0 || err != nil || listed(none) != "Reports from AWS accounts: none.\n" {
		t.Errorf("%v, %v", none, err)
	}
	example, wrong, err := prove.Check(filepath.Join(root, "proof/prove", prove.JSONFile), time.Now())
	if err != nil || len(wrong) > 0 {
		t.Fatal(wrong, err)
	}
	example.Date = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for says, change := range map[string]func(*prove.Report){
		"is of no AWS account": func(*prove.Report) {},
		"doesn't hold":         func(r *prove.Report) { r.Run = "" },
		"":                     func(r *prove.Report) { r.StandIn = "" },
	} {
		dir, r := t.TempDir(), *example
		change(&r)
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
		all, err := reportsIn(dir)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
		if err != nil {
			continue
		}
		link := "[2026-11-26](../../proof/prove/reports/samekey-proof.md)"
		if list := listed(all); !strings.HasPrefix(list, "Reports from AWS accounts:\n\n- "+link+": ") || !strings.Contains(list, "in Region us-east-1") {
			t.Error(list)
		}
		text, _, err := filled(begin+end, map[string]proof{"crash-matrix": {}, "model": {}}, all)
		if err != nil || strings.Count(text, link) != 2 || !strings.Contains(text, link+": 7 passed, 0 failed, ") {
			t.Errorf("%v:\n%s", err, text)
		}
	}
}
