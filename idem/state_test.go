package idem

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// judge is walked over every combination of what it looks at, against the rules
// said the other way round: what each verdict requires.
func TestJudgeExhaustively(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	past, future := now.Add(-time.Minute), now.Add(time.Minute)
	times := map[string]time.Time{"none": {}, "past": past, "this second": now, "future": future}
	n := 0
	for _, state := range []State{None, Open, Done, Stuck} {
		for _, owner := range []string{"me", "other"} {
			for _, ver := range []int64{1, 2} {
				for _, same := range []same{{true, true}, {true, false}, {false, true}, {false, false}} {
					for leaseName, lease := range times {
						for expName, exp := range times {
							for untilName, until := range times {
								n++
								r := &Record{State: state, Owner: owner, Ver: ver, Lease: lease, Expires: exp, Until: until}
								v := judge(r, "me", same, now)
								if bad := violation(r, v, same, now); bad != "" {
									t.Errorf("state=%q owner=%s ver=%d same=%v lease=%s expires=%s until=%s: verdict %d: %s",
										state, owner, ver, same, leaseName, expName, untilName, v, bad)
								}
							}
						}
					}
				}
			}
		}
	}
	if judge(nil, "me", same{true, true}, now) != again {
		t.Error("no record at all isn't claimed again")
	}
	t.Logf("%d combinations", n)
}

// violation says which rule a verdict breaks.
func violation(r *Record, v verdict, same same, now time.Time) string {
	ours := (r.State == Open || r.State == Done) && r.Owner == "me" && r.Ver == 1
	gone := r.State == None || (!ours && !r.Expires.IsZero() && r.Expires.Before(now))
	held := r.Lease.After(now)
	switch {
	case ours != (v == own):
		return "own is exactly our own first write"
	case gone != (v == again):
		return "claim again exactly over nothing or an expired record of somebody else"
	case ours || gone:
		return ""
	case same.caller != (v != otherCaller):
		return "another caller, and nobody else, is told so, whatever the state, the lock or the request"
	case !same.caller:
		return ""
	case same.request != (v != mismatch):
		return "another request, and no other, gets a mismatch, whatever the state or lock"
	case !same.request:
		return ""
	}
	want := map[State]verdict{Done: replay, Stuck: stuck, Open: takeOver}[r.State]
	switch {
	case r.State == Open && held:
		want = inFlight
	case r.State == Done && !r.Expires.IsZero() && !r.Until.IsZero() && r.Until.Before(now):
		want = expired
	}
	if v != want {
		return fmt.Sprintf("want verdict %d", want)
	}
	return ""
}

func TestLandExhaustively(t *testing.T) {
	t.Parallel()
	for _, prevOwner := range []string{"me", "other"} { // other: a take-over
		prev := &Record{State: Open, Owner: prevOwner, Ver: 3}
		next := &Record{State: Open, Owner: "me", Ver: 4}
		for _, owner := range []string{"me", "other", "third"} {
			for ver := int64(1); ver <= 6; ver++ {
				got := land(&Record{State: Open, Owner: owner, Ver: ver}, prev, next, "me")
				want := fenced
				switch {
				case owner == prevOwner && ver == 3:
					want = notYet
				case owner == "me" && ver == 4:
					want = landed
				case owner == "me" && ver > 4:
					want = crossed
				}
				if got != want {
					t.Errorf("prev %s/3, now %s/%d: %d, want %d", prevOwner, owner, ver, got, want)
				}
			}
		}
		if land(nil, prev, next, "me") != fenced || land(&Record{}, prev, next, "me") != fenced {
			t.Error("a record that is gone doesn't fence")
		}
	}
}

