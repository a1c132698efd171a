package idem_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// rollback is a row of the table in docs/start/phases.md: a change that
// goes on when it is deployed, and the fate of the new version's operations when the
// old version is back.
type rollback struct {
	name     string
	old, new []part
	before   fate // of an operation that hasn't recorded anything new
	after    fate // that has
	because  string
}

func rollbacks() []rollback {
	more := part{name: "ride", result: struct{ ID, More string }{"x", "y"}}
	return []rollback{
		{
			"an `Atomic` was added at the end", rides20,
			[]part{writes("ride"), pays("charge", charge20), writes("new"), theEnd},
			goesOn, isRefused, "",
		},
		{
			"a call was added at the end", rides20,
			[]part{writes("ride"), pays("charge", charge20), pays("mail", mail), theEnd},
			mayStop, isRefused, "refused if the call may have begun",
		},
		{
			"a field was added to a result", rides20,
			[]part{more, pays("charge", charge20), theEnd},
			goesOn, isRefused, "unless the field is empty: the old type has no place for it",
		},
		{
			"an `Atomic` became a `Foreign`", rides20,
			[]part{kindOf(foreignPart, writes("ride")), pays("charge", charge20), theEnd},
			goesOn, goesOn, "",
		},
		{
			"a loop got another round", loop(2), loop(3),
			mayStop, isRefused, "as with a call that was added",
		},
	}
}

// recordedNew reports whether a record has anything that the old version doesn't know.
func (r rollback) recordedNew(rec *store.Record) bool {
	if rec == nil || len(rec.Phases) == 0 {
		return false
	}
	for i, p := range rec.Phases {
		if i >= len(r.old)-1 || p.Name != r.old[i].name {
			return true
		}
	}
	return fmt.Sprint(r.old[0].result) != fmt.Sprint(r.new[0].result)
}

// The new version dies or fails at every point; the old version is back, three times;
// and then the new one again. Nothing is paid for twice, who is refused is on the
// list, and the new version brings it to its end.
func TestRollBacks(t *testing.T) {
	t.Parallel()
	for _, r := range rollbacks() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			met := map[fate]map[bool]int{goesOn: {}, mayStop: {}, isRefused: {}}
			for i := range 2 * 2 * 2 * 8 {
				acc := accident{dies: i&1 > 0, after: i&2 > 0}
				if n := 1 + i>>3%8; i&4 > 0 {
					acc.call = n
				} else {
					acc.pay = n
				}
				r.run(t, acc, met)
			}
			for _, f := range []fate{r.before, r.after} {
				if f == isRefused && met[f][false] == 0 || f == goesOn && met[f][true] == 0 || f == mayStop && (met[f][true] == 0 || met[f][false] == 0) {
					t.Errorf("nothing that %v: %v", f, met)
				}
			}
		})
	}
}

// run notes in met whether the old version ended an operation.
func (r rollback) run(t *testing.T, acc accident, met map[fate]map[bool]int) {
	t.Helper()
	var mem idem.MemoryStore
	scenario := deploy{changeOfPhases: changeOfPhases{name: r.name, v1: r.new, v2: r.old}, acc: acc, gone: 5 * time.Minute}
	seen, b := scenario.runOn(t, &mem)
	rec := seen.left
	if !seen.happened || rec == nil || rec.State == store.Done {
		return
	}
	expected := r.before
	if r.recordedNew(rec) {
		expected = r.after
	}
	met[expected][seen.ended]++
	switch {
	case seen.again != "":
		t.Errorf("%v: %s was paid for twice", scenario, seen.again)
	case expected == goesOn && !seen.ended:
		t.Errorf("%v: %v, want it to go on", scenario, seen.err)
	case expected == isRefused && seen.ended:
		t.Errorf("%v: it ended, want it refused", scenario)
	case !seen.ended && !seen.listed:
		t.Errorf("%v: refused (%v), and on no list", scenario, seen.err)
	}
	if seen.ended {
		return
	}
	e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) {
		o.Function, o.Now, o.Resumable, o.Retention = "f", b.clock.Now, true, 30*24*time.Hour
	})
	res, err := do(t, e, b.handler(r.new, accident{}, nil))
	if err != nil || res.Status != 201 || one(&mem).State != store.Done {
		t.Errorf("%v: the new version is back: %d, %v", scenario, res.Status, err)
	}
	for what, n := range b.made {
		if n > 1 {
			t.Errorf("%v: the new version is back, and %s is paid for twice", scenario, what)
		}
	}
}

// The page says what the test has met, word for word.
func TestRollBacksAreAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/start/phases.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, r := range rollbacks() {
		row := fmt.Sprintf("| %s | %v | %v | %s |\n", r.name, r.before, r.after, r.because)
		table.WriteString(strings.ReplaceAll(row, "|  |", "| |"))
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/start/phases.md should have these rows:\n%s", table.String())
	}
}
