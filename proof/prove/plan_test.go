package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// nowhere is a site without anything behind it.
type nowhere struct {
	Site
	standIn  string
	deploy   func(context.Context) (*Place, error)
	stays    error
	removals int
}

func (*nowhere) Where() string     { return "nowhere" }
func (*nowhere) Region() string    { return "eu-west-1" }
func (s *nowhere) StandIn() string { return s.standIn }

func (s *nowhere) Deploy(ctx context.Context, _ string, _ time.Time, _ App, m *meter) (*Place, error) {
	if err := m.add(Cost{Calls: 1000}); err != nil {
		return nil, err
	}
	if s.deploy != nil {
		return s.deploy(ctx)
	}
	return &Place{StandIn: s.standIn}, nil
}

func (s *nowhere) Remove(ctx context.Context) error {
	if until, _ := ctx.Deadline(); time.Until(until) == removal {
		s.removals++
	}
	return s.stays
}

// play plays a run of an hour at most, and returns what people see of it.
func play(t *testing.T, s *nowhere, claims []Claim, keep bool, build error) string {
	t.Helper()
	folder := t.TempDir() + "/app"
	var seen []string
	say := func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }
	o := Options{
		Run: "samekey-prove-a", Limit: time.Hour, Keep: keep, Tell: say,
		build: func(context.Context, Options, Site) (App, error) {
			return App{Dir: folder, Versions: map[string]string{"samekey": "v1"}, Commit: "abc"}, errors.Join(build, os.Mkdir(folder, 0o700))
		},
	}
	plan, err := Make(s, claims, o)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(plan.Expires()); left != time.Hour+removal {
		t.Errorf("it expires after %s", left)
	}
	r, err := plan.Execute(t.Context())
	for _, c := range r.Claims {
		say("%s %s %s %s", c.Name, c.Status, c.Why, c.Figure)
	}
	if _, err := os.Stat(folder); err == nil || r.Form != form {
		t.Errorf("form %d, or the program's folder is left", r.Form)
	}
	say("%s %s, %d removals, %.4f dollars, %q, %q, %v", r.Versions["samekey"], r.Commit, s.removals, r.Counted, r.Trouble, r.Left, err)
	return strings.Join(seen, "; ")
}

