package state

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
)

// Under a delivery's key nothing is called, except by a program that may have called
// already: its record was claimed when such keys were not refused.
func TestMayReach(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		deliveryKey bool
		held        *store.Record
		want        bool
	}{
		"before the claim":                           {false, nil, true},
		"with its record":                            {false, &store.Record{}, true},
		"a delivery's key":                           {true, nil, false},
		"a delivery's key, and claimed so":           {true, &store.Record{DeliveryKey: true}, false},
		"a delivery's key, and claimed without that": {true, &store.Record{}, true},
		"no delivery's key, but claimed under one":   {false, &store.Record{DeliveryKey: true}, true},
	} {
		if got := MayReach(tt.deliveryKey, tt.held); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// The keys that other systems have seen stay the same: they were computed apart from this
// code (SHA-256 of the parts, each after its length in eight bytes).
func TestDerivedKeysStayTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		parts []string
		want  string
	}{
		{nil, "e3b0c442-98fc-8c14-9afb-f4c8996fb924"},
		{[]string{"op", "pay#1"}, "3275ccbc-fa3c-8c97-9a89-8989a8e6948b"},
		{[]string{"op", "pay", "#1"}, "33731881-0e50-8a3c-91ff-11ad63007f5c"},
		{[]string{"oppay#1"}, "d3115c2e-b320-8c2d-b80c-0cef927b42d7"},
		{[]string{"", "x"}, "d6c76140-95ea-8061-81f9-7bd278038e41"},
		{[]string{"x", ""}, "578579c7-a966-8974-8434-9371ee482584"},
	} {
		if got := DerivedKey(tt.parts...); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.parts, got, tt.want)
		}
	}
}

