package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
)

// What a person loses who forgets an operation is told by Lost, and Forgotten wants each
// of these losses accepted, in this order: the attempt, the jobs, the work.
func TestForgettingNeedsWhatLostTells(t *testing.T) {
	t.Parallel()
	response := &store.Response{Status: 201}
	n := 0
	for _, state := range []store.State{store.Open, store.Stuck, store.Done} {
		for lease, held := range map[time.Time]bool{{}: false, clock.Add(-time.Second): false, clock.Add(time.Second): true} {
			for _, phases := range [][]store.Phase{nil, {{Name: "one"}}} {
				for _, doubts := range [][]string{nil, {"pay#1"}} {
					for _, risk := range [][]store.Decision{nil, {{What: "risk of twice: pay"}}, make([]store.Decision, maxSettled)} { // older decisions may be gone
						for _, jobs := range []map[string]store.Job{nil, {"0.0": {Kind: "mail"}}} {
							n++
							rec := &store.Record{State: state, Lease: lease, Phases: phases, Doubts: doubts, Settled: risk, Jobs: jobs}
							done := state == store.Done
							if done {
								rec.Response = response
							}
							needs := Loss{
								Held: held && !done,
								Work: done || phases != nil || doubts != nil || risk != nil || !lease.IsZero(),
								Jobs: jobs != nil,
							}
							told := strings.Join(Lost(rec, clock), "\n")
							if got := (Loss{
								Held: strings.Contains(told, "(--lose-attempt)"), Work: strings.Contains(told, "(--lose-work)"), Jobs: strings.Contains(told, "(--lose-jobs)"),
							}); got != needs {
								t.Errorf("%+v: %+v is told, want %+v", rec, got, needs)
							}
							forgottenWith(t, rec, needs)
						}
					}
				}
			}
		}
	}
	if n != 216 {
		t.Errorf("%d records", n)
	}
}

func forgottenWith(t *testing.T, rec *store.Record, needs Loss) {
	t.Helper()
	for i := range 8 {
		accepted := Loss{Held: i&1 > 0, Work: i&2 > 0, Jobs: i&4 > 0}
		var want error
		switch {
		case needs.Held && !accepted.Held:
			want = ErrLives
		case needs.Jobs && !accepted.Jobs:
			want = ErrJobs
		case needs.Work && !accepted.Work:
			want = ErrWork
		}
		r, err := Forgotten(rec, clock, "jane", accepted)
		if !errors.Is(err, want) || (r == nil) != (want != nil) {
			t.Errorf("%+v: with %+v accepted: %+v, %v, want %v", rec, accepted, r, err, want)
		}
	}
}

// A forgotten operation tells who forgot it until its record goes. A finished one stays
// finished.
func TestForgotten(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *store.Record){
		"held":  func(*store.Record) {},
		"stuck": stuck,
		"done":  func(r *store.Record) { finished(r); r.Until = clockSec.Add(time.Hour) },
	} {
		rec := with(change)
		r, err := Forgotten(rec, clock, "jane", Loss{Held: true, Work: true, Jobs: true})
		if err != nil {
			t.Fatal(err)
		}
		want := store.Record{State: store.Open, Run: clockMs, Keep: store.KeepFreed, Expires: clockSec.Add(15 * time.Minute)}
		what := "forget i, with its jobs 0.0"
		if name == "done" {
			want.State, what = store.Done, "forget i"
		}
		got := store.Record{State: r.State, Run: r.Run, Lease: r.Lease, Until: r.Until, Keep: r.Keep, Expires: r.Expires, WaitSince: r.WaitSince, Input: r.Input}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if d := r.Settled[len(r.Settled)-1]; d.By != "jane" || !d.At.Equal(clockMs) || d.From != Word(rec, clock) || d.To != "free" || d.What != what {
			t.Errorf("%s: it tells %+v", name, d)
		}
		if _, err := Forgotten(r, clock, "jane", Loss{Held: true, Work: true, Jobs: true}); err == nil {
			t.Errorf("%s: forgotten twice", name)
		}
	}
}

