package state

import (
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

func TestWithHasEachCallOnce(t *testing.T) {
	t.Parallel()
	calls := []string{"pay#1", "fax#1"}
	if diff := cmp.Diff([]string{"fax#1", "mail#1", "pay#1"}, With(calls, "pay#1", "mail#1", "fax#1")); diff != "" {
		t.Error(diff)
	}
	if calls[0] != "pay#1" {
		t.Errorf("the list has changed: %v", calls)
	}
}
