package records

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

var update = flag.Bool("update", false, "write testdata/*.json as they are now")

var claimed = time.UnixMilli(1_800_000_000_000)

func at(d time.Duration) time.Time { return claimed.Add(d) }

// base is a record of a ride, held by its first attempt.
func base() *store.Record {
	return &store.Record{
		PK: "v1#rides#VgytXNOpVgytXNOpVgytXNOpVgytXNOpVgytXNOpVg0", State: store.Open, Owner: "attempt-1", Ver: 1, ID: "OPERATION", Route: "POST /rides",
		Scope: "jwt:jane", Handler: store.HandlerID{Function: "rides", Name: "create"}, Fingerprint: "fp", Created: claimed, Run: claimed,
		Lease: at(30 * time.Second), Expires: at(24 * time.Hour), Retention: 24 * time.Hour, Calls: map[string]int{},
	}
}

func with(changes ...func(*store.Record)) *store.Record {
	r := base()
	for _, c := range changes {
		c(r)
	}
	return r
}

func phased(r *store.Record) {
	r.Ver, r.Keep, r.Expires = 3, store.KeepOpen, time.Time{}
	r.Phases = []store.Phase{
		{Name: "ride_created", Result: []byte(`{"ride":7}`), At: 120 * time.Millisecond},
		{Name: "charge_created", Result: []byte(`"ch_1"`), At: 980 * time.Millisecond},
	}
	r.Calls = map[string]int{"payments#": 1, "maps/route%2Fday": 1}
	r.Jobs = map[string]store.Job{"1.0": {Kind: "receipt", Args: []byte(`{"to":"jane@example.com"}`)}, "1.1": {Kind: "push", Args: []byte(`1`), Tries: 2}}
}

func stored(r *store.Record) {
	r.Input = &store.Input{Method: "POST", Path: "/rides", Header: http.Header{"X-Trace": {"t"}}, Body: []byte(`{"card":"secret"}`)}
	r.Keep, r.Expires = store.KeepOpen, time.Time{}
}

