package lock

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// phases of handlers, as in docs/operate/changes.md
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

// change is a row of the page: the phases before and after. Both are
// empty if phases don't show the change.
type change struct{ was, is []Phase }

var unseen = change{}

var rows = map[string]change{
	"a call's phase is renamed":                                            {ridePays, []Phase{ride, call("payment", "payments")}},
	"another phase is renamed":                                             {ridePays, []Phase{trip, charge}},
	"a phase is inserted at the front":                                     {ridePays, []Phase{fresh, ride, charge}},
	"an `Atomic` is inserted before the call":                              {ridePays, []Phase{ride, fresh, charge}},
	"an `Atomic` is inserted after the call":                               {ridePays, []Phase{ride, charge, fresh}},
	"a call to another service is inserted before the call":                {ridePays, []Phase{ride, mail, charge}},
	"a call to another service is inserted after the call":                 {ridePays, []Phase{ride, charge, mail}},
	"a call to the same service is inserted before the call":               {ridePays, []Phase{ride, tip, charge}},
	"a call to the same service, with a step, is inserted before the call": {ridePays, []Phase{ride, call("tip", "payments/tip"), charge}},
	"a call to the same service is inserted after the call":                {ridePays, []Phase{ride, charge, tip}},
	"a phase that precedes the call is removed":                            {ridePays, []Phase{charge}},
	"the call is removed":                                                  {ridePays, []Phase{ride}},
	"the call is moved to the front":                                       {ridePays, []Phase{charge, ride}},
	"calls to two services are swapped":                                    {[]Phase{ride, charge, mail}, []Phase{ride, mail, charge}},
	"calls to one service are swapped":                                     {[]Phase{ride, charge, tip}, []Phase{ride, tip, charge}},
	"two phases with a call each become one":                               {[]Phase{ride, charge, mail}, []Phase{ride, call("both", "payments", "mailer")}},
	"a phase with two calls becomes two":                                   {[]Phase{ride, call("both", "payments", "mailer")}, []Phase{ride, charge, mail}},
	"a call becomes `NotIdempotent`, and still sends its key":              {ridePays, []Phase{ride, changed(charge, func(p *Phase) { p.NotIdempotent = true })}},
	"a call becomes `NotIdempotent`, and sends no key":                     {ridePays, []Phase{ride, changed(charge, func(p *Phase) { p.NotIdempotent, p.Calls = true, nil })}},
	"a `NotIdempotent` call becomes a plain one":                           {[]Phase{ride, changed(charge, func(p *Phase) { p.NotIdempotent, p.Calls = true, nil })}, ridePays},
	"a call becomes an `Atomic`":                                           {ridePays, []Phase{ride, changed(charge, func(p *Phase) { p.Kind, p.Calls = "Atomic", nil })}},
	"an `Atomic` becomes a `Foreign`":                                      {ridePays, []Phase{changed(ride, func(p *Phase) { p.Kind = "Foreign" }), charge}},
	"a call's service is renamed":                                          {ridePays, []Phase{ride, call("charge", "pay")}},
	"a call gets a step":                                                   {ridePays, []Phase{ride, call("charge", "payments/charge")}},
	"a call's step is renamed":                                             {[]Phase{ride, call("charge", "payments/a")}, []Phase{ride, call("charge", "payments/b")}},
	"a loop has another round":                                             {[]Phase{ride, leg}, []Phase{ride, leg}},
	"a phase's result has another type":                                    {ridePays, []Phase{changed(ride, func(p *Phase) { p.Result = map[string]any{"Name": "string"} }), charge}},
	"a phase's result has more fields":                                     {ridePays, []Phase{changed(ride, func(p *Phase) { p.Result = map[string]any{"ID": "string", "More": "string"} }), charge}},
	"`Remembers` becomes shorter":                                          {ridePays, []Phase{ride, changed(charge, func(p *Phase) { p.Remembers = 3600 })}},
	"`Finish` becomes a plain answer":                                      {ridePays, ridePays},
	"`Resumable` is turned off":                                            {ridePays, ridePays},
	"a loop has a round fewer":                                             unseen,
	"a call sends other parameters":                                        unseen,
}

// handler returns a handler that runs its phases in order.
func handler(phases []Phase) Handler { return ordered(phases, func(i, j int) bool { return i < j }) }

func ordered(phases []Phase, before func(i, j int) bool) Handler {
	return Handler{Package: "app", Name: "book", Phases: phases, Before: func(i, j int) bool {
		_, _ = phases[i], phases[j] // panic on an index out of range
		return before(i, j)
	}}
}

// messages returns the changes from one handler to another.
func messages(was []Phase, is Handler) (all []string) {
	for _, c := range locked(was).Compare(Program{Handlers: []Handler{is}}, everything, nothing) {
		all = append(all, c.Message)
	}
	return all
}

func locked(phases []Phase) *File {
	return &File{Version: version, Packages: map[string]map[string][]Phase{"app": {"book": phases}}}
}

func everything(string) bool { return true }
func nothing(string) bool    { return false }

