package state

import (
	"errors"
	"fmt"
	"maps"
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
