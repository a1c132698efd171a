package lock

import (
	"os"
	"strings"
	"testing"
)

// Phases of handlers, as docs/start/phases.md changes them.
var (
	ride     = Phase{Name: "ride", Kind: "Atomic", Result: map[string]any{"ID": "string"}}
	trip     = Phase{Name: "trip", Kind: "Atomic", Result: map[string]any{"ID": "string"}}
	fresh    = Phase{Name: "new", Kind: "Atomic", Result: "int"}
	charge   = call("charge", "payments")
	mail     = call("mail", "mailer")
	tip      = call("tip", "payments")
	leg      = call("leg/*", "payments/*")
	ridePays = []Phase{ride, charge}
)

func call(name string, calls ...string) Phase {
	return Phase{Name: name, Kind: "Foreign", Calls: calls, Result: map[string]any{"ID": "string"}}
}

func changed(p Phase, change func(*Phase)) Phase { change(&p); return p }

// change is a row of the page: the phases before and after. What can't be seen in the
// phases has none.
type change struct{ was, is []Phase }

var unseen = change{}

var rows = map[string]change{
	"a call's phase is renamed":                               {ridePays, []Phase{ride, call("payment", "payments")}},
	"another phase is renamed":                                {ridePays, []Phase{trip, charge}},
	"a phase is inserted at the front":                        {ridePays, []Phase{fresh, ride, charge}},
	"an `Atomic` is inserted before the call":                 {ridePays, []Phase{ride, fresh, charge}},
	"an `Atomic` is inserted after the call":                  {ridePays, []Phase{ride, charge, fresh}},
	"a call to another service is inserted before the call":   {ridePays, []Phase{ride, mail, charge}},
	"a call to another service is inserted after the call":    {ridePays, []Phase{ride, charge, mail}},
	"a call to the same service is inserted before the call":  {ridePays, []Phase{ride, tip, charge}},
	"the same, with a step":                                   {ridePays, []Phase{ride, call("tip", "payments/tip"), charge}},
	"a call to the same service is inserted after the call":   {ridePays, []Phase{ride, charge, tip}},
	"a phase before the call is removed":                      {ridePays, []Phase{charge}},
	"the call is removed":                                     {ridePays, []Phase{ride}},
	"the call is moved to the front":                          {ridePays, []Phase{charge, ride}},
	"calls to two services are swapped":                       {[]Phase{ride, charge, mail}, []Phase{ride, mail, charge}},
	"calls to one service are swapped":                        {[]Phase{ride, charge, tip}, []Phase{ride, tip, charge}},
	"two phases with a call each become one":                  {[]Phase{ride, charge, mail}, []Phase{ride, call("both", "payments", "mailer")}},
	"a phase with two calls becomes two":                      {[]Phase{ride, call("both", "payments", "mailer")}, []Phase{ride, charge, mail}},
	"a call becomes `NotIdempotent`, and still sends its key": {ridePays, []Phase{ride, changed(charge, func(p *Phase) { p.NotIdempotent = true })}},
	"a call becomes `NotIdempotent`, and sends no key":        {ridePays, []Phase{ride, changed(charge, func(p *Phase) { p.NotIdempotent, p.Calls = true, nil })}},
	"a `NotIdempotent` call becomes a plain one":              {[]Phase{ride, changed(charge, func(p *Phase) { p.NotIdempotent, p.Calls = true, nil })}, ridePays},
	"a call becomes an `Atomic`":                              {ridePays, []Phase{ride, changed(charge, func(p *Phase) { p.Kind, p.Calls = "Atomic", nil })}},
	"an `Atomic` becomes a `Foreign`":                         {ridePays, []Phase{changed(ride, func(p *Phase) { p.Kind = "Foreign" }), charge}},
	"a call's service is renamed":                             {ridePays, []Phase{ride, call("charge", "pay")}},
	"a call gets a step":                                      {ridePays, []Phase{ride, call("charge", "payments/charge")}},
	"a call's step is renamed":                                {[]Phase{ride, call("charge", "payments/a")}, []Phase{ride, call("charge", "payments/b")}},
	"a loop has another round":                                {[]Phase{ride, leg}, []Phase{ride, leg}},
	"a phase's result has another type":                       {ridePays, []Phase{changed(ride, func(p *Phase) { p.Result = map[string]any{"Name": "string"} }), charge}},
	"a phase's result has more fields":                        {ridePays, []Phase{changed(ride, func(p *Phase) { p.Result = map[string]any{"ID": "string", "More": "string"} }), charge}},
	"`Remembers` becomes shorter":                             {ridePays, []Phase{ride, changed(charge, func(p *Phase) { p.Remembers = 3600 })}},
	"a call becomes `Deferred`":                               {ridePays, ridePays},
	"a `Deferred` call becomes a plain one":                   {ridePays, ridePays},
	"`Finish` becomes a plain answer":                         {ridePays, ridePays},
	"`MergeClaim` is turned on or off":                        {ridePays, ridePays},
	"`Resumable` is turned off":                               {ridePays, ridePays},
	"a loop has a round fewer":                                unseen,
	"a call sends other parameters":                           unseen,
}