// Compare judges each row of the page as the page does. The engine's
// tests compare the page with the engine.
func TestChangesAreJudgedAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../../docs/operate/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| change | if the call is in doubt or not made yet | if the call is recorded | |\n| --- | --- | --- | --- |\n")
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
		for _, ch := range locked(c.was).Compare(Program{Handlers: []Handler{handler(c.is)}}, everything, nothing) {
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
	inOrder := func(i, j int) bool { return i < j }
	inLoop := func(int, int) bool { return true }
	result := func(s Shape) []Phase { return []Phase{changed(ride, func(p *Phase) { p.Result = s })} }
	remembers := func(seconds int64) []Phase { return []Phase{changed(charge, func(p *Phase) { p.Remembers = seconds })} }
	for name, c := range map[string]struct {
		was, is []Phase
		before  func(i, j int) bool
		want    []string
	}{
		"renamed":             {ridePays, []Phase{trip, charge}, inOrder, []string{`the phase "ride" is now called "trip"`}},
		"gone":                {ridePays, []Phase{charge}, inOrder, []string{`the phase "ride" is removed`}},
		"new":                 {ridePays, []Phase{ride, fresh, charge}, inOrder, []string{`the phase "new" is added before "charge"`}},
		"new in a branch":     {ridePays, []Phase{fresh, ride, charge}, func(i, j int) bool { return i > 0 && i < j }, nil},
		"new in a loop":       {ridePays, []Phase{fresh, ride, charge}, inLoop, nil},
		"another kind":        {ridePays, []Phase{tip, charge}, inOrder, []string{`the phase "ride" is removed`, `the phase "tip" is added before "charge"`}},
		"gone, and new after": {[]Phase{trip, ride}, []Phase{ride, fresh}, inOrder, []string{`the phase "trip" is removed`}},
		"reordered":           {ridePays, []Phase{charge, ride}, inOrder, []string{`the phase "charge" now runs before "ride"`}},
		"now in a loop":       {ridePays, ridePays, inLoop, nil},
		"twice of a name":     {[]Phase{ride, ride}, []Phase{ride}, inOrder, []string{`the phase "ride" is removed`}},
		"any call":            {ridePays, []Phase{ride, call("charge", "*")}, inOrder, nil},
		"less than it was": {
			remembers(86401), remembers(0), inOrder, []string{`the phase "charge" now expects the provider to remember keys for only 24h0m0s (before: 24h0m1s)`},
		},
		"call": {
			ridePays,
			[]Phase{ride, call("charge", "pay")},
			inOrder,
			[]string{`the phase "charge" no longer calls tx.Key for "payments"; without the derived key, the provider treats a repeated call as a new call`},
		},
		"type": {result("int"), result("string"), inOrder, []string{`the phase "ride" returns another type (the result was int and is now string)`}},
	} {
		if diff := cmp.Diff(c.want, messages(c.was, ordered(c.is, c.before))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHandlersThatMove(t *testing.T) {
	t.Parallel()
	named := func(name string, phases ...Phase) Handler {
		h := handler(phases)
		h.Name = name
		return h
	}
	file := locked(ridePays)
	if changes := file.Compare(Program{Handlers: []Handler{named("create", ride, charge, fresh)}}, everything, nothing); len(changes) > 0 {
		t.Errorf("a handler got another name: %v", changes)
	}
	file.Packages["app"]["tip"] = []Phase{ride, charge}
	isGone := []Change{{Handler: "app.book", Message: `the handler is removed, with its phases "ride", "charge"`}}
	for name, others := range map[string][]Handler{
		"there is another one":  {named("tip", ride, charge)},
		"there is a new one":    {named("tip", ride, charge), named("create", mail)},
		"there are two of them": {named("create", mail), named("tip", ride, charge)},
	} {
		if diff := cmp.Diff(isGone, file.Compare(Program{Handlers: others}, everything, nothing)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if changes := file.Compare(Program{}, nothing, everything); len(changes) != 2 {
		t.Errorf("a package is gone: %v", changes)
	}
	if changes := file.Compare(Program{}, nothing, nothing); len(changes) > 0 {
		t.Errorf("a package was not looked at: %v", changes)
	}
}

// Updated replaces packages that were loaded, removes packages that are
// gone, and leaves all others unchanged.
func TestUpdated(t *testing.T) {
	t.Parallel()
	type phases = map[string][]Phase
	type engines = map[string]Meaning
	old := Meaning{"Scope": "old"}
	file := &File{
		Version:  version,
		Packages: map[string]phases{"app": {"book": ridePays}, "gone": {"a": ridePays}, "unseen": {"b": ridePays}},
		Engines:  map[string]engines{"app": {"main": old}, "gone": {"main": old}, "unseen": {"main": old}},
	}
	now := Program{
		Handlers: []Handler{{Package: "app", Name: "create", Phases: []Phase{trip}}, {Package: "app", Name: "tip", Phases: []Phase{tip}}},
		Engines:  []Engine{{Package: "app", Name: "new"}, {Package: "app", Name: "other", Meaning: Meaning{"ACP": "true"}}},
	}
	next := file.Updated(now, func(pkg string) bool { return pkg == "app" }, func(pkg string) bool { return pkg == "gone" })
	want := &File{
		Version:  version,
		Packages: map[string]phases{"app": {"create": {trip}, "tip": {tip}}, "unseen": {"b": ridePays}},
		Engines:  map[string]engines{"app": {"new": nil, "other": {"ACP": "true"}}, "unseen": {"main": old}},
	}
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if next.Equal(file) || !next.Equal(want) {
		t.Error("Equal")
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
	folder := t.TempDir()
	_, err := Read(folder)
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		t.Errorf("a folder: %v", err)
	}
	if err := locked(ridePays).Write(folder); err == nil {
		t.Error("a folder was written")
	}
	path := folder + "/samekey.lock"
	f, err := Read(path)
	if diff := cmp.Diff(&File{Version: 1}, f); diff != "" || err != nil {
		t.Errorf("no file: %v\n%s", err, diff)
	}
	if err := locked([]Phase{{Name: "a<b", Kind: "Atomic"}}).Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	const want = `{
  "version": 1,
  "packages": {
    "app": {
      "book": [
        {
          "phase": "a<b",
          "kind": "Atomic"
        }
      ]
    }
  }
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if f, err := Read(path); err != nil || len(f.Packages["app"]["book"]) != 1 {
		t.Errorf("%v, %v", f, err)
	}
}
