package idem_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A deploy changes a handler's phases while an operation is in progress: the
// table of docs/operate/changes.md, row by row. Version 1 dies or fails at every possible
// point, in every mode. Version 2 continues, called by the client or the
// completer, soon or after the provider has forgotten. In the end everything was
// paid for once, or the operation is refused and on the list.

// part is a phase of a handler: an Atomic without calls, or a Foreign with calls.
type part struct {
	name   string
	calls  []payment
	result any // an Atomic's result
	opts   []idem.PhaseOption
	kind   partKind
}

type partKind int

const (
	atomicPart partKind = iota
	foreignPart
	unkeyedPart // NotIdempotent, of a system without keys
	finishPart
	answerPart
)

// payment is a call: its purpose and amount, and the service and step of its key.
type payment struct{ what, amount, service, step string }

func writes(name string) part { return part{name: name, result: ride{name}} }

func pays(name string, calls ...payment) part {
	return part{name: name, calls: calls, kind: foreignPart}
}

var (
	theEnd   = part{kind: finishPart}
	charge20 = payment{"charge", "20", "payments", ""}
	mail     = payment{"mail", "hello", "mailer", ""}
	tip      = payment{"tip", "3", "payments", ""}
	rides20  = []part{writes("ride"), pays("charge", charge20), theEnd}
)

func with(p payment, change func(*payment)) payment { change(&p); return p }

func having(p part, opts ...idem.PhaseOption) part { p.opts = opts; return p }

func kindOf(k partKind, p part) part { p.kind = k; return p }

func loop(n int) []part {
	parts := []part{writes("ride")}
	for i := range n {
		parts = append(parts, pays(fmt.Sprint("leg/", i), payment{fmt.Sprint("leg", i), "5", "payments", fmt.Sprint(i)}))
	}
	return append(parts, theEnd)
}

// fate is the end of an operation.
type fate int

const (
	goesOn    fate = iota // until its answer, with each call made once
	mayStop               // as goesOn, or refused and on the list; no call is made twice
	isRefused             // refused, and on the list
	unsafe                // a call may be made twice
)

func (f fate) String() string {
	return [...]string{"goes on", "goes on, or is refused", "refused", "**may call twice**"}[f]
}

// changeOfPhases is a row of the table.
type changeOfPhases struct {
	name    string
	v1, v2  []part
	opt2    func(*idem.Options)
	before  fate // fate of an operation with its first phase recorded, and no call
	after   fate // fate once its first call is recorded
	because string
	first   fate // fate with nothing recorded
}