// Calls are counted by their service, and steps by their names: the next call of a
// service gets the next number.
func TestTally(t *testing.T) {
	t.Parallel()
	made := map[string]int{"pay#": 1, Skipped: 1}
	for name, tt := range map[string]struct {
		made  map[string]int
		calls []string
		want  map[string]int
	}{
		"nothing of nothing": {nil, nil, nil},
		"nothing more":       {made, nil, made},
		"the first":          {nil, []string{"pay#1"}, map[string]int{"pay#": 1}},
		"more": {
			made,
			[]string{"pay#2", "pay#3", "mail/welcome", "#1"},
			map[string]int{"pay#": 3, Skipped: 1, "mail/welcome": 1, "#": 1},
		},
	} {
		if diff := cmp.Diff(tt.want, Tally(tt.made, tt.calls)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(made) != 2 || made["pay#"] != 1 {
		t.Errorf("the counts before have changed: %v", made)
	}
}

// A call whose commit landed after all is not in doubt after the release. Numbers that
// operators skipped may be any service's.
func TestReleaseDoubtsOnlyWhatNoPhaseRecords(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000_000)
	for call, recorded := range map[string]bool{
		"pay#1": true, "pay#2": true, "pay#3": true, "pay#4": false,
		"fax#1": true, "fax#2": false, "fax#x": false, "fax#": false,
		"mail/welcome": true, "mail/bye": false, AnyCall: false,
	} {
		held := &store.Record{
			State: store.Open, Keep: store.KeepOpen, Lease: now.Add(time.Minute), Phases: []store.Phase{{Name: "one"}}, Mark: AnyCall,
			Calls: map[string]int{"pay#": 2, Skipped: 1, "mail/welcome": 1},
		}
		if got := len(Released(held, now, Release{Calls: []string{call}}).Doubts) == 0; got != recorded {
			t.Errorf("%s counts as recorded: %t, want %t", call, got, recorded)
		}
	}
}

// The first hash of a call's data wins: that call may have been made.
func TestSending(t *testing.T) {
	t.Parallel()
	sent, more := map[string]string{"pay#1": "first"}, map[string]string{"pay#1": "second", "fax#1": "first"}
	for name, tt := range map[string]struct{ sent, more, want map[string]string }{
		"nothing": {nil, nil, nil},
		"no more": {sent, nil, sent},
		"only":    {nil, sent, sent},
		"both":    {sent, more, map[string]string{"pay#1": "first", "fax#1": "first"}},
	} {
		if diff := cmp.Diff(tt.want, Sending(tt.sent, tt.more)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(sent) != 1 || len(more) != 2 || more["pay#1"] != "second" {
		t.Errorf("the maps have changed: %v, %v", sent, more)
	}
}

// A release keeps the hashes of calls in doubt, and no others.
func TestReleaseKeepsWhatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000_000)
	open := wrote(Claimed(store.Record{PK: "p", Owner: "a", Keep: store.KeepOpen, Mark: AnyCall}, now, now.Add(time.Hour)), nil, "")
	open.Sent = map[string]string{"pay#1": "one", "pay#2": "two"}
	for name, tc := range map[string]struct {
		doubts []string
		b      Release
		want   []string
	}{
		"nothing was called":                   {nil, Release{}, nil},
		"this attempt's":                       {nil, Release{Calls: []string{"pay#2"}}, []string{"pay#2"}},
		"an earlier attempt's":                 {[]string{"pay#1"}, Release{}, []string{"pay#1"}},
		"both":                                 {[]string{"pay#1"}, Release{Calls: []string{"pay#2"}}, []string{"pay#1", "pay#2"}},
		"of one, nobody knows which":           {[]string{AnyCall}, Release{}, []string{"pay#1", "pay#2"}},
		"of one of this, nobody knows which":   {nil, Release{Calls: []string{AnyCall}}, []string{"pay#1", "pay#2"}},
		"with something else, the first stays": {nil, Release{Calls: []string{"pay#1"}, Sent: map[string]string{"pay#1": "x"}}, []string{"pay#1"}},
	} {
		held := *open
		held.Doubts = tc.doubts
		r := goesOn(Released(&held, now, tc.b), &held)
		got := slices.Sorted(maps.Keys(r.Sent))
		if !slices.Equal(got, tc.want) || r.Sent["pay#1"] == "x" || len(held.Sent) != 2 {
			t.Errorf("%s: %v is kept, want %v", name, r.Sent, tc.want)
		}
	}
}

// A call is as old as the attempt that may have made it, however often that
// attempt renewed its lease, and however many attempts followed.
func TestDoubtCountsFromTheBeginOfTheAttempt(t *testing.T) {
	t.Parallel()
	begun := time.UnixMilli(1_000_000_000)
	at := func(h int) time.Time { return begun.Add(time.Duration(h) * time.Hour) }
	r := wrote(Claimed(store.Record{PK: "p", Owner: "a", Keep: store.KeepOpen, Mark: AnyCall}, begun, at(1)), nil, "")
	for h := 1; h < 4; h++ {
		r = goesOn(Renewed(r, at(h), at(h+1)), r)
	}
	failed := goesOn(Released(r, at(4), Release{Calls: []string{"pay#1"}}), r)
	for h := 5; h < 8; h++ {
		r = wrote(Taken(r, at(h), at(h+1), 0), r, "b")
		over := wrote(Taken(failed, at(h), at(h+1), 0), failed, "b")
		failed = goesOn(Released(over, at(h+1), Release{Calls: []string{"pay#2"}}), over)
	}
	if !r.DoubtSince.Equal(begun) || !slices.Equal(r.Doubts, []string{AnyCall}) {
		t.Errorf("after deaths: %v since %v", r.Doubts, r.DoubtSince)
	}
	if !failed.DoubtSince.Equal(begun) || !slices.Equal(failed.Doubts, []string{"pay#1", "pay#2"}) {
		t.Errorf("after failures: %v since %v", failed.Doubts, failed.DoubtSince)
	}
	again := Advanced(failed, at(5), []store.Phase{{Name: "one"}}, nil, []string{"pay#1"})
	if !again.DoubtSince.Equal(begun) || !slices.Equal(again.Doubts, []string{"pay#2"}) {
		t.Errorf("with one of two calls recorded: %v since %v", again.Doubts, again.DoubtSince)
	}
	if done := Advanced(again, at(6), []store.Phase{{Name: "two"}}, nil, []string{"pay#2"}); len(done.Doubts) > 0 || !done.DoubtSince.IsZero() {
		t.Errorf("with both recorded: %v since %v", done.Doubts, done.DoubtSince)
	}
}