func done(r *store.Record) {
	*r = *state.Finished(r, store.Response{Status: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"id":7}`)}, at(2*time.Second))
	r.Ver++
}

// Explain tells the story of a record in each situation.
func TestStories(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rec  *store.Record
		opts StoryOptions
	}{
		"held":                {with(), StoryOptions{Now: at(10 * time.Second)}},
		"held-with-phases":    {with(phased), StoryOptions{Now: at(10 * time.Second)}},
		"abandoned-completer": {with(phased, stored), StoryOptions{Now: at(time.Minute)}},
		"abandoned-late":      {with(phased, stored), StoryOptions{Now: at(time.Hour)}},
		"abandoned-client":    {with(phased), StoryOptions{Now: at(time.Minute)}},
		"abandoned-forgotten": {with(), StoryOptions{Now: at(time.Minute)}},
		"taken-over": {with(phased, stored, func(r *store.Record) {
			r.Ver, r.Owner, r.Run, r.Lease, r.Tries = 7, "attempt-4", at(time.Hour), at(time.Hour+30*time.Second), 1
			r.Doubts, r.DoubtSince = []string{"?", "payments#2"}, at(time.Minute)
			r.Handovers = []store.Handover{
				{At: at(time.Minute), Kind: state.HandoverRetry, Function: "rides-v2"},
				{At: at(2 * time.Minute), Kind: state.HandoverRelease, Err: "bank is down"},
				{At: at(time.Hour), Kind: state.HandoverCompleter},
			}
		}), StoryOptions{Now: at(time.Hour + time.Second)}},
		"times-unknown": {with(phased, func(r *store.Record) {
			r.Ver, r.Run, r.Lease = 6, at(time.Minute), at(2*time.Minute)
			r.Phases[0].At, r.Phases[1].At = 0, 0
		}), StoryOptions{Now: at(70 * time.Second)}},
		"blocked": {with(phased, stored, func(r *store.Record) {
			r.Lease, r.Run, r.Blocked, r.LastErr = time.Time{}, at(time.Minute), true, `phases out of order: "charged" is next`
			r.Handovers = []store.Handover{{At: at(time.Minute), Kind: state.HandoverRelease, Err: r.LastErr}}
		}), StoryOptions{Now: at(2 * time.Minute)}},
		"stuck-call": {with(phased, func(r *store.Record) {
			r.Phases = []store.Phase{{Name: "charge_created", Intent: true, At: 500 * time.Millisecond}}
			r.Calls, r.Jobs = map[string]int{}, nil
			*r = *state.MadeStuck(r, at(time.Second), "the outcome of phase \"charge_created\" is unknown: timeout")
		}), StoryOptions{Now: at(time.Hour)}},
		"stuck-keyless-call": {with(phased, func(r *store.Record) { // a process died in the call, and another took over
			r.Phases = append(r.Phases, store.Phase{Name: "refunded", Intent: true, At: 1500 * time.Millisecond})
			r.Doubts, r.DoubtSince, r.Jobs = []string{state.AnyCall}, at(time.Second), nil
			*r = *state.MadeStuck(r, at(time.Minute), "the outcome of phase \"refunded\" is unknown")
		}), StoryOptions{Now: at(time.Hour)}},
		"stuck-doubts": {with(phased, func(r *store.Record) {
			r.Doubts, r.DoubtSince, r.Jobs = []string{"payments#2"}, at(time.Second), nil
			*r = *state.MadeStuck(r, at(time.Second), "the provider may have forgotten the key")
		}), StoryOptions{Now: at(25 * time.Hour)}},
		"abandoned-looked-up": {with(phased, stored, func(r *store.Record) { // the provider may not know the call yet
			r.Doubts, r.DoubtSince, r.DoubtUntil, r.Jobs = []string{"payments#2"}, at(time.Second), at(31*time.Second), nil
			r.Asked = &store.Asked{Phase: "refunded", At: at(time.Minute), Times: 3, Said: "not made yet", Sent: at(31 * time.Second)}
			r.LastErr = `the outcome of phase "refunded" is unknown: its look-up says not made yet`
			r.Lease, r.Run = time.Time{}, at(time.Minute)
		}), StoryOptions{Now: at(2 * time.Minute)}},
		"kept-data": {with(phased, done), StoryOptions{Now: at(time.Hour), Data: true}},
		"kept-parked": {with(phased, done, func(r *store.Record) {
			r.Jobs = map[string]store.Job{"1.0": {Kind: "receipt", Args: []byte(`{}`), Tries: 5, Failed: "550 no such user"}}
		}), StoryOptions{Now: at(time.Hour)}},
		"done-settled": {with(phased, func(r *store.Record) {
			r.Jobs = nil
			*r = *state.MadeStuck(r, at(time.Second), "the provider is gone")
			next, err := state.Settled(r, state.Settlement{Answer: &store.Response{Status: 410}, By: "jane"}, at(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			*r = *state.Finished(next, store.Response{Status: 410, Body: []byte(`"refunded"`)}, at(time.Hour))
			r.Ver = 5
		}), StoryOptions{Now: at(2 * time.Hour), Data: true}},
		"ten-handovers": {with(phased, func(r *store.Record) { // the record no longer has the first handovers
			r.Run, r.Lease = at(time.Minute), at(2*time.Minute)
			for i := range 5 {
				r.Handovers = append(r.Handovers, store.Handover{At: at(time.Duration(i) * time.Second), Kind: state.HandoverRelease, Err: "bank is down"},
					store.Handover{At: at(time.Duration(i+1) * time.Second), Kind: state.HandoverRetry, Function: "rides"})
			}
		}), StoryOptions{Now: at(70 * time.Second)}},
		"nine-handovers": {with(phased, func(r *store.Record) {
			r.Run, r.Lease = at(time.Minute), at(2*time.Minute)
			for range 9 {
				r.Handovers = append(r.Handovers, store.Handover{At: at(time.Second), Kind: state.HandoverRetry})
			}
		}), StoryOptions{Now: at(70 * time.Second)}},
		"taken-over-by-an-earlier-version": {with(phased, func(r *store.Record) {
			r.Run, r.Lease = at(time.Minute), at(2*time.Minute)
			r.Handovers = []store.Handover{{At: at(time.Second), Kind: state.HandoverRelease, Err: "bank is down"}}
		}), StoryOptions{Now: at(70 * time.Second)}},
		"released": {with(stored, func(r *store.Record) { // by an earlier version's completer, without handovers
			r.Lease, r.Run, r.LastErr, r.Tries = time.Time{}, at(time.Minute), "bank is down.", 1
			r.Phases, r.Jobs = []store.Phase{{Name: "ride_created"}, {Name: "charge_created", At: time.Second}, {Name: "charged", At: time.Second}}, map[string]store.Job{"0.0": {Kind: "push"}}
			r.Calls = map[string]int{"payments#": 2, "maps#": 1, "bank/pay": 1, state.Skipped: 1}
			r.Doubts, r.DoubtSince = []string{state.AnyCall, "payments#4", "%zz#x"}, at(time.Second)
		}), StoryOptions{Now: at(21*time.Minute + 30*time.Second), Data: true}},
		"released-withheld": {with(stored, func(r *store.Record) { // a completer took the operation over between two answers that were withheld
			r.Lease, r.Run, r.LastErr, r.Tries = time.Time{}, at(2*time.Minute), "the answer 503 isn't stored", 2
			r.Handovers = []store.Handover{
				{At: at(time.Second), Kind: state.HandoverWithheld, Err: r.LastErr},
				{At: at(time.Minute), Kind: state.HandoverCompleter},
				{At: at(2 * time.Minute), Kind: state.HandoverWithheld, Err: r.LastErr},
			}
		}), StoryOptions{Now: at(3 * time.Minute)}},
		"released-late":  {with(stored, func(r *store.Record) { r.Lease, r.Run = time.Time{}, at(time.Minute) }), StoryOptions{Now: at(21 * time.Minute)}},
		"released-later": {with(stored, func(r *store.Record) { r.Lease, r.Run = time.Time{}, at(time.Minute) }), StoryOptions{Now: at(21*time.Minute + time.Second)}},
		"stuck-cause":    {with(func(r *store.Record) { *r = *state.MadeStuck(r, at(time.Second), "") }), StoryOptions{Now: at(time.Hour)}},
		"stuck-first-call": {with(func(r *store.Record) {
			r.Phases = []store.Phase{{Name: "charge_created", Intent: true, At: time.Second, Shape: `{"id":""}`}}
			r.Doubts = []string{"payments#1", state.AnyCall}
			*r = *state.MadeStuck(r, at(time.Second), "timeout")
		}), StoryOptions{Now: at(time.Hour)}},
		"result-given": {with(phased, func(r *store.Record) {
			r.Phases[1] = store.Phase{Name: "charge_created", Intent: true, At: 500 * time.Millisecond, Shape: `{"id":""}`}
			*r = *state.MadeStuck(r, at(time.Second), "timeout")
			next, err := state.Settled(r, state.Settlement{Result: []byte(`{"id":"ch_2"}`), By: "jane"}, at(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			*r = *next
			r.Phases[0].Result = []byte("no JSON")
			r.Handovers = []store.Handover{{At: at(time.Second), Kind: state.HandoverRelease, Err: "bank is down"}}
		}), StoryOptions{Now: at(2 * time.Hour), Data: true}},
		"kept-later": {with(phased, done, func(r *store.Record) {
			r.Jobs = map[string]store.Job{
				"0.0": {Kind: "push", At: at(2 * time.Hour), Args: []byte("no JSON")}, "1.0": {Kind: "push", At: at(30 * time.Minute)}, "1.1": {Kind: "push", At: at(90 * time.Minute), Args: []byte(`1`)},
				"1.2": {Kind: "push", At: at(90 * time.Minute)}, "1.x": {Kind: "push"}, "x.1": {Kind: "push"}, "2.0": {Kind: "push", Failed: "550"}, "10.0": {Kind: "push", Failed: "550"}, "x": {Kind: "push", Failed: "550"},
			}
		}), StoryOptions{Now: at(time.Hour), Data: true}},
		"kept-delivered": {with(phased, done, func(r *store.Record) { r.Jobs = nil }), StoryOptions{Now: at(time.Hour)}},
		"replayable": {with(done, func(r *store.Record) {
			r.Overflow = &store.Overflow{Count: 1, Length: 500_000}
		}), StoryOptions{Now: at(time.Hour)}},
		"replayable-not-kept": {with(done, func(r *store.Record) {
			r.Overflow = &store.Overflow{Length: 9_000_000}
		}), StoryOptions{Now: at(time.Hour)}},
		"sealed-answer": {with(done, func(r *store.Record) {
			r.Response = &store.Response{Header: http.Header{"X-Sealed": {"1"}}}
		}), StoryOptions{Now: at(time.Hour), Data: true, Sealed: "no key"}},
		"sealed-request": {with(stored, func(r *store.Record) {
			r.Input.Overflow = &store.Overflow{Count: 1, Length: 500_000}
			r.Input.Path = "/" + strings.Repeat("a", 700)
		}), StoryOptions{Now: at(time.Minute), Data: true, Sealed: "no key"}},
		"request": {with(stored), StoryOptions{Now: at(time.Minute), Data: true}},
		"expired": {with(done), StoryOptions{Now: at(30 * time.Hour)}},
		"freed":   {state.Released(base(), at(time.Second), state.Release{Why: "the handler failed"}), StoryOptions{Now: at(time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tt.rec.Clone()
			story := Explain(tt.rec, tt.opts)
			if diff := cmp.Diff(before, tt.rec); diff != "" {
				t.Errorf("the record was changed:\n%s", diff)
			}
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			if err := enc.Encode(story); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got.String()); diff != "" {
				t.Errorf("%s (-want +got); -update writes it:\n%s", file, diff)
			}
			for _, secret := range []string{"jane@example.com", `"ch_1"`, "secret", `{\"id\":7}`} {
				if !tt.opts.Data && strings.Contains(got.String(), secret) {
					t.Errorf("shows %s, which nobody asked for", secret)
				}
			}
		})
	}
}