func changesOfPhases() []changeOfPhases {
	two := []part{writes("ride"), pays("charge", charge20), pays("mail", mail), theEnd}
	return []changeOfPhases{
		{"nothing", rides20, rides20, nil, goesOn, goesOn, "", goesOn},
		{"a call's phase is renamed", rides20, []part{writes("ride"), pays("payment", charge20), theEnd}, nil, goesOn, isRefused, "", goesOn},
		{"another phase is renamed", rides20, []part{writes("trip"), pays("charge", charge20), theEnd}, nil, isRefused, isRefused, "", goesOn},
		{"a phase is inserted at the front", rides20, append([]part{writes("new")}, rides20...), nil, isRefused, isRefused, "", goesOn},
		{"an `Atomic` is inserted before the call", rides20, []part{writes("ride"), writes("new"), pays("charge", charge20), theEnd}, nil, goesOn, isRefused, "", goesOn},
		{"an `Atomic` is inserted after the call", rides20, []part{writes("ride"), pays("charge", charge20), writes("new"), theEnd}, nil, goesOn, goesOn, "", goesOn},
		{"a call to another service is inserted before the call", rides20, []part{writes("ride"), pays("mail", mail), pays("charge", charge20), theEnd}, nil, goesOn, isRefused, "", goesOn},
		{"a call to another service is inserted after the call", rides20, two, nil, goesOn, goesOn, "", goesOn},
		{
			"a call to the same service is inserted before the call", rides20,
			[]part{writes("ride"), pays("tip", tip), pays("charge", charge20), theEnd},
			nil, mayStop, isRefused,
			"the new call gets the key of the call in doubt, and the provider refuses this key with other parameters. If the new call has a step, the operation goes on", goesOn,
		},
		{"a call to the same service, with a step, is inserted before the call", rides20, []part{writes("ride"), pays("tip", with(tip, func(p *payment) { p.step = "tip" })), pays("charge", charge20), theEnd}, nil, goesOn, isRefused, "", goesOn},
		{"a call to the same service is inserted after the call", rides20, []part{writes("ride"), pays("charge", charge20), pays("tip", tip), theEnd}, nil, goesOn, goesOn, "", goesOn},
		{"a phase that precedes the call is removed", rides20, []part{pays("charge", charge20), theEnd}, nil, isRefused, isRefused, "", goesOn},
		{
			"the call is removed", rides20,
			[]part{writes("ride"), theEnd},
			nil, mayStop, isRefused,
			"refused if the call may have begun", goesOn,
		},
		{"the call is moved to the front", rides20, []part{pays("charge", charge20), writes("ride"), theEnd}, nil, isRefused, isRefused, "", goesOn},
		{"calls to two services are swapped", two, []part{writes("ride"), pays("mail", mail), pays("charge", charge20), theEnd}, nil, goesOn, isRefused, "", goesOn},
		{
			"calls to one service are swapped",
			[]part{writes("ride"), pays("charge", charge20), pays("tip", tip), theEnd},
			[]part{writes("ride"), pays("tip", tip), pays("charge", charge20), theEnd},
			nil, mayStop, isRefused, "the provider refuses each key, since the parameters are those of the other call. If the calls have steps, the operation goes on", goesOn,
		},
		{"two phases with a call each become one", two, []part{writes("ride"), pays("both", charge20, mail), theEnd}, nil, goesOn, isRefused, "", goesOn},
		{"a phase with two calls becomes two", []part{writes("ride"), pays("both", charge20, mail), theEnd}, two, nil, goesOn, isRefused, "", goesOn},
		{
			"a call becomes `NotIdempotent`, and still sends its key", rides20,
			[]part{writes("ride"), having(pays("charge", charge20), idem.NotIdempotent()), theEnd},
			nil, mayStop, goesOn,
			"refused if the call may have begun", goesOn,
		},
		{
			"a call becomes `NotIdempotent`, and sends no key", rides20,
			[]part{writes("ride"), kindOf(unkeyedPart, pays("charge", charge20)), theEnd},
			nil, mayStop, goesOn,
			"refused if the call may have begun", goesOn,
		},
		{
			"a `NotIdempotent` call becomes a plain one",
			[]part{writes("ride"), kindOf(unkeyedPart, pays("charge", charge20)), theEnd},
			rides20, nil, mayStop, goesOn,
			"stuck if the call may have begun", goesOn,
		},
		{"a call becomes an `Atomic`", rides20, []part{writes("ride"), writes("charge"), theEnd}, nil, mayStop, goesOn, "refused if the call may have begun", goesOn},
		{"an `Atomic` becomes a `Foreign`", rides20, []part{kindOf(foreignPart, writes("ride")), pays("charge", charge20), theEnd}, nil, goesOn, goesOn, "", goesOn},
		{
			"a call sends other parameters", rides20,
			[]part{writes("ride"), pays("charge", with(charge20, func(p *payment) { p.amount = "25" })), theEnd},
			nil, mayStop, goesOn,
			"the provider refuses the key. Values to send belong in the result of an earlier phase; `idem.Sends` detects the change sooner", goesOn,
		},
		{
			"a call's service is renamed", rides20,
			[]part{writes("ride"), pays("charge", with(charge20, func(p *payment) { p.service = "pay" })), theEnd},
			nil, unsafe, goesOn,
			"the call gets another key under the new name. Let the operations under way end first (`samekey list --scan`). If an attempt recorded the call's failure, the engine detects the change, but only after the second call", goesOn,
		},
		{"a call gets a step", rides20, []part{writes("ride"), pays("charge", with(charge20, func(p *payment) { p.step = "charge" })), theEnd}, nil, unsafe, goesOn, "as for a renamed service", goesOn},
		{"a call's step is renamed", loop(1), []part{writes("ride"), pays("leg/0", payment{"leg0", "5", "payments", "first"}), theEnd}, nil, unsafe, goesOn, "as for a renamed service", goesOn},
		{"a loop has another round", loop(2), loop(3), nil, goesOn, goesOn, "", goesOn},
		{"a loop has a round fewer", loop(2), loop(1), nil, goesOn, mayStop, "refused if the last round is recorded, or may have begun", goesOn},
		{
			"a phase's result has another type", rides20,
			[]part{{name: "ride", result: struct{ Name string }{"x"}}, pays("charge", charge20), theEnd},
			nil, isRefused, isRefused,
			"`ErrResult` if the new type has no field for a stored value. A new field is zero", goesOn,
		},
		{"a phase's result has more fields", rides20, []part{{name: "ride", result: struct {
			ID, More string
		}{"x", "y"}}, pays("charge", charge20), theEnd}, nil, goesOn, goesOn, "", goesOn},
		{"`Finish` becomes a plain answer", rides20, []part{writes("ride"), pays("charge", charge20), {kind: answerPart}}, nil, goesOn, goesOn, "", goesOn},
		{"`Resumable` is turned off", rides20, rides20, func(o *idem.Options) { o.Resumable = false }, goesOn, goesOn, "", goesOn},
		{
			"`Remembers` becomes shorter", rides20,
			[]part{writes("ride"), having(pays("charge", charge20), idem.Remembers(time.Hour)), theEnd},
			nil, mayStop, goesOn,
			"stuck if the shorter time has passed since the call", mayStop,
		},
	}
}