// A run tells, counts and reports what happens to it, wherever it ends.
func TestCourse(t *testing.T) {
	t.Parallel()
	late := func(figure string) Claim { // it examines until the run's limit
		return Claim{Name: "late", Text: "it is late", Cost: Cost{Writes: 1}, Examine: func(ctx context.Context, _ *Place) (string, error) {
			<-ctx.Done()
			if figure == "" {
				return "", errors.New("it saw nothing")
			}
			return figure, nil
		}}
	}
	some := append(few(),
		Claim{Name: "only AWS", Text: "AWS holds it", OnStandIn: "no memory limit", Examine: few()[0].Examine},
		Claim{Name: "differs", Text: "it differs", OnStandIn: "it is known", Differs: true, Examine: few()[1].Examine})
	down := newInMemory()
	down.bug = "no answer"
	served := func(m *inMemory) func(context.Context) (*Place, error) {
		return func(context.Context) (*Place, error) { return m.place(), nil }
	}
	lost := errors.New("connection reset by peer")
	for name, test := range map[string]struct {
		site   nowhere
		claims []Claim
		keep   bool
		build  error
		want   string
	}{
		"whole": {
			claims: some,
			want:   `building the programs; deploying samekey-prove-a; 1 of 6: holds; 2 of 6: broken; broken failed: 1 lost; 3 of 6: dark; 5 of 6: only AWS; 6 of 6: differs; differs failed: 1 lost; removing samekey-prove-a; holds passed  3 times; broken failed 1 lost ; dark not shown no answer 2 tries; unbuilt not shown later ; only AWS passed  3 times; differs failed 1 lost ; v1 abc, 1 removals, 0.0100 dollars, "", "", <nil>`,
		},
		"on a stand-in": {
			site: nowhere{standIn: "another"}, claims: some,
			want: `building the programs; deploying samekey-prove-a; 1 of 6: holds; 2 of 6: broken; 3 of 6: dark; 6 of 6: differs; removing samekey-prove-a; holds passed  3 times; broken not shown the stand-in, or Samekey, does otherwise: 1 lost ; dark not shown no answer 2 tries; unbuilt not shown later ; only AWS not shown no memory limit ; differs not shown the stand-in, or Samekey, does otherwise: 1 lost ; v1 abc, 1 removals, 0.0100 dollars, "", "", <nil>`,
		},
		"kept": {
			claims: few()[:1], keep: true,
			want: `building the programs; deploying samekey-prove-a; 1 of 1: holds; holds passed  3 times; v1 abc, 0 removals, 0.0100 dollars, "", "the stack and bucket samekey-prove-a, by --keep; prove --clean samekey-prove-a removes them", <nil>`,
		},
		"not built": {
			claims: few()[:2], keep: true, build: lost,
			want: `building the programs; removing samekey-prove-a; holds not shown nothing was deployed ; broken not shown nothing was deployed ;  , 1 removals, 0.0000 dollars, "connection reset by peer", "", connection reset by peer`,
		},
		"not deployed": {
			site: nowhere{deploy: func(context.Context) (*Place, error) { return nil, lost }}, claims: few()[:1],
			want: `building the programs; deploying samekey-prove-a; removing samekey-prove-a; holds not shown nothing was deployed ; v1 abc, 1 removals, 0.0100 dollars, "connection reset by peer", "", connection reset by peer`,
		},
		"deployed late": {
			site: nowhere{deploy: func(ctx context.Context) (*Place, error) { <-ctx.Done(); return nil, ctx.Err() }}, claims: few()[:1],
			want: `building the programs; deploying samekey-prove-a; removing samekey-prove-a; holds not shown nothing was deployed ; v1 abc, 1 removals, 0.0751 dollars, "the run reached its limit of 1h0m0s", "", the run reached its limit of 1h0m0s`,
		},
		"limit": {
			claims: append([]Claim{late("")}, few()[0]),
			want:   `building the programs; deploying samekey-prove-a; 1 of 2: late; removing samekey-prove-a; late not shown the run reached its limit of 1h0m0s ; holds not shown the run reached its limit of 1h0m0s ; v1 abc, 1 removals, 0.0751 dollars, "the run reached its limit of 1h0m0s", "", the run reached its limit of 1h0m0s`,
		},
		"passed at limit": {
			claims: []Claim{late("3 times")}, keep: true,
			want: `building the programs; deploying samekey-prove-a; 1 of 1: late; removing samekey-prove-a; late passed  3 times; v1 abc, 1 removals, 0.0751 dollars, "the run reached its limit of 1h0m0s", "", the run reached its limit of 1h0m0s`,
		},
		"not removed": {
			site: nowhere{stays: lost}, claims: few()[:1],
			want: `building the programs; deploying samekey-prove-a; 1 of 1: holds; removing samekey-prove-a; holds passed  3 times; v1 abc, 1 removals, 0.0100 dollars, "", "some of samekey-prove-a; prove --clean samekey-prove-a tries again: connection reset by peer", left behind: some of samekey-prove-a; prove --clean samekey-prove-a tries again: connection reset by peer`,
		},
		"served": {
			site: nowhere{deploy: served(newInMemory())}, claims: few()[:1],
			want: `building the programs; deploying samekey-prove-a; 1 of 1: holds; removing samekey-prove-a; holds passed  3 times; v1 abc, 1 removals, 0.0104 dollars, "", "", <nil>`,
		},
		"not served": {
			site: nowhere{deploy: served(down)}, claims: few()[:1],
			want: `building the programs; deploying samekey-prove-a; the API's first answers: the last one is 500: down; 1 of 1: holds; removing samekey-prove-a; holds passed  3 times; v1 abc, 1 removals, 0.0155 dollars, "", "", <nil>`,
		},
		"served beside": {
			site: nowhere{standIn: "another", deploy: func(context.Context) (*Place, error) { p := down.place(); p.StandIn = "another"; return p, nil }}, claims: few()[:1],
			want: `building the programs; deploying samekey-prove-a; 1 of 1: holds; removing samekey-prove-a; holds passed  3 times; v1 abc, 1 removals, 0.0100 dollars, "", "", <nil>`,
		},
	} {
		var got string
		synctest.Test(t, func(t *testing.T) { got = play(t, &test.site, test.claims, test.keep, test.build) })
		if got != test.want {
			t.Errorf("%s: %s\nnot %s", name, got, test.want)
		}
	}
}