// handler runs its phases one after another.
func handler(phases []Phase) Handler {
	return Handler{Package: "app", Name: "book", Phases: phases, Before: func(i, j int) bool { return i < j }}
}

func locked(phases []Phase) *File {
	return &File{Version: version, Packages: map[string]map[string][]Phase{"app": {"book": phases}}}
}

func all(string) bool  { return true }
func none(string) bool { return false }

// Each row of the page that says what becomes of operations under way is judged as the
// page says, which the engine's tests hold to the engine.
func TestChangesAreJudgedAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/start/phases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| change | with the call in doubt, or still to come | with the call recorded | |\n| --- | --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	met := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(row, " | ")
		name := strings.TrimPrefix(cells[0], "| ")
		c, ok := rows[name]
		if !ok {
			t.Errorf("no case for the row %q", name)
			continue
		}
		met++
		if c.was == nil {
			continue
		}
		want := "nothing"
		switch fate := cells[1] + cells[2]; {
		case strings.Contains(fate, "twice"):
			want = "twice"
		case strings.Contains(fate, "refused"):
			want = "refused"
		}
		got := "nothing"
		for _, ch := range locked(c.was).Compare(Program{Handlers: []Handler{handler(c.is)}}, all, none) {
			if ch.Danger == Twice {
				got = "twice"
			} else if got == "nothing" {
				got = "refused"
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if met != len(rows) || met < 30 {
		t.Errorf("%d rows of the page met %d cases", met, len(rows))
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was, is []Phase
		want    string
	}{
		"renamed":   {ridePays, []Phase{trip, charge}, `the phase "ride" is now called "trip"`},
		"gone":      {ridePays, []Phase{charge}, `the phase "ride" is gone`},
		"new":       {ridePays, []Phase{ride, fresh, charge}, `the phase "new" is new before "charge"`},
		"reordered": {ridePays, []Phase{charge, ride}, `the phase "charge" runs before "ride" now`},
		"call":      {ridePays, []Phase{ride, call("charge", "pay")}, `the phase "charge" asks for the key of "payments" no more`},
		"type": {
			[]Phase{changed(ride, func(p *Phase) { p.Result = map[string]any{"Lines": []any{map[string]any{"Price": "int"}}} })},
			[]Phase{changed(ride, func(p *Phase) { p.Result = map[string]any{"lines": []any{map[string]any{"Price": "string"}}} })},
			`the phase "ride" returns another type: the result.Lines[…].Price was int and is string`,
		},
		"twice of a name": {[]Phase{ride, ride}, []Phase{ride}, `the phase "ride" is gone`},
	} {
		changes := locked(c.was).Compare(Program{Handlers: []Handler{handler(c.is)}}, all, none)
		if len(changes) == 0 || !strings.Contains(changes[0].String(), c.want) {
			t.Errorf("%s: %v, want %s", name, changes, c.want)
		}
	}
}

func TestHandlersThatMove(t *testing.T) {
	t.Parallel()
	file := locked(ridePays)
	h := handler(append(ridePays[:2:2], fresh))
	h.Name = "create"
	if changes := file.Compare(Program{Handlers: []Handler{h}}, all, none); len(changes) > 0 {
		t.Errorf("a handler got another name: %v", changes)
	}
	if changes := file.Compare(Program{}, all, none); len(changes) != 1 || !strings.Contains(changes[0].String(), `app.book: the handler is gone, with "ride", "charge"`) {
		t.Errorf("a handler is gone: %v", changes)
	}
	if changes := file.Compare(Program{}, none, all); len(changes) != 1 {
		t.Errorf("a package is gone: %v", changes)
	}
	if changes := file.Compare(Program{}, none, none); len(changes) > 0 {
		t.Errorf("a package was not looked at: %v", changes)
	}
	if next := file.Updated(Program{}, none, none); !next.Equal(file) {
		t.Errorf("an update forgets a package that was not looked at: %v", next)
	}
	if next := file.Updated(Program{Handlers: []Handler{h}}, all, none); next.Equal(file) || next.Packages["app"]["book"] != nil {
		t.Errorf("an update keeps a handler that is gone: %v", next)
	}
}

// A phase in another branch is not on the way to the old ones.
func TestBranches(t *testing.T) {
	t.Parallel()
	h := handler([]Phase{fresh, ride, charge})
	h.Before = func(i, j int) bool { return i > 0 && i < j }
	if changes := locked(ridePays).Compare(Program{Handlers: []Handler{h}}, all, none); len(changes) > 0 {
		t.Error(changes)
	}
}

func TestReadRefusesWhatIsNoLockFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", `{"version": 2}`, `{"version": 1, "other": 1}`, "[]"} {
		path := t.TempDir() + "/samekey.lock"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := Read(path); err == nil {
			t.Errorf("%q: %v", text, f)
		}
	}
	path := t.TempDir() + "/samekey.lock"
	if f, err := Read(path); err != nil || len(f.Packages) > 0 {
		t.Errorf("no file: %v, %v", f, err)
	}
	if err := locked(ridePays).Write(path); err != nil {
		t.Fatal(err)
	}
	if f, err := Read(path); err != nil || !f.Equal(locked(ridePays)) {
		t.Errorf("%v, %v", f, err)
	}
}