// bank stands for the providers: each pays once for each key that it remembers,
// and refuses a key with other data.
type bank struct {
	clock *idemtest.Clock
	keys  map[string]entry
	made  map[string]int // number of payments
}

type entry struct {
	request string
	at      time.Time
}

const bankRemembers = 24 * time.Hour

var errOtherParameters = errors.New("400 idempotency_error")

func (b *bank) pay(p payment, key string) error {
	known, ok := b.keys[p.service+key]
	switch {
	case key == "":
	case ok && b.clock.Now().Sub(known.at) > bankRemembers: // forgotten
	case ok && known.request != p.what+p.amount:
		return errOtherParameters
	case ok:
		return nil
	}
	b.keys[p.service+key] = entry{p.what + p.amount, b.clock.Now()}
	b.made[p.what]++
	return nil
}

// accident happens to version 1: before or after one of its calls to the store or
// a provider takes effect, version 1 dies or gets no answer.
type accident struct {
	call  int // number of the call to the store, from 1; 0 = a call to a provider
	pay   int // number of the call to a provider, from 1
	after bool
	dies  bool
}

func (a accident) String() string {
	how := map[bool]string{true: "dies", false: "fails"}[a.dies] + map[bool]string{true: " after", false: " before"}[a.after]
	if a.call > 0 {
		return fmt.Sprintf("%s call %d to the store", how, a.call)
	}
	return fmt.Sprintf("%s payment %d", how, a.pay)
}

var errAccident = errors.New("no answer")

// handler makes a handler of parts. Its effects after the accident don't count.
func (b *bank) handler(parts []part, acc accident, store *idemtest.FaultyStore) func(context.Context) (idem.Response, error) {
	payments := 0
	payOnce := func(p payment, key string) error {
		payments++
		hit := store != nil && acc.call == 0 && payments == acc.pay
		if store != nil && store.Crashed() {
			return idemtest.ErrCrashed
		}
		if hit && !acc.after {
			if acc.dies {
				store.Crash()
			}
			return errAccident
		}
		if err := b.pay(p, key); err != nil || !hit {
			return err
		}
		if acc.dies {
			store.Crash()
		}
		return errAccident
	}
	return func(ctx context.Context) (idem.Response, error) {
		payments = 0
		for _, p := range parts {
			var err error
			switch p.kind {
			case atomicPart:
				switch v := p.result.(type) {
				case ride:
					_, err = idem.Atomic(ctx, p.name, func(context.Context, *idem.Tx) (ride, error) { return v, nil })
				case struct{ Name string }:
					_, err = idem.Atomic(ctx, p.name, func(context.Context, *idem.Tx) (struct{ Name string }, error) { return v, nil })
				case struct{ ID, More string }:
					_, err = idem.Atomic(ctx, p.name, func(context.Context, *idem.Tx) (struct{ ID, More string }, error) { return v, nil })
				}
			case foreignPart, unkeyedPart:
				opts := p.opts
				if p.kind == unkeyedPart {
					opts = []idem.PhaseOption{idem.NotIdempotent()}
				}
				_, err = idem.Foreign(ctx, p.name, func(_ context.Context, tx *idem.Tx) (ride, error) {
					for _, c := range p.calls {
						key := ""
						switch {
						case p.kind == unkeyedPart:
						case c.step == "":
							key = tx.Key(c.service)
						default:
							key = tx.Key(c.service, c.step)
						}
						if err := payOnce(c, key); err != nil {
							return ride{}, err
						}
					}
					return ride{p.name}, nil
				}, opts...)
			case finishPart:
				return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
			case answerPart:
			}
			if err != nil {
				return idem.Response{}, err
			}
		}
		return idem.Response{Status: 201}, nil
	}
}