// The report as people read it.
func TestReport(t *testing.T) {
	t.Parallel()
	r := &Report{
		Form: form, Run: "samekey-prove-a", Date: time.Date(2026, 11, 27, 23, 30, 0, 0, time.FixedZone("", 3600)), Region: "eu-west-1", Versions: map[string]string{"samekey": "v1", "go": "go1"}, Counted: 0.251,
		Claims: []Result{
			{Name: "a", Claim: "a | b", Status: Passed, Figure: "3 times"},
			{Name: "b", Claim: "it\nholds", Status: Failed, Why: "1 lost", Figure: "2 tries"},
			{Name: "c", Claim: "c", Status: NotShown, Why: "later"},
		},
	}
	const table = "| program | version |\n| --- | --- |\n| samekey | v1 |\n| go | go1 |\n| aws-sdk-go-v2 |  |\n| commit |  |\n\n" +
		"| claim | outcome | figure or reason |\n| --- | --- | --- |\n| `a`: a \\| b | passed | 3 times |\n| `b`: it holds | failed | 1 lost (2 tries) |\n| `c`: c | not shown | later |\n"
	const counts = "1 claims passed, 1 failed, 1 not shown"
	for _, test := range []struct{ standIn, trouble, left, line, head string }{
		{
			"", "", "", counts + ", in Region eu-west-1, on 2026-11-27",
			"Run `samekey-prove-a` of 2026-11-27 22:30 UTC in an AWS account, Region eu-west-1.\n\n" + counts + ". It cost less than 0.25 dollars, by counted calls and the price list.\n\n",
		},
		{
			"another", "it was told to", "a\nbucket", counts + ", ended early, by a stand-in for AWS, on 2026-11-27",
			"Run `samekey-prove-a` of 2026-11-27 22:30 UTC in **a stand-in for AWS**: another.\n\nNo AWS account was used. Claims that only AWS can show are *not shown*.\n\n" +
				counts + ". It cost less than 0.25 dollars, by counted calls and the price list.\n\nIt ended early: it was told to\n\nLeft behind: a bucket\n\n",
		},
	} {
		r.StandIn, r.Trouble, r.Left = test.standIn, test.trouble, test.left
		if diff := cmp.Diff("# Samekey, examined\n\n"+test.head+table, r.Markdown()); diff != "" || r.Line() != test.line {
			t.Error(diff, r.Line())
		}
	}
	none := *r
	none.Planned = math.NaN()
	if err := none.Write(t.TempDir()); err == nil {
		t.Error("a report that is no JSON is written")
	}
	if err := r.Write(t.TempDir() + "/none"); err == nil {
		t.Error("a report is written to nowhere")
	}
}

// Options that nobody has set have their defaults, and the others stay.
func TestOptions(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	if !runName.MatchString(o.Run) || o.Dollars != DefaultDollars || o.Limit != DefaultLimit || o.Now == nil || o.build == nil {
		t.Errorf("%+v", o)
	}
	o.Tell("nobody listens")
	now := time.Unix(1, 0)
	p, err := Make(&nowhere{}, append(few(), late(), Claim{Name: "unbuilt", Cost: Cost{Calls: 1 << 30}}), Options{Run: "samekey-prove-a", Limit: time.Hour, Dollars: 2, Keep: true, Now: func() time.Time { return now }})
	if err != nil || p.Expires() != now.Add(time.Hour+removal) {
		t.Fatal(p, err)
	}
	const said = "This makes the stack samekey-prove-a in nowhere: Rocket Rides with its table, worker and queues, a payment provider's stand-in, " +
		"an HTTP API, a REST API and a function URL that are open to everybody meanwhile, and a bucket with their programs. It examines 4 claims, of 6, for at most 1h0m0s, costs at most 0.61 dollars, and leaves all of it. Its credentials have to last for 1h20m0s."
	if diff := cmp.Diff(said, p.String()); diff != "" {
		t.Error(diff)
	}
	exact := Options{Limit: time.Hour, Dollars: p.Cost.Dollars()}
	if _, err := Make(&nowhere{}, append(few(), late()), exact); err != nil {
		t.Errorf("a run that costs as much as it may: %v", err)
	}
}

func late() Claim {
	return Claim{Name: "late", Cost: Cost{Calls: 50_000}, Examine: few()[0].Examine}
}
