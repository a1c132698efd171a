package state

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// kinds is what each state and reason to keep says of a record: exhaustive, also of those
// that no transition makes.
var kinds = []struct {
	state      store.State
	keep       store.Keep
	unfinished bool // would be forgotten undone
	kept       bool // acts without its client
	letGo      bool // without jobs, nothing keeps it
	word       string
}{
	{store.None, store.KeepNothing, false, false, false, "free"},
	{store.None, store.KeepOpen, false, false, false, "free"},
	{store.None, store.KeepJobs, false, false, false, "free"},
	{store.None, store.KeepFreed, false, false, false, "free"},
	{store.Open, store.KeepNothing, true, false, false, "released"},
	{store.Open, store.KeepOpen, true, true, false, "released"},
	{store.Open, store.KeepJobs, true, false, false, "released"},
	{store.Open, store.KeepFreed, false, false, false, "free"},
	{store.Stuck, store.KeepNothing, true, false, false, "stuck"},
	{store.Stuck, store.KeepOpen, true, false, false, "stuck"},
	{store.Stuck, store.KeepJobs, true, false, false, "stuck"},
	{store.Stuck, store.KeepFreed, true, false, false, "free"},
	{store.Done, store.KeepNothing, false, false, false, "replayable"},
	{store.Done, store.KeepOpen, false, false, false, "replayable"},
	{store.Done, store.KeepJobs, false, false, true, "kept"},
	{store.Done, store.KeepFreed, false, false, false, "free"},
}

func TestFactsOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, in := range []*store.Input{nil, {}} {
			for _, jobs := range []map[string]store.Job{nil, {"0.0": {}}} {
				r := &store.Record{State: k.state, Keep: k.keep, Input: in, Jobs: jobs}
				for what, tt := range map[string]struct{ got, want bool }{
					"completable":  {Completable(r), k.kept && in != nil},
					"unfinished":   {Unfinished(r), k.unfinished},
					"kept":         {Kept(r), k.kept},
					"no jobs left": {NoJobsLeft(r), k.letGo && jobs == nil},
					"freed":        {Freed(r), k.keep == store.KeepFreed},
				} {
					if tt.got != tt.want {
						t.Errorf("state %q, keep %q, input %t, %d jobs: %s is %t", k.state, k.keep, in != nil, len(jobs), what, tt.got)
					}
				}
				if got := Word(r, clock); got != k.word {
					t.Errorf("state %q, keep %q: %s, want %s", k.state, k.keep, got, k.word)
				}
			}
		}
	}
}

func TestWordOfTimes(t *testing.T) {
	t.Parallel()
	before, after := clock.Add(-2*time.Second), clock.Add(2*time.Second)
	for want, records := range map[string][]*store.Record{
		"free":       {nil, {State: store.Open, Expires: before}, {State: store.Done, Expires: before}},
		"held":       {{State: store.Open, Lease: after}, {State: store.Open, Lease: after, Until: before}, {State: store.Open, Keep: store.KeepJobs, Lease: after}},
		"abandoned":  {{State: store.Open, Lease: before}, {State: store.Open, Lease: clock, Expires: after}},
		"stuck":      {{State: store.Stuck, Lease: after}},
		"replayable": {{State: store.Done, Until: after}, {State: store.Done, Lease: after}},
		"kept":       {{State: store.Done, Keep: store.KeepJobs, Until: before}},
	} {
		for _, r := range records {
			if got := Word(r, clock); got != want {
				t.Errorf("%+v: %s, want %s", r, got, want)
			}
		}
	}
}

// An unknown state, and a finished record without an answer, are corrupt.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	for state, want := range map[store.State][2]bool{ // without and with an answer
		store.None: {true, true}, store.Open: {false, false}, store.Stuck: {false, false}, store.Done: {true, false}, "doen": {true, true},
	} {
		got := [2]bool{Corrupt(&store.Record{State: state}), Corrupt(&store.Record{State: state, Response: &store.Response{}})}
		if got != want {
			t.Errorf("state %q: %v, want %v", state, got, want)
		}
	}
}

// Each text of a record's contents counts once, and bodies don't.
func TestSizeOf(t *testing.T) {
	t.Parallel()
	ten := strings.Repeat("x", 10)
	for name, tt := range map[string]struct {
		r    store.Record
		want int
	}{
		"nothing":      {},
		"phases":       {store.Record{Phases: []store.Phase{{Name: ten, Result: []byte("100")}, {Name: "b"}}}, 14},
		"a job":        {store.Record{Jobs: map[string]store.Job{"0.0": {Kind: "mail", Args: []byte("{}"), Group: "g", Failed: ten}}}, 20},
		"calls":        {store.Record{Calls: map[string]int{ten: 1}, Doubts: []string{ten}, Sent: map[string]string{ten: "h"}}, 36},
		"a request":    {store.Record{Input: &store.Input{Path: "/a", Query: "b=1", Snapshot: []byte("{}"), Header: http.Header{"A": {"1", "22"}}, Body: []byte(ten)}}, 12},
		"an answer":    {store.Record{Response: &store.Response{Header: http.Header{"A": {ten}, "B": {"1", ""}}, Body: []byte(ten)}}, 14},
		"all together": {store.Record{Phases: []store.Phase{{Name: "a"}}, Input: &store.Input{Path: "/a"}, Response: &store.Response{Header: http.Header{"B": {"1"}}}}, 5},
	} {
		if got := SizeOf(&tt.r); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", name, got, tt.want)
		}
	}
}
