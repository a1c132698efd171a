package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// In every record that a few writes can make, WaitSince is set exactly while the record
// waits for people, and it stays the same until the wait ends.
func TestWaitSinceIsSetWhileARecordWaits(t *testing.T) {
	t.Parallel()
	all := maps.Clone(moves)
	all["blocked"] = byHolder(func(r *store.Record, now time.Time) []*store.Record {
		return []*store.Record{Released(r, now, Release{Refusal: errors.New("another phase")})}
	})
	parks := func(failed string) move { // as a drain and an operator write it
		return func(r *store.Record, now time.Time) []*store.Record {
			if r == nil || len(r.Jobs) == 0 {
				return nil
			}
			next := *r
			next.Jobs = map[string]store.Job{"0.0": {Kind: "k", Failed: failed}}
			WaitFrom(&next, now)
			return []*store.Record{&next}
		}
	}
	all["park"], all["redrive"] = parks("refused"), parks("")
	causes, begin := make(map[Reason]int), time.Unix(1_000_000, 0)
	type node struct {
		r   *store.Record
		now time.Time
	}
	todo, seen := []node{{nil, begin}}, make(map[string]bool)
	for range 5 {
		var next []node
		for _, n := range todo {
			for _, now := range clocks(n.r, n.now) {
				for name, m := range all {
					for _, r := range m(n.r, now) {
						id := fmt.Sprintf("%+v %v", *r, now)
						if seen[id] {
							continue
						}
						seen[id] = true
						next = append(next, node{r, now})
						cause := WaitOf(r).Reason
						causes[cause]++
						switch {
						case (cause == NoReason) != r.WaitSince.IsZero():
							t.Fatalf("%s: the record waits for %q, since %v: %+v", name, cause, r.WaitSince, r)
						case cause != NoReason && n.r != nil && !n.r.WaitSince.IsZero() && !r.WaitSince.Equal(n.r.WaitSince):
							t.Fatalf("%s: the record has waited since %v, and now since %v", name, n.r.WaitSince, r.WaitSince)
						}
					}
				}
			}
		}
		todo = next
	}
	for _, cause := range []Reason{NoReason, ReasonUnknown, ReasonStuck, ReasonBlocked, ReasonParked} {
		if causes[cause] == 0 {
			t.Errorf("no record waits for %q: the walk shows nothing about it", cause)
		}
	}
}