// What is no renewal must not be passed over as one: a commit on top of it would
// leave out what it wrote.
func TestOnlyARenewalIsARenewal(t *testing.T) {
	t.Parallel()
	now, lease := time.Unix(1_000_000, 0), time.Unix(1_000_030, 0)
	const retention = 2 * time.Hour
	prev := claimed(Record{PK: "p", Owner: "a", ID: "i"}, now, lease, retention)
	raised := func(r *Record) *Record {
		c := *r
		c.Ver = prev.Ver + 1
		return &c
	}
	again := renewed(prev, now, lease.Add(time.Minute), retention)
	for name, tt := range map[string]struct {
		now  *Record
		want bool
	}{
		"a renewal":               {again, true},
		"the record as it was":    {prev, false},
		"two renewals":            {renewed(again, now, lease.Add(time.Hour), retention), false},
		"a take-over":             {taken(prev, "b", now, lease.Add(time.Hour), retention), false},
		"a phase":                 {raised(advanced(again, []Phase{{Name: "one"}}, nil, nil)), false},
		"a commit of nothing new": {raised(prev), false},
		"a finish":                {finished(prev, Response{}, now, retention, 0), false},
		"a release":               {released(prev, now, giveBack{}), false},
		"stuck":                   {stuckFor(prev, "nobody came"), false},
	} {
		if got := renewal(tt.now, prev); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Every write of a holder raises the version by one and keeps what the record
// needs to be safe from TTL and from claims.
func TestTransitions(t *testing.T) {
	t.Parallel()
	now, lease := time.Unix(1_000_000, 5e8), time.Unix(1_000_030, 5e8)
	const retention = 2 * time.Hour
	claim := claimed(Record{PK: "p", Owner: "a", ID: "i"}, now, lease, retention)
	phased := *claim
	phased.Ver, phased.Keep, phased.Expires = 3, KeepOpen, time.Time{}
	phased.Phases = []Phase{{Name: "one", Result: []byte("1")}}
	withJobs := phased
	withJobs.Jobs = map[string]Job{"0.0": {Kind: "mail"}}
	long := claimed(Record{}, now, now.Add(5*time.Hour), retention)

	accepted := claimed(Record{PK: "p", Owner: "a", ID: "i", Input: &Input{}}, now, lease, retention)

	resp := Response{Status: 201}
	tests := map[string]struct {
		got         *Record
		state       State
		owner       string
		ver         int64
		lease       time.Time
		expires     time.Time
		keep        Keep
		until       time.Time
		phaseResult string
	}{
		"claim":                         {claim, Open, "a", 1, lease, now.Add(retention), "", time.Time{}, ""},
		"claim beyond its retention":    {long, Open, "", 1, now.Add(5 * time.Hour), now.Add(6 * time.Hour), "", time.Time{}, ""},
		"take-over":                     {taken(claim, "b", now.Add(time.Hour), lease.Add(time.Hour), retention), Open, "b", 2, lease.Add(time.Hour), now.Add(3 * time.Hour), "", time.Time{}, ""},
		"take-over of a kept record":    {taken(&phased, "b", now, lease, retention), Open, "b", 4, lease, time.Time{}, KeepOpen, time.Time{}, "1"},
		"renewal":                       {renewed(claim, now.Add(time.Hour), lease.Add(time.Hour), retention), Open, "a", 2, lease.Add(time.Hour), now.Add(3 * time.Hour), "", time.Time{}, ""},
		"renewal of a kept record":      {renewed(&phased, now.Add(time.Hour), lease.Add(time.Hour), retention), Open, "a", 4, lease.Add(time.Hour), time.Time{}, KeepOpen, time.Time{}, "1"},
		"finish":                        {finished(claim, resp, now, retention, 0), Done, "a", 2, time.Time{}, now.Add(retention), "", time.Time{}, ""},
		"finish after phases":           {finished(&phased, resp, now, retention, 0), Done, "a", 4, time.Time{}, now.Add(retention), "", time.Time{}, ""},
		"finish with jobs":              {finished(&withJobs, resp, now, retention, 0), Done, "a", 4, time.Time{}, time.Time{}, KeepJobs, now.Add(retention), ""},
		"finish with a tombstone":       {finished(claim, resp, now, retention, time.Hour), Done, "a", 2, time.Time{}, now.Add(retention + time.Hour), "", now.Add(retention), ""},
		"release frees an own claim":    {released(claim, now, giveBack{}), Open, "a", 2, time.Time{}, now.Add(-time.Minute), "", time.Time{}, ""},
		"release keeps an accepted one": {released(accepted, now, giveBack{why: "down"}), Open, "a", 2, time.Time{}, time.Time{}, KeepOpen, time.Time{}, ""},
		"release frees a refused one":   {released(accepted, now, giveBack{refused: true}), Open, "a", 2, time.Time{}, now.Add(-time.Minute), "", time.Time{}, ""},
		"release keeps what was refused after a call": {
			released(accepted, now, giveBack{refused: true, calls: []string{"payments#1"}}), Open, "a", 2, time.Time{}, time.Time{}, KeepOpen, time.Time{}, "",
		},
		"release keeps a later state": {released(&phased, now, giveBack{}), Open, "a", 4, time.Time{}, time.Time{}, KeepOpen, time.Time{}, "1"},
		"release keeps a taken-over one": {
			released(taken(claim, "b", now, lease, retention), now, giveBack{}), Open, "b", 3, time.Time{}, now.Add(retention), "", time.Time{}, "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tt.got
			if r.State != tt.state || r.Owner != tt.owner || r.Ver != tt.ver || r.Keep != tt.keep {
				t.Errorf("got state %q owner %q ver %d keep %q", r.State, r.Owner, r.Ver, r.Keep)
			}
			for what, pair := range map[string][2]time.Time{
				"lease": {r.Lease, tt.lease}, "expires": {r.Expires, sec(tt.expires)}, "until": {r.Until, sec(tt.until)},
			} {
				if !pair[0].Equal(pair[1]) {
					t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
				}
			}
			if r.Tombstone != 0 && r.Keep != KeepJobs {
				t.Errorf("tombstone %v of a record kept for %q", r.Tombstone, r.Keep)
			}
			if (r.Keep == KeepNothing) != !r.Expires.IsZero() {
				t.Error("exactly one of keep and expires must be set")
			}
			if !r.Expires.IsZero() && r.Expires.Before(r.Lease) {
				t.Error("expires before its lease: TTL could delete it under its holder")
			}
			if len(r.Phases) > 0 && string(r.Phases[0].Result) != tt.phaseResult {
				t.Errorf("phase result %q, want %q", r.Phases[0].Result, tt.phaseResult)
			}
		})
	}
}

func sec(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return seconds(t)
}

// A release keeps what was sent with calls that are in doubt, and nothing else.
func TestReleaseKeepsWhatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000_000)
	open := claimed(Record{PK: "p", Owner: "a"}, now, now.Add(time.Hour), time.Hour)
	open.Sent = map[string]string{"pay#1": "one", "pay#2": "two"}
	for name, tc := range map[string]struct {
		doubts []string
		b      giveBack
		want   []string
	}{
		"nothing was called":                   {nil, giveBack{}, nil},
		"this attempt's":                       {nil, giveBack{calls: []string{"pay#2"}}, []string{"pay#2"}},
		"an earlier attempt's":                 {[]string{"pay#1"}, giveBack{}, []string{"pay#1"}},
		"both":                                 {[]string{"pay#1"}, giveBack{calls: []string{"pay#2"}}, []string{"pay#1", "pay#2"}},
		"of one, nobody knows which":           {[]string{AnyCall}, giveBack{}, []string{"pay#1", "pay#2"}},
		"of one of this, nobody knows which":   {nil, giveBack{calls: []string{AnyCall}}, []string{"pay#1", "pay#2"}},
		"with something else, the first stays": {nil, giveBack{calls: []string{"pay#1"}, sent: map[string]string{"pay#1": "x"}}, []string{"pay#1"}},
	} {
		held := *open
		held.Doubts = tc.doubts
		r := released(&held, now, tc.b)
		got := slices.Sorted(maps.Keys(r.Sent))
		if !slices.Equal(got, tc.want) || r.Sent["pay#1"] == "x" || len(held.Sent) != 2 {
			t.Errorf("%s: %v is kept, want %v", name, r.Sent, tc.want)
		}
	}
}

