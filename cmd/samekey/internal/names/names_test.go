package names_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/names"
	"github.com/samekey/samekey/cmd/samekey/internal/vet/lock"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// program reads the lock file of the examples.
func program(t *testing.T) *names.Program {
	t.Helper()
	f, err := lock.Read("../../../../examples/samekey.lock")
	if err != nil {
		t.Fatal(err)
	}
	if p := names.Read(f); p.Handlers() > 1 {
		return p
	}
	t.Fatal("the lock file has no handlers")
	return nil
}

func phases(all ...string) (out []store.Phase) {
	for _, name := range all {
		out = append(out, store.Phase{Name: name})
	}
	return out
}

func TestJudge(t *testing.T) {
	t.Parallel()
	p := program(t)
	for name, tt := range map[string]struct {
		rec     store.Record
		danger  names.Danger
		unknown string
	}{
		"nothing committed":          {store.Record{State: store.Open}, "", ""},
		"a name with a part of data": {store.Record{State: store.Open, Phases: phases("mail/jane", "mail/omar")}, "", ""},
		"the first is unknown":       {store.Record{State: store.Open, Phases: phases("trip_created")}, names.Refused, "phase trip_created"},
		"the second is unknown":      {store.Record{State: store.Open, Phases: phases("ride_created", "tax_added")}, names.Refused, "phase tax_added"},
		"of two handlers":            {store.Record{State: store.Open, Phases: phases("ride_created", "mail/jane")}, names.Refused, "phase mail/jane"},
		"a call that began":          {store.Record{State: store.Stuck, Phases: []store.Phase{{Name: "ride_created"}, {Name: "pay", Intent: true}}}, names.Refused, "phase pay"},
		"an unknown call in doubt":   {store.Record{State: store.Open, Phases: phases("ride_created"), Doubts: []string{"payments#1", "tax#1"}}, names.Twice, "call tax"},
		"a step in doubt":            {store.Record{State: store.Open, Doubts: []string{"payments/refund"}}, names.Twice, "call payments/refund"},
		"any call in doubt":          {store.Record{State: store.Open, Doubts: []string{state.AnyCall}}, "", ""},
		"done":                       {store.Record{State: store.Done, Phases: phases("trip_created")}, "", ""},
	} {
		danger, unknown := p.Judge(&tt.rec)
		if danger != tt.danger || unknown != tt.unknown {
			t.Errorf("%s: %q, %q, want %q, %q", name, danger, unknown, tt.danger, tt.unknown)
		}
	}
}

// Judge compares an operation with the handler that knows most of it; if
// several know as much, with the first by name. Only * in a name is a pattern.
func TestJudgeByTheNearestHandler(t *testing.T) {
	t.Parallel()
	handlers := make(map[string][]lock.Phase)
	for _, name := range []string{"1", "2", "3", "4", "5", "6"} {
		handlers[name] = []lock.Phase{{Name: "a.b", Calls: []string{"call" + name}}, {Name: "c/*/d"}}
	}
	handlers["0"], handlers["7"] = []lock.Phase{{Name: "a.b"}}, []lock.Phase{{Name: "other"}}
	p := names.Read(&lock.File{Packages: map[string]map[string][]lock.Phase{"p": handlers}})
	for name, tt := range map[string]struct {
		program *names.Program
		rec     store.Record
		danger  names.Danger
		unknown string
	}{
		"the first of those alike":   {p, store.Record{Phases: phases("a.b", "c/1/d"), Doubts: []string{"call1#1", "call2#1"}}, names.Twice, "call call2"},
		"the last one knows nothing": {p, store.Record{Phases: phases("a.b", "c/1/d", "e")}, names.Refused, "phase e"},
		"a point is a point":         {p, store.Record{Phases: phases("axb")}, names.Refused, "phase axb"},
		"no handlers":                {&names.Program{}, store.Record{Phases: phases("a.b")}, names.Refused, "phase a.b"},
	} {
		tt.rec.State = store.Open
		if danger, unknown := tt.program.Judge(&tt.rec); danger != tt.danger || unknown != tt.unknown {
			t.Errorf("%s: %q, %q, want %q, %q", name, danger, unknown, tt.danger, tt.unknown)
		}
	}
}

// Operations with the same misfit share a row, which shows the oldest.
func TestReport(t *testing.T) {
	t.Parallel()
	p, rep, at := program(t), &names.Report{}, time.Unix(1e9, 0)
	for i, name := range []string{"tax", "ride_created", "tax", "tip", "tax", "tax"} {
		rep.Add(p, &store.Record{State: store.Open, Route: "POST /rides", PK: string(rune('a' + i)), Created: at.Add(-time.Duration(min(i, 9-2*i)) * time.Hour), Phases: phases(name)})
	}
	rep.Add(p, &store.Record{State: store.Done, Phases: phases("tax")})
	rep.Add(p, &store.Record{State: store.Open, Route: "POST /rides", PK: "z", Created: at, Doubts: []string{"tax#1"}})
	rep.Add(p, &store.Record{State: store.Stuck, Route: "POST /rides", PK: "y", Created: at, Phases: phases("tax")})
	rep.Add(p, &store.Record{State: store.Open, Route: "PUT /rides", PK: "x", Created: at, Phases: phases("tax")})
	rep.Sort()
	want := []*names.Row{
		{Danger: names.Twice, Unknown: "call tax", Route: "POST /rides", State: "open", Count: 1, Oldest: at, PK: "z", Record: "z"},
		{Danger: names.Refused, Unknown: "phase tax", Route: "POST /rides", State: "open", Count: 4, Oldest: at.Add(-2 * time.Hour), PK: "c", Record: "c"},
		{Danger: names.Refused, Unknown: "phase tax", Route: "POST /rides", State: "stuck", Count: 1, Oldest: at, PK: "y", Record: "y"},
		{Danger: names.Refused, Unknown: "phase tax", Route: "PUT /rides", State: "open", Count: 1, Oldest: at, PK: "x", Record: "x"},
		{Danger: names.Refused, Unknown: "phase tip", Route: "POST /rides", State: "open", Count: 1, Oldest: at.Add(-3 * time.Hour), PK: "d", Record: "d"},
	}
	if diff := cmp.Diff(want, rep.Rows); diff != "" || rep.Open != 9 || rep.Misfits() != 8 {
		t.Errorf("%d open, %d misfits (-want +got):\n%s", rep.Open, rep.Misfits(), diff)
	}
}