// What an operator has to do depends on the cause, so the cause that needs most comes
// first.
func TestWaitOfSeveralCauses(t *testing.T) {
	t.Parallel()
	parked := map[string]store.Job{"1.0": {Kind: "mail", Failed: "refused"}, "0.0": {Kind: "fax"}}
	begun := []store.Phase{{Name: "one"}, {Name: "pay", Intent: true}}
	one := []store.Phase{{Name: "one"}}
	for name, tt := range map[string]struct {
		r    store.Record
		want Wait
	}{
		"a call has begun":         {store.Record{State: store.Stuck, Phases: begun, Jobs: parked}, Wait{Reason: ReasonUnknown, Phase: "pay"}},
		"a call is in doubt":       {store.Record{State: store.Stuck, Phases: one, Doubts: []string{"pay#1"}}, Wait{Reason: ReasonUnknown, Phase: "one"}},
		"given up":                 {store.Record{State: store.Stuck, Phases: one, Jobs: parked}, Wait{Reason: ReasonStuck, Phase: "one"}},
		"its program refuses":      {store.Record{State: store.Open, Blocked: true, Phases: one, Jobs: parked}, Wait{Reason: ReasonBlocked, Phase: "one"}},
		"a parked job":             {store.Record{State: store.Open, Phases: one, Jobs: parked}, Wait{Reason: ReasonParked, Job: "1.0", Kind: "mail", Failed: "refused"}},
		"a parked job of a done":   {store.Record{State: store.Done, Jobs: parked}, Wait{Reason: ReasonParked, Job: "1.0", Kind: "mail", Failed: "refused"}},
		"its only call has begun":  {store.Record{State: store.Stuck, Phases: begun[1:]}, Wait{Reason: ReasonUnknown, Phase: "pay"}},
		"it has finished":          {store.Record{State: store.Done, Blocked: true, Phases: one}, Wait{}},
		"a call of an open record": {store.Record{State: store.Open, Phases: begun, Doubts: []string{"pay#1"}}, Wait{}},
		"a waiting job":            {store.Record{State: store.Done, Jobs: map[string]store.Job{"0.0": {}}}, Wait{}},
	} {
		if got := WaitOf(&tt.r); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// A sweep finds what nobody works on: once its lease and the time for its client are over.
func TestWaits(t *testing.T) {
	t.Parallel()
	const grace = time.Minute
	in := &store.Input{}
	for name, tt := range map[string]struct {
		r       store.Record
		waits   Reason        // once it is due
		before  Reason        // until then
		dueFrom time.Duration // from Run
	}{
		"stuck":                       {store.Record{State: store.Stuck}, ReasonStuck, ReasonStuck, grace},
		"finished":                    {store.Record{State: store.Done}, NoReason, NoReason, grace},
		"freed":                       {store.Record{State: store.Open, Keep: store.KeepFreed}, NoReason, NoReason, grace},
		"blocked":                     {store.Record{State: store.Open, Keep: store.KeepOpen, Input: in, Blocked: true}, ReasonOpen, ReasonBlocked, grace},
		"with its request":            {store.Record{State: store.Open, Keep: store.KeepOpen, Input: in}, ReasonOpen, NoReason, grace},
		"tried already":               {store.Record{State: store.Open, Keep: store.KeepOpen, Input: in, Tries: 1}, ReasonOpen, NoReason, 2 * grace},
		"without its request":         {store.Record{State: store.Open, Keep: store.KeepOpen}, ReasonNoRequest, NoReason, grace},
		"with nothing committed":      {store.Record{State: store.Open}, ReasonExpiring, NoReason, grace},
		"held":                        {store.Record{State: store.Open, Keep: store.KeepOpen, Input: in, Lease: clock.Add(time.Hour)}, ReasonOpen, NoReason, time.Hour + grace},
		"held for as long as can be":  {store.Record{State: store.Open, Keep: store.KeepOpen, Input: in, Lease: clock.Add(24 * time.Hour)}, ReasonOpen, NoReason, 24*time.Hour + grace},
		"held for longer than can be": {store.Record{State: store.Open, Keep: store.KeepOpen, Input: in, Lease: clock.Add(24*time.Hour + 1)}, ReasonOpen, ReasonOpen, 24*time.Hour + 1 + grace},
	} {
		tt.r.Run = clock
		for after, want := range map[time.Duration]Reason{0: tt.before, tt.dueFrom + 1: tt.waits} {
			got, since := FoundBySweep(&tt.r, clock.Add(after), grace)
			if got != want || since.Sub(clock) != tt.dueFrom {
				t.Errorf("%s, %v after its attempt began: it waits for %s from %v on, want %s from %v on", name, after, got, since.Sub(clock), want, tt.dueFrom)
			}
		}
		if got, _ := FoundBySweep(&tt.r, clock.Add(tt.dueFrom), grace); tt.r.Lease.IsZero() && got != tt.before {
			t.Errorf("%s, at the very time: it waits for %s, want %s", name, got, tt.before)
		}
	}
}

// A job waits for its delivery until it is delivered or parked.
func TestPending(t *testing.T) {
	t.Parallel()
	r := &store.Record{State: store.Done, Keep: store.KeepJobs, Jobs: map[string]store.Job{"0.0": {}, "0.1": {Failed: "refused"}}}
	for _, tt := range []struct {
		r    *store.Record
		name string
		want bool
	}{{r, "0.0", true}, {r, "0.1", false}, {r, "0.2", false}, {nil, "0.0", false}} {
		if got := Pending(tt.r, tt.name); got != tt.want {
			t.Errorf("%s of %v: %t", tt.name, tt.r, got)
		}
	}
	for _, tt := range []struct {
		state store.State
		names []string
		want  bool
	}{
		{store.Done, []string{"0.1", "0.0"}, true},
		{store.Open, []string{"0.1", "0.0"}, false},
		{store.Done, []string{"0.0"}, false},
		{store.Done, []string{"0.0", "0.2"}, false},
		{store.Done, []string{"0.2", "0.3"}, false},
		{store.Done, []string{"0.0", "0.1", "0.2"}, false},
	} {
		if got := LastJobs(&store.Record{State: tt.state, Jobs: r.Jobs}, tt.names); got != tt.want {
			t.Errorf("%v are the last jobs of a record that is %s: %t", tt.names, tt.state, got)
		}
	}
}

// The request of a stuck operation goes after 30 days, or after the time for which its key
// would be remembered, if that is longer.
func TestRequestOutlived(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	r := &store.Record{State: store.Stuck, Input: &store.Input{}, Run: clock}
	for _, tt := range []struct {
		retention, after time.Duration
		want             bool
	}{
		{day, 30 * day, false},
		{day, 30*day + 1, true},
		{60 * day, 60 * day, false},
		{60 * day, 60*day + 1, true},
	} {
		r.Retention = tt.retention
		if got := RequestOutlived(r, clock.Add(tt.after)); got != tt.want {
			t.Errorf("remembered for %v, %v after its last attempt: %t", tt.retention, tt.after, got)
		}
	}
	for _, r := range []*store.Record{{State: store.Stuck, Run: clock}, {State: store.Open, Input: r.Input, Run: clock}} {
		if RequestOutlived(r, clock.Add(365*day)) {
			t.Errorf("the request of %+v goes", r)
		}
	}
}

func TestBackOffDoublesUpToAnHour(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		grace time.Duration
		tries int
		want  time.Duration
	}{
		{time.Minute, 0, time.Minute},
		{time.Minute, 1, 2 * time.Minute},
		{time.Minute, 5, 32 * time.Minute},
		{time.Minute, 6, time.Hour},
		{time.Minute, 1 << 62, time.Hour},
		{time.Nanosecond, 41, 1 << 41},
		{time.Nanosecond, 42, time.Hour},
		{time.Hour, 3, time.Hour},
		{3 * time.Hour, 3, 3 * time.Hour},
		{0, 3, 0},
		{time.Minute, -1, time.Minute},
	} {
		if got := BackOff(tt.grace, tt.tries); got != tt.want {
			t.Errorf("%v after %d tries: %v, want %v", tt.grace, tt.tries, got, tt.want)
		}
	}
}

// An operation is due a grace after it was seen, or after its lease if that ends later.
func TestDue(t *testing.T) {
	t.Parallel()
	seen := time.Unix(1_000_000, 0)
	for name, tt := range map[string]struct {
		r    store.Record
		want time.Duration
	}{
		"no lease":        {store.Record{}, time.Minute},
		"an ended lease":  {store.Record{Lease: seen.Add(-time.Second)}, time.Minute},
		"a longer lease":  {store.Record{Lease: seen.Add(time.Second)}, time.Minute + time.Second},
		"after two tries": {store.Record{Lease: seen.Add(time.Second), Tries: 2}, 4*time.Minute + time.Second},
	} {
		if got := Due(&tt.r, seen, time.Minute).Sub(seen); got != tt.want {
			t.Errorf("%s: %v later, want %v", name, got, tt.want)
		}
	}
}

// What the worker or a client can end is counted until it is ended; a plain request that
// died is not, nor what does no harm.
func TestReasonsThatAreCounted(t *testing.T) {
	t.Parallel()
	counted := make(map[string][]Reason)
	for _, r := range Reasons {
		if !r.people {
			counted[r.Metric] = append(counted[r.Metric], r.Reason)
		}
	}
	want := map[string][]Reason{"Abandoned": {ReasonOpen, ReasonNoRequest}, "Undelivered": {ReasonUndelivered}, "": {ReasonExpiring, ReasonKept}}
	for metric, reasons := range want {
		if !slices.Equal(counted[metric], reasons) || len(counted) != len(want) {
			t.Errorf("%q counts %v, want %v", metric, counted[metric], reasons)
		}
	}
}