// Who forgot an operation is known while its record is there, whatever people decided before.
func TestForgottenBy(t *testing.T) {
	t.Parallel()
	by := func(what string) []store.Decision {
		return []store.Decision{{What: "release"}, {By: "jane", What: what}}
	}
	for name, tt := range map[string]struct {
		rec  store.Record
		want string
	}{
		"nobody":                {store.Record{ID: "i", Keep: store.KeepFreed}, ""},
		"a person":              {store.Record{ID: "i", Keep: store.KeepFreed, Settled: by("forget i")}, "jane"},
		"with jobs":             {store.Record{ID: "i", Keep: store.KeepFreed, Settled: by("forget i, with its jobs 0.0")}, "jane"},
		"another operation":     {store.Record{ID: "i", Keep: store.KeepFreed, Settled: by("forget j")}, ""},
		"it was not freed":      {store.Record{ID: "i", Settled: by("forget i")}, ""},
		"another last decision": {store.Record{ID: "i", Keep: store.KeepFreed, Settled: by("release")}, ""},
	} {
		got := ""
		if d := ForgottenBy(&tt.rec); d != nil {
			got = d.By
		}
		if got != tt.want {
			t.Errorf("%s: by %q, want %q", name, got, tt.want)
		}
	}
}

// People cancel a job that has a time, until a drain begins to deliver it or parks it.
func TestCancellable(t *testing.T) {
	t.Parallel()
	at := clock.Add(time.Hour)
	r := &store.Record{Jobs: map[string]store.Job{
		"no time": {}, "begun": {At: at, Begun: clock}, "parked": {At: at, Failed: "refused"},
		"5": {At: at}, "4": {At: at}, "3": {At: at}, "2": {At: at}, "1": {At: clock.Add(-1)},
	}}
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5"}, Cancellable(r, nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"3", "5"}, Cancellable(r, []string{"5", "begun", "parked", "3", "unknown"})); diff != "" {
		t.Error(diff)
	}
}

// A decision is found in the record, or known not to be there, or nobody knows.
func TestHasDecision(t *testing.T) {
	t.Parallel()
	list := func(from, n int) (all []store.Decision) {
		for i := range n {
			all = append(all, store.Decision{ID: fmt.Sprint(from + i)})
		}
		return all
	}
	rec := func(id string, settled []store.Decision) *store.Record {
		return &store.Record{ID: id, Settled: settled}
	}
	for name, tt := range map[string]struct {
		now, seen   *store.Record
		made, known bool
	}{
		"the record is gone":                         {nil, rec("i", nil), false, false},
		"it is there":                                {rec("i", list(9, 1)), rec("i", nil), true, true},
		"it is there, of an operation that went":     {rec("j", list(8, 3)), rec("i", nil), true, true},
		"it is not there":                            {rec("i", nil), rec("i", nil), false, true},
		"another operation has the key":              {rec("j", nil), rec("i", nil), false, false},
		"nine others, of none":                       {rec("i", list(20, 9)), rec("i", nil), false, true},
		"ten others, of none":                        {rec("i", list(20, 10)), rec("i", nil), false, false},
		"ten, the last that was seen is one of them": {rec("i", list(20, 10)), rec("i", list(18, 3)), false, true},
		"ten, the last that was seen gave way":       {rec("i", list(20, 10)), rec("i", list(17, 3)), false, false},
	} {
		if made, known := HasDecision(tt.now, tt.seen, "9"); made != tt.made || known != tt.known {
			t.Errorf("%s: made %t, known %t", name, made, known)
		}
	}
}