// deploy is one scenario.
type deploy struct {
	changeOfPhases
	byCompleter bool
	acc         accident
	gone        time.Duration // time until version 2 continues
}

func (d deploy) String() string {
	return fmt.Sprintf("%v, completer %t, gone for %v", d.acc, d.byCompleter, d.gone)
}

// deploySeen is the outcome of a scenario.
type deploySeen struct {
	happened bool          // whether the accident happened
	left     *store.Record // after the accident
	expected fate          // by the record after the accident
	ended    bool          // whether there was an answer
	listed   bool          // whether people see the operation
	again    string        // items paid for twice
	short    string        // items not paid for, though the operation ended
	err      error
}

func (d deploy) run(t *testing.T) deploySeen {
	t.Helper()
	seen, _ := d.runOn(t, new(idem.MemoryStore))
	return seen
}

// runOn leaves the record and the payments as they are in the end.
func (d deploy) runOn(t *testing.T, mem *idem.MemoryStore) (seen deploySeen, b *bank) {
	t.Helper()
	b = &bank{clock: idemtest.NewClock(), keys: make(map[string]entry), made: make(map[string]int)}
	opt := func(o *idem.Options) {
		o.Function, o.Now, o.Resumable, o.Retention = "f", b.clock.Now, true, 30*24*time.Hour
	}
	plan := func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if d.acc.call == 0 || c.Total != d.acc.call {
			return idemtest.Fault{}
		}
		seen.happened = true
		if d.acc.dies {
			return idemtest.Fault{Crash: true, Applied: d.acc.after}
		}
		return idemtest.Fault{Err: errors.New("access denied")}
	}
	st := idemtest.Faulty(mem, plan)
	_, err := do(t, idem.New(st, callertest.Anybody, opt), b.handler(d.v1, d.acc, st))
	seen.happened = seen.happened || errors.Is(err, errAccident) || st.Crashed() || errors.Is(err, idem.ErrStuck)
	if !seen.happened {
		return seen, b
	}
	seen.left = one(mem)
	seen.expected = d.expected(seen.left)
	done := seen.left != nil && seen.left.State == store.Done // only the answer was lost
	b.clock.Advance(d.gone)
	if d.opt2 == nil {
		d.opt2 = func(*idem.Options) {}
	}
	e := idem.New(mem, callertest.Anybody, opt, d.opt2)
	v2 := b.handler(d.v2, accident{}, nil)
	for range 3 {
		r := one(mem)
		if d.byCompleter && r != nil && r.State == store.Open && r.Input != nil {
			_, seen.err = e.Resume(t.Context(), state.TicketFor(r), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return v2(ctx) })
		} else {
			_, seen.err = do(t, e, v2)
		}
		b.clock.Advance(5 * time.Minute)
	}
	r := one(mem)
	seen.ended = r.State == store.Done
	seen.listed = r.State == store.Stuck || r.State == store.Open && r.Keep == store.KeepOpen && r.LastErr != ""
	for what, n := range b.made {
		if n > 1 {
			seen.again = what
		}
	}
	for _, p := range d.v2 {
		for _, c := range p.calls {
			if b.made[c.what] == 0 && !done {
				seen.short = c.what
			}
		}
	}
	return seen, b
}