// The keys of a story are the keys that the handler got, and its times are those of the attempts.
func TestStoryOfTheEngine(t *testing.T) {
	t.Parallel()
	clock := idemtest.NewClock()
	mem := &idem.MemoryStore{}
	engine := idem.New(mem, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
	var keys []string
	pay := func(fails bool) error {
		_, err := engine.Do(t.Context(), idem.Request{Key: "k", Scope: "jwt:jane", Method: "POST", Handler: store.HandlerID{Function: "rides"}}, func(ctx context.Context) (idem.Response, error) {
			for _, step := range []string{"one", "two"} {
				_, err := idem.Foreign(ctx, step, func(_ context.Context, tx *idem.Tx) (string, error) {
					clock.Advance(time.Second)
					keys = append(keys, tx.Key("the bank"))
					if fails && step == "two" {
						return "", errors.New("bank is down")
					}
					return "paid", nil
				})
				if err != nil {
					return idem.Response{}, err
				}
			}
			return idem.Response{Status: 201}, nil
		})
		return err
	}
	if pay(true) == nil {
		t.Fatal("answered")
	}
	rec := oneRecord(t, mem)
	story := Explain(rec, StoryOptions{Now: clock.Now()})
	if len(story.Calls) != 2 || story.Calls[0].Key != keys[0] || story.Calls[1].Key != keys[1] || story.Calls[0].Service != "the bank" ||
		story.Calls[0].State != "recorded" || story.Calls[1].State != "in doubt" || story.Calls[1].Number != 2 {
		t.Errorf("calls %+v, keys %v", story.Calls, keys)
	}
	if !derived(rec, keys[1]) || derived(rec, keys[1]+"0") {
		t.Error("the key in doubt is not found, or any key is")
	}
	if len(story.Attempts) != 1 || story.Attempts[0].End != "released" || !strings.Contains(story.Attempts[0].Error, "bank is down") {
		t.Errorf("attempts %+v", story.Attempts)
	}
	if len(story.Phases) != 1 || story.Phases[0].TookMS != 1000 {
		t.Errorf("phases %+v", story.Phases)
	}
	clock.Advance(time.Minute)
	if err := pay(false); err != nil {
		t.Fatal(err)
	}
	rec = oneRecord(t, mem)
	story = Explain(rec, StoryOptions{Now: clock.Now()})
	if len(story.Attempts) != 2 || story.Attempts[0].End != "released" || story.Attempts[1].By != "retry" || story.Attempts[1].End != "answered" || story.State != "replayable" || len(story.Phases) != 2 ||
		!story.Phases[1].Committed.Equal(clock.Now()) {
		t.Errorf("story %+v", story)
	}
	if len(story.Calls) != 2 || story.Calls[1].Key != keys[1] || !derived(rec, keys[1]) {
		t.Errorf("a finished record has the calls %+v, want the keys %q", story.Calls, keys)
	}
}

func derived(rec *store.Record, key string, services ...string) bool {
	is, _ := derives(rec, key, services...)
	return is
}

// An attempt whose operation a person settled gave up: it didn't die. A
// call in doubt has no duration.
func TestWhatWasMeasured(t *testing.T) {
	t.Parallel()
	now := claimed.Add(time.Hour)
	settled := func() *store.Record {
		r := base()
		r.State, r.Lease, r.Run, r.Handovers = store.Open, time.Time{}, claimed.Add(time.Minute), nil
		r.Settled = []store.Decision{{By: "jane", At: claimed.Add(time.Minute), What: "not made: charged", From: "stuck", To: "released"}}
		return r
	}
	if got := Explain(settled(), StoryOptions{Now: now}).Attempts; len(got) != 1 || got[0].End != "stuck" {
		t.Errorf("after settle got %+v, want one attempt that was stuck", got)
	}
	r := settled()
	r.Handovers = []store.Handover{{At: claimed.Add(2 * time.Minute), Kind: state.HandoverRetry}}
	r.Lease = now.Add(time.Minute)
	if got := Explain(r, StoryOptions{Now: now}).Attempts; len(got) != 2 || got[0].End != "stuck" || got[1].End != "working" {
		t.Errorf("after the retry got %+v, want stuck, then working", got)
	}
	r.Phases = []store.Phase{{Name: "charged", At: 15 * time.Millisecond, Intent: true}}
	if got := Explain(r, StoryOptions{Now: now}).Phases; len(got) != 1 || got[0].TookMS != 0 {
		t.Errorf("a call without an outcome took %+v, want no length", got)
	}
}

// A call that the record doesn't name is found by its step, or by its number up to 20.
func TestDerives(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		service string
		want    bool
	}{
		"the%20bank#1":         {"the bank", true},
		"the%20bank#20":        {"the bank", true},
		"the%20bank#21":        {"the bank", false},
		"the%20bank#0":         {"the bank", false},
		"the%20bank/pay/a%20b": {"the bank/pay/a b", true},
		"the%20bank/pay/a%20c": {"the bank/pay/a b", false},
		"the%20bank#2":         {"the bank/pay/a b", false},
	} {
		if got := derived(base(), state.DerivedKey("OPERATION", name), "mails", tt.service); got != tt.want {
			t.Errorf("%s of %q: %t", name, tt.service, got)
		}
		if derived(base(), state.DerivedKey("OPERATION", name)) {
			t.Errorf("%s without a service", name)
		}
	}
}