// An operator reads these texts before a decision that can't be taken back.
func TestLostTells(t *testing.T) {
	t.Parallel()
	jobs := make(map[string]store.Job)
	for i, kind := range []string{"sms", "fax", "mail", "fax", "call"} {
		jobs[fmt.Sprintf("0.%d", i)] = store.Job{Kind: kind, Failed: "refused"}
	}
	for name, tt := range map[string]struct {
		rec  store.Record
		want []string
	}{
		"nothing": {store.Record{State: store.Open}, nil},
		"held": {store.Record{State: store.Open, Lease: clock.Add(time.Second), Phases: []store.Phase{{Name: "one"}, {Name: "two"}}, Jobs: jobs}, []string{
			"the attempt that holds the record, and may be at work (--lose-attempt)",
			`the work: phases ["one" "two"], and calls that may have been made. A request with the key does them AGAIN, under other derived keys (--lose-work)`,
			`5 undelivered jobs, of the kinds ["call" "fax" "mail" "sms"] (--lose-jobs)`,
		}},
		"done": {store.Record{State: store.Done, Phases: []store.Phase{{Name: "one"}}, Response: &store.Response{Status: 201}}, []string{"the answer 201: a retry runs the request AGAIN, under other derived keys (--lose-work)"}},
		"a job that waits": {store.Record{State: store.Open, Jobs: map[string]store.Job{"0.0": {Kind: "fax"}, "0.1": {Kind: "fax", Failed: "refused"}}}, []string{
			`2 undelivered jobs, of the kinds ["fax"] (--lose-jobs); a drain may have delivered 1 of them, or may still deliver them`,
		}},
		"jobs with a time, which no stream delivers, and one on its way": {store.Record{State: store.Open, Jobs: map[string]store.Job{"0.0": {Kind: "fax", At: clock.Add(time.Hour)}, "0.1": {Kind: "fax", At: clock.Add(-time.Hour), Begun: clock}}}, []string{
			`2 undelivered jobs, of the kinds ["fax"] (--lose-jobs); a drain may have delivered 1 of them, or may still deliver them`,
		}},
		"jobs with a time, which no stream delivers": {store.Record{State: store.Open, Jobs: map[string]store.Job{"0.0": {Kind: "fax", At: clock.Add(time.Hour)}, "0.1": {Kind: "fax", At: clock.Add(-time.Hour)}}}, []string{
			`2 undelivered jobs, of the kinds ["fax"] (--lose-jobs)`,
		}},
		"a job that waits, with one of a time": {store.Record{State: store.Open, Jobs: map[string]store.Job{"0.0": {Kind: "fax", At: clock.Add(time.Hour)}, "0.1": {Kind: "sms"}}}, []string{
			`2 undelivered jobs, of the kinds ["fax" "sms"] (--lose-jobs); a drain may have delivered 1 of them, or may still deliver them`,
		}},
		"done, and sealed": {store.Record{State: store.Done, Response: &store.Response{}}, []string{"the answer: a retry runs the request AGAIN, under other derived keys (--lose-work)"}},
	} {
		if diff := cmp.Diff(tt.want, Lost(&tt.rec, clock)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Only a lease is ended, of an operation that is open.
func TestLeaseEndedNeedsALease(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *store.Record){
		"released": func(r *store.Record) { r.Lease = time.Time{} },
		"stuck":    func(r *store.Record) { r.State = store.Stuck },
		"finished": func(r *store.Record) { r.State = store.Done },
		"expired":  func(r *store.Record) { r.Expires = clock.Add(-time.Second) },
	} {
		if r, err := LeaseEnded(with(change), clock, "jane"); !errors.Is(err, ErrNoLease) || r != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// Something is erased only from a finished record without jobs that still has it: its
// caller, or the body of its answer.
func TestErasedNeedsSomethingToErase(t *testing.T) {
	t.Parallel()
	elsewhere, notKept := &store.Overflow{Count: 1}, &store.Overflow{Length: 4}
	for name, tt := range map[string]struct {
		change func(r *store.Record)
		want   error
	}{
		"its caller and its answer": {func(*store.Record) {}, nil},
		"the answer":                {func(r *store.Record) { r.Scope = "" }, nil},
		"the answer elsewhere":      {func(r *store.Record) { r.Scope, r.Overflow = "", elsewhere }, nil},
		"its caller":                {func(r *store.Record) { r.Overflow = notKept }, nil},
		"neither":                   {func(r *store.Record) { r.Scope, r.Overflow = "", notKept }, ErrErased},
		"it is open":                {func(r *store.Record) { r.State = store.Open }, ErrOpen},
		"it has jobs":               {func(r *store.Record) { r.Jobs = busy().Jobs }, ErrJobs},
		"it has expired":            {func(r *store.Record) { r.Expires = clock.Add(-time.Second) }, nil},
		"its key was freed":         {func(r *store.Record) { r.Keep = store.KeepFreed }, nil},
		"it was given up, unfinished": {func(r *store.Record) {
			r.State, r.Response, r.Expires = store.Open, nil, clock.Add(-time.Second)
		}, nil},
	} {
		r, err := Erased(with(both(finished, tt.change)), clock, "jane")
		if (r == nil) != (err != nil) || (err == nil) != (tt.want == nil) || !errors.Is(err, tt.want) {
			t.Errorf("%s: %+v, %v, want %v", name, r, err, tt.want)
		}
	}
}

// An answer goes with the commit that has its status only, and not again with the next,
// unless that takes its caller.
func TestAnswerGoes(t *testing.T) {
	t.Parallel()
	kept := &store.Record{Response: &store.Response{Status: 200, Body: []byte("ok")}}
	elsewhere := &store.Record{Response: &store.Response{Status: 200}, Overflow: &store.Overflow{Count: 1}}
	gone := &store.Record{Response: &store.Response{Status: 200}, Overflow: &store.Overflow{}}
	of := &store.Record{Response: &store.Response{Status: 200}, Overflow: &store.Overflow{}, Scope: "jwt:jane"}
	open := &store.Record{Scope: "jwt:jane"}
	none := &store.Record{Overflow: &store.Overflow{}} // an answer that was not kept, of a record without one
	all := []*store.Record{kept, elsewhere, gone, of, open, none}
	for _, prev := range all {
		for _, next := range all {
			want := (prev == kept || prev == elsewhere) && (next == gone || next == of) || prev == of && next == gone || prev == gone && next == of
			if got := AnswerGoes(prev, next); got != want {
				t.Errorf("from %+v to %+v: %t", prev, next, got)
			}
		}
	}
}

// Every combination of what people can say, about every record that they can say it of.
func TestSettledRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(r *store.Record)
		needs  bool // people must say what became of the call
		result bool // they may say what it came to
		again  bool // they may say that it was not made, or risk it twice
	}{
		"nothing unknown":  {noDoubt, false, false, false},
		"nothing begun":    {func(r *store.Record) { noDoubt(r); r.Phases = nil }, false, false, false},
		"a call in doubt":  {func(*store.Record) {}, false, false, true},
		"a begun call":     {func(r *store.Record) { noDoubt(r); intent(r) }, true, true, true},
		"the first, begun": {func(r *store.Record) { intent(r); r.Phases = r.Phases[1:] }, true, true, true},
	} {
		for i := range 16 {
			s := Settlement{NotMade: i&1 > 0, RiskTwice: i&2 > 0}
			if i&4 > 0 {
				s.Result = []byte("1")
			}
			if i&8 > 0 {
				s.Answer = &store.Response{Status: 410}
			}
			var fits bool
			switch i {
			case 0:
				fits = !tt.needs
			case 1, 2:
				fits = tt.again
			case 4:
				fits = tt.result
			case 8:
				fits = true
			}
			r, err := Settled(with(both(stuck, tt.change)), s, clock)
			if (err == nil) != fits || (r == nil) != (err != nil) {
				t.Errorf("%s: %+v: %+v, %v", name, s, r, err)
			}
		}
	}
	for _, result := range []string{"", "{", "1 2", "\"\xff\""} {
		if r, err := Settled(with(both(stuck, intent)), Settlement{Result: []byte(result)}, clock); err == nil || r != nil {
			t.Errorf("the result %q is taken", result)
		}
	}
}

// What people say that a call came to has the shape that the program reads. They may say it
// once more, until an attempt may have gone on from it to another call.
func TestResultsThatPeopleGive(t *testing.T) {
	t.Parallel()
	charge := both(noDoubt, both(intent, func(r *store.Record) { stuck(r); r.Phases[1].Shape = `{"id":""}` }))
	say := func(r *store.Record, result string) (*store.Record, error) {
		s := Settlement{Result: []byte(result), By: "jane"}
		if !Settleable(r, s, clock) {
			return nil, nil
		}
		return Settled(r, s, clock)
	}
	if r, err := say(with(charge), `{}`); r != nil || err == nil || err.Error() != `the call of phase "pay": "id" is missing; the program reads {"id":"TEXT"}` {
		t.Errorf("a result without its field: %+v, %v", r, err)
	}
	first, err := say(with(charge), `{"id":"a"}`)
	if err != nil {
		t.Fatal(err)
	}
	if Settleable(first, Settlement{NotMade: true}, clock) {
		t.Error("a call with a result is settled as not made")
	}
	for name, tt := range map[string]struct {
		then func(r *store.Record)
		may  bool
	}{
		"at once":                           {func(*store.Record) {}, true},
		"the program refuses it":            {func(r *store.Record) { r.Blocked, r.WaitSince = true, clock }, true},
		"and people have it tried again":    {func(r *store.Record) { r.State, r.Settled = store.Stuck, Decided(r, clock, "joe", "try again", "") }, true},
		"an attempt is at work":             {func(r *store.Record) { r.Lease = clock.Add(1) }, false},
		"an attempt has died":               {func(r *store.Record) { r.Lease = clock.Add(-1) }, false},
		"an attempt may have called":        {func(r *store.Record) { r.Doubts = []string{"fax#1"} }, false},
		"people have risked the call twice": {func(r *store.Record) { r.Settled = Decided(r, clock, "joe", "risk of twice", "") }, false},
		"another call has begun":            {intent, false},
		"another phase is committed":        {func(r *store.Record) { r.Phases = append(r.Phases, store.Phase{Name: "next", Result: []byte("1")}) }, false},
		"it has finished":                   {func(r *store.Record) { *r = *Finished(r, store.Response{Status: 201}, clock) }, false},
		"it is forgotten":                   {func(r *store.Record) { r.Keep = store.KeepFreed }, false},
		"nobody has said anything":          {func(r *store.Record) { r.Settled = nil }, false},
		"it has no phases":                  {func(r *store.Record) { r.Phases = nil }, false},
	} {
		r := first.Clone()
		tt.then(r)
		if may := Decidable(r, clock) != nil; may != tt.may {
			t.Errorf("%s: correctable %t", name, may)
		}
		if !tt.may {
			continue
		}
		if _, err := say(r, `{"ID":"b"}`); err == nil {
			t.Errorf("%s: a wrong correction is taken", name)
		}
		second, err := say(r, `{"id":"b"}`)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []store.Phase{first.Phases[0], {Name: "pay", Result: []byte(`{"id":"b"}`), Shape: `{"id":""}`}}
		if diff := cmp.Diff(want, second.Phases); diff != "" || second.Calls[Skipped] != 1 || second.State != store.Open || second.Blocked || !second.WaitSince.IsZero() {
			t.Errorf("%s: %+v (-want +got):\n%s", name, second, diff)
		}
	}
}

// Stuck operations are settled, and an abandoned one is answered.
func TestSettleable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change           func(r *store.Record)
		settles, answers bool
	}{
		"stuck":     {stuck, true, true},
		"abandoned": {func(r *store.Record) { r.Lease = clock }, false, true},
		"released":  {func(r *store.Record) { r.Lease = time.Time{} }, false, true},
		"held":      {func(*store.Record) {}, false, false},
		"freed":     {func(r *store.Record) { r.Lease, r.Keep = clock, store.KeepFreed }, false, false},
		"done":      {finished, false, false},
	} {
		r := with(tt.change)
		settles, answers := Settleable(r, Settlement{}, clock), Settleable(r, Settlement{Answer: &store.Response{}}, clock)
		if settles != tt.settles || answers != tt.answers {
			t.Errorf("%s: settleable %t, answerable %t", name, settles, answers)
		}
	}
	if Settleable(nil, Settlement{Answer: &store.Response{}}, clock) {
		t.Error("no record is settleable")
	}
}