// expected reads the row for the progress of version 1.
func (d deploy) expected(r *store.Record) fate {
	switch {
	case r == nil || r.State == store.Done:
		return goesOn
	case len(r.Phases) == 0:
		return d.first
	case len(r.Phases) == 1 || r.Phases[1].Intent:
		return d.before
	default:
		return d.after
	}
}

func TestChangesOfPhasesBetweenVersions(t *testing.T) {
	t.Parallel()
	var accidents []accident
	for _, dies := range []bool{true, false} {
		for _, after := range []bool{false, true} {
			for n := 1; n <= 6; n++ {
				accidents = append(accidents, accident{call: n, after: after, dies: dies}, accident{pay: n, after: after, dies: dies})
			}
		}
	}
	for _, change := range changesOfPhases() {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			met := make(map[fate]map[string]int) // outcomes of operations of each fate
			for _, f := range []fate{goesOn, mayStop, isRefused, unsafe} {
				met[f] = make(map[string]int)
			}
			for mode := range 4 {
				for _, acc := range accidents {
					d := deploy{change, mode&1 > 0, acc, time.Hour}
					if mode&2 > 0 {
						d.gone = 30 * time.Hour
					}
					seen := d.run(t)
					if !seen.happened {
						continue
					}
					d.judge(t, seen)
					result := "refused"
					if seen.again != "" {
						result = "twice"
					} else if seen.ended {
						result = "ended"
					}
					if d.gone == time.Hour {
						met[seen.expected][result]++
					}
				}
			}
			change.met(t, met)
		})
	}
}

// judge compares a scenario with its row.
func (d deploy) judge(t *testing.T, seen deploySeen) {
	t.Helper()
	soon := d.gone == time.Hour
	if seen.again != "" && seen.expected != unsafe && d.before != unsafe {
		t.Errorf("%v: %s was paid for twice", d, seen.again)
	}
	if seen.again != "" && seen.ended && !d.acc.dies {
		t.Errorf("%v: %s was paid for twice, and nobody hears of it", d, seen.again)
	}
	if seen.ended && seen.short != "" {
		t.Errorf("%v: it ended, and %s was never paid for", d, seen.short)
	}
	if !seen.ended && !seen.listed {
		t.Errorf("%v: refused (%v), and on no list", d, seen.err)
	}
	if soon && seen.expected == goesOn && !seen.ended {
		t.Errorf("%v: %v, want it to go on", d, seen.err)
	}
	if seen.expected == isRefused && seen.ended {
		t.Errorf("%v: it ended, want it refused", d)
	}
}

// met compares the row with the outcomes met: a warning without a case is a
// mistake.
func (c changeOfPhases) met(t *testing.T, met map[fate]map[string]int) {
	t.Helper()
	for _, f := range []fate{c.before, c.after} {
		want := map[fate][]string{goesOn: {"ended"}, mayStop: {"refused"}, isRefused: {"refused"}, unsafe: {"twice"}}[f]
		for _, result := range want {
			if met[f][result] == 0 {
				t.Errorf("nothing that %v: %v", f, strings.Join(want, ", "))
			}
		}
	}
}

// The page states the outcomes of this test, word for word.
func TestChangesOfPhasesAreAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operate/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, c := range changesOfPhases()[1:] {
		row := fmt.Sprintf("| %s | %v | %v | %s |\n", c.name, c.before, c.after, c.because)
		table.WriteString(strings.ReplaceAll(row, "|  |", "| |"))
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/operate/changes.md should have these rows:\n%s", table.String())
	}
}

// rollback is a row of the table in docs/operate/changes.md: a change that
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
			goesOn, isRefused, "the old type has no place for the field; if the field is empty, the operation goes on",
		},
		{
			"an `Atomic` became a `Foreign`", rides20,
			[]part{kindOf(foreignPart, writes("ride")), pays("charge", charge20), theEnd},
			goesOn, goesOn, "",
		},
		{
			"a loop got another round", loop(2), loop(3),
			mayStop, isRefused, "refused if the call of the new round may have begun",
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
	page, err := os.ReadFile("../docs/operate/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, r := range rollbacks() {
		row := fmt.Sprintf("| %s | %v | %v | %s |\n", r.name, r.before, r.after, r.because)
		table.WriteString(strings.ReplaceAll(row, "|  |", "| |"))
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/operate/changes.md should have these rows:\n%s", table.String())
	}
}