// A story has the fields of the record, and counts a write unit for each begun kilobyte.
func TestFactsAndCost(t *testing.T) {
	t.Parallel()
	got := Explain(base(), StoryOptions{Now: claimed})
	want := []Fact{
		{Label: "Record", Value: got.Record},
		{Label: "Operation", Value: "OPERATION"},
		{Label: "Route", Value: "POST /rides"},
		{Label: "Scope", Value: "jwt:jane"},
		{Label: "Handler", Value: "rides/create"},
	}
	if diff := cmp.Diff(want, got.Facts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	lookedUp := with(func(r *store.Record) {
		r.Asked = &store.Asked{Phase: "refunded", At: at(time.Minute), Times: 3, Said: "not made yet", Sent: at(31 * time.Second)}
	})
	want = append(want, Fact{Label: "Look-up", Value: `at 2027-01-15 08:01:00 UTC, look-up 3 of the call of phase "refunded" found: not made yet; the call can't have been sent after 2027-01-15 08:00:31 UTC`})
	if diff := cmp.Diff(want, Explain(lookedUp, StoryOptions{Now: claimed}).Facts); diff != "" {
		t.Errorf("after a look-up (-want +got):\n%s", diff)
	}
	for bytes, units := range map[int]int64{1023: 1, 1024: 1, 1025: 2} {
		long := with(func(r *store.Record) { r.LastErr = strings.Repeat("x", bytes-got.Cost.Bytes) })
		if cost := Explain(long, StoryOptions{Now: claimed}).Cost; cost.Bytes != bytes || cost.Units != units {
			t.Errorf("%d bytes cost %d units, want %d and %d", cost.Bytes, cost.Units, bytes, units)
		}
	}
}

// A request without failures writes no handovers, and times only with phases.
func TestAGoodRequestWritesNoHistory(t *testing.T) {
	t.Parallel()
	mem := &idem.MemoryStore{}
	if _, err := idem.New(mem, callertest.Anybody).Do(t.Context(), idem.Request{Key: "k", Scope: "s", Method: "POST"}, func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if r := oneRecord(t, mem); r.Handovers != nil || r.Settled != nil || r.Phases != nil {
		t.Errorf("got %+v", r)
	}
}

// Every record has a story.
func TestAnyRecordHasAStory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SampledFrom([]time.Time{{}, claimed, at(time.Second), at(time.Hour), at(-time.Hour)})
		r := base()
		r.State = rapid.SampledFrom([]store.State{store.Open, store.Done, store.Stuck}).Draw(t, "state")
		r.Keep = rapid.SampledFrom([]store.Keep{"", store.KeepOpen, store.KeepJobs}).Draw(t, "keep")
		r.Lease, r.Run, r.Until = some.Draw(t, "lease"), some.Draw(t, "run"), some.Draw(t, "until")
		if r.Expires = (time.Time{}); r.Keep == "" {
			r.Expires = at(time.Minute)
		}
		if r.State == store.Done {
			r.Response, r.Calls = &store.Response{Status: 200}, nil
		}
		for range rapid.IntRange(0, 12).Draw(t, "handovers") {
			r.Handovers = append(r.Handovers, store.Handover{
				At: some.Draw(t, "at"), Kind: rapid.SampledFrom([]string{"retry", "completer", "release", "of a later version"}).Draw(t, "kind"),
			})
		}
		for range rapid.IntRange(0, 3).Draw(t, "phases") {
			r.Phases = append(r.Phases, store.Phase{Name: "p", Intent: rapid.Bool().Draw(t, "intent"), Result: []byte(rapid.String().Draw(t, "result"))})
		}
		r.Doubts = rapid.SliceOfN(rapid.SampledFrom([]string{"?", "a#1", "a#x", "b/c", "#", "%zz"}), 0, 3).Draw(t, "doubts")
		r.Jobs = rapid.MapOfN(rapid.SampledFrom([]string{"0.0", "9.9", "x"}), rapid.Just(store.Job{Kind: "k"}), 0, 3).Draw(t, "jobs")
		s := Explain(r, StoryOptions{Now: some.Draw(t, "now"), Data: rapid.Bool().Draw(t, "data")})
		if s.Summary == "" || len(s.Next) == 0 || len(s.Attempts) == 0 || s.Attempts[len(s.Attempts)-1].End == "" {
			t.Errorf("%+v has the story %+v", r, s)
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
	})
}