// A call is as old as the attempt that may have made it, however often that
// renewed its lease, and however many attempts have come since.
func TestDoubtCountsFromTheBeginOfTheAttempt(t *testing.T) {
	t.Parallel()
	begun := time.UnixMilli(1_000_000_000)
	at := func(h int) time.Time { return begun.Add(time.Duration(h) * time.Hour) }
	r := claimed(Record{PK: "p", Owner: "a"}, begun, at(1), time.Hour)
	for h := 1; h < 4; h++ {
		r = renewed(r, at(h), at(h+1), time.Hour)
	}
	failed := released(r, at(4), giveBack{calls: []string{"pay#1"}})
	for h := 5; h < 8; h++ {
		r = taken(r, "b", at(h), at(h+1), time.Hour)
		failed = released(taken(failed, "b", at(h), at(h+1), time.Hour), at(h+1), giveBack{calls: []string{"pay#2"}})
	}
	if !r.DoubtSince.Equal(begun) || !slices.Equal(r.Doubts, []string{AnyCall}) {
		t.Errorf("after deaths: %v since %v", r.Doubts, r.DoubtSince)
	}
	if !failed.DoubtSince.Equal(begun) || !slices.Equal(failed.Doubts, []string{"pay#1", "pay#2"}) {
		t.Errorf("after failures: %v since %v", failed.Doubts, failed.DoubtSince)
	}
	again := advanced(failed, []Phase{{Name: "one"}}, nil, []string{"pay#1"})
	if !again.DoubtSince.Equal(begun) || !slices.Equal(again.Doubts, []string{"pay#2"}) {
		t.Errorf("with one of two calls recorded: %v since %v", again.Doubts, again.DoubtSince)
	}
	if done := advanced(again, []Phase{{Name: "two"}}, nil, []string{"pay#2"}); len(done.Doubts) > 0 || !done.DoubtSince.IsZero() {
		t.Errorf("with both recorded: %v since %v", done.Doubts, done.DoubtSince)
	}
}