// oneRecord returns the only record of a store.
func oneRecord(t *testing.T, mem *idem.MemoryStore) *store.Record {
	t.Helper()
	all := mem.Records()
	if len(all) != 1 {
		t.Fatalf("%d records", len(all))
	}
	for _, r := range all {
		return r
	}
	return nil
}

// The story of a forgotten operation doesn't say that nothing was done, as it does for a key
// that an attempt freed. A person's decision about an earlier operation makes no difference.
func TestForgottenIsNotFreed(t *testing.T) {
	t.Parallel()
	freedBy := func(forgot func(*store.Record) string) *Story {
		rec := with(phased, func(r *store.Record) {
			r.Lease, r.Run, r.Keep, r.Expires = time.Time{}, at(time.Hour), store.KeepFreed, at(75*time.Minute)
			r.Settled = []store.Decision{{By: "jane", At: at(time.Hour), What: "forget " + forgot(r), From: "abandoned", To: "free"}}
		})
		return Explain(rec, StoryOptions{Now: at(2 * time.Hour)})
	}
	got := freedBy(func(r *store.Record) string { return r.ID })
	if want := "The key is free: jane forgot the operation at 2027-01-15 09:00:00 UTC. The work of the operation stays done."; got.State != "free" || got.Summary != want {
		t.Errorf("got %s: %q, want %q", got.State, got.Summary, want)
	}
	if got := freedBy(func(*store.Record) string { return "THEOPERATIONBEFORE" }); !strings.Contains(got.Summary, "had done nothing") {
		t.Errorf("got %q", got.Summary)
	}
}

// The story says that a working attempt may renew its lease.
func TestHeldSaysThatALeaseIsRenewed(t *testing.T) {
	t.Parallel()
	got := Explain(base(), StoryOptions{Now: at(time.Second)})
	if strings.Contains(got.Summary, "at most") || !strings.Contains(got.Summary, "unless the attempt renews the lease") {
		t.Errorf("got %q", got.Summary)
	}
}

// The answer stays a person's answer, even if a person later decides about the jobs.
func TestAnswerStaysThatOfPeople(t *testing.T) {
	t.Parallel()
	rec := with(phased, done, func(r *store.Record) {
		r.Settled = []store.Decision{{By: "jane", What: "answer 201", From: "stuck", To: "done"}, {By: "omar", What: "redrive 1.0", From: "kept", To: "waiting"}}
	})
	got := Explain(rec, StoryOptions{Now: at(time.Hour)})
	if last := got.Attempts[len(got.Attempts)-1]; !got.Answer.Settled || last.End != "stuck" || last.Note != "a person gave the answer" {
		t.Errorf("answer %+v of attempt %+v", got.Answer, last)
	}
}
