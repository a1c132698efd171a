package state

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Every combination of Judge's inputs is checked against the rules in reverse:
// the requirements of each verdict.
func TestJudgeExhaustively(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	past, future := now.Add(-time.Minute), now.Add(time.Minute)
	times := map[string]time.Time{"none": {}, "past": past, "this second": now, "future": future}
	n := 0
	for _, state := range []store.State{store.None, store.Open, store.Done, store.Stuck} {
		for _, owner := range []string{"me", "other"} {
			for _, ver := range []int64{1, 2} {
				for _, same := range []bool{true, false} {
					for leaseName, lease := range times {
						for expName, exp := range times {
							for untilName, until := range times {
								n++
								r := &store.Record{State: state, Owner: owner, Ver: ver, Lease: lease, Expires: exp, Until: until}
								v := Judge(r, "me", same, now)
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
	if Judge(nil, "me", true, now) != Again {
		t.Error("no record at all isn't claimed again")
	}
	t.Logf("%d combinations", n)
}

// violation returns the rule that a verdict breaks.
func violation(r *store.Record, v Verdict, same bool, now time.Time) string {
	ours := (r.State == store.Open || r.State == store.Done) && r.Owner == "me" && r.Ver == 1
	gone := r.State == store.None || (!ours && !r.Expires.IsZero() && r.Expires.Before(now))
	held := r.Lease.After(now)
	switch {
	case ours != (v == Own):
		return "own is exactly our own first write"
	case gone != (v == Again):
		return "claim again exactly over nothing or an expired record of somebody else"
	case ours || gone:
		return ""
	case same != (v != Mismatch):
		return "another request, and no other, gets a mismatch, whatever the state or lock"
	case !same:
		return ""
	}
	want := map[store.State]Verdict{store.Done: Replay, store.Stuck: Stuck, store.Open: TakeOver}[r.State]
	switch {
	case r.State == store.Open && held:
		want = InFlight
	case r.State == store.Done && !r.Expires.IsZero() && !r.Until.IsZero() && r.Until.Before(now):
		want = Expired
	}
	if v != want {
		return fmt.Sprintf("want verdict %d", want)
	}
	return ""
}

func TestLandExhaustively(t *testing.T) {
	t.Parallel()
	for _, prevOwner := range []string{"me", "other"} { // other: a take-over
		prev := &store.Record{State: store.Open, Owner: prevOwner, Ver: 3}
		next := &store.Record{State: store.Open, Owner: "me", Ver: 4}
		for _, owner := range []string{"me", "other", "third"} {
			for ver := int64(1); ver <= 6; ver++ {
				got := Land(&store.Record{State: store.Open, Owner: owner, Ver: ver}, prev, next, "me")
				want := Fenced
				switch {
				case owner == prevOwner && ver == 3:
					want = NotYet
				case owner == "me" && ver == 4:
					want = Landed
				case owner == "me" && ver > 4:
					want = Crossed
				}
				if got != want {
					t.Errorf("prev %s/3, now %s/%d: %d, want %d", prevOwner, owner, ver, got, want)
				}
			}
		}
		if Land(nil, prev, next, "me") != Fenced || Land(&store.Record{}, prev, next, "me") != Fenced {
			t.Error("a record that is gone doesn't fence")
		}
		for _, was := range []*store.Record{prev, next} {
			if got := Land(&store.Record{State: store.None, Owner: was.Owner, Ver: was.Ver}, prev, next, "me"); got != Fenced {
				t.Errorf("there is no record any more, whatever is left of it: %d", got)
			}
		}
	}
}

// A write that is no renewal must not count as a renewal: a commit on top of it
// would lose its contents.
func TestOnlyARenewalIsARenewal(t *testing.T) {
	t.Parallel()
	now, lease := time.Unix(1_000_000, 0), time.Unix(1_000_030, 0)
	const retention = 2 * time.Hour
	life := Life{Retention: retention}
	prev := wrote(Claimed(store.Record{PK: "p", ID: "i"}, now, lease, life), nil, "a")
	raised := func(r *store.Record) *store.Record {
		c := *r
		c.Ver = prev.Ver + 1
		return &c
	}
	again := goesOn(Renewed(prev, now, lease.Add(time.Minute)), prev)
	for name, tt := range map[string]struct {
		now  *store.Record
		want bool
	}{
		"a renewal":               {again, true},
		"the record as it was":    {prev, false},
		"two renewals":            {goesOn(Renewed(again, now, lease.Add(time.Hour)), again), false},
		"a take-over":             {wrote(Taken(prev, now, lease.Add(time.Hour), life), prev, "b"), false},
		"a phase":                 {raised(Advanced(again, now, []store.Phase{{Name: "one"}}, nil, nil)), false},
		"a commit of nothing new": {raised(prev), false},
		"a finish":                {goesOn(Finished(prev, store.Response{}, now), prev), false},
		"a release":               {goesOn(Released(prev, now, Release{}), prev), false},
		"stuck":                   {goesOn(MadeStuck(prev, now, "nobody came"), prev), false},
	} {
		if got := Renewal(tt.now, prev); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Every write of a holder raises the version by one and keeps the fields that
// protect the record from TTL and from claims.
func TestTransitions(t *testing.T) {
	t.Parallel()
	now, lease := time.Unix(1_000_000, 5e8), time.Unix(1_000_030, 5e8)
	const retention = 2 * time.Hour
	life := Life{Retention: retention}
	claim := wrote(Claimed(store.Record{PK: "p", ID: "i"}, now, lease, life), nil, "a")
	phased := *claim
	phased.Ver, phased.Keep, phased.Expires = 3, store.KeepOpen, time.Time{}
	phased.Phases = []store.Phase{{Name: "one", Result: []byte("1")}}
	withJobs := phased
	withJobs.Jobs = map[string]store.Job{"0.0": {Kind: "mail"}}
	long := wrote(Claimed(store.Record{}, now, now.Add(5*time.Hour), life), nil, "")

	accepted := wrote(Claimed(store.Record{PK: "p", ID: "i", Input: &store.Input{}}, now, lease, life), nil, "a")

	over := wrote(Taken(claim, now, lease, life), claim, "b")
	resp := store.Response{Status: 201}
	tombed := wrote(Claimed(store.Record{PK: "p", ID: "i"}, now, lease, Life{retention, time.Hour}), nil, "a")
	tests := map[string]struct {
		got         *store.Record
		state       store.State
		owner       string
		ver         int64
		lease       time.Time
		expires     time.Time
		keep        store.Keep
		until       time.Time
		phaseResult string
	}{
		"claim":                         {claim, store.Open, "a", 1, lease, now.Add(retention), "", time.Time{}, ""},
		"claim beyond its retention":    {long, store.Open, "", 1, now.Add(5 * time.Hour), now.Add(6 * time.Hour), "", time.Time{}, ""},
		"take-over":                     {wrote(Taken(claim, now.Add(time.Hour), lease.Add(time.Hour), life), claim, "b"), store.Open, "b", 2, lease.Add(time.Hour), now.Add(3 * time.Hour), "", time.Time{}, ""},
		"take-over of a kept record":    {wrote(Taken(&phased, now, lease, life), &phased, "b"), store.Open, "b", 4, lease, time.Time{}, store.KeepOpen, time.Time{}, "1"},
		"renewal":                       {goesOn(Renewed(claim, now.Add(time.Hour), lease.Add(time.Hour)), claim), store.Open, "a", 2, lease.Add(time.Hour), now.Add(3 * time.Hour), "", time.Time{}, ""},
		"renewal of a kept record":      {goesOn(Renewed(&phased, now.Add(time.Hour), lease.Add(time.Hour)), &phased), store.Open, "a", 4, lease.Add(time.Hour), time.Time{}, store.KeepOpen, time.Time{}, "1"},
		"finish":                        {goesOn(Finished(claim, resp, now), claim), store.Done, "a", 2, time.Time{}, now.Add(retention), "", time.Time{}, ""},
		"finish after phases":           {goesOn(Finished(&phased, resp, now), &phased), store.Done, "a", 4, time.Time{}, now.Add(retention), "", time.Time{}, ""},
		"finish with jobs":              {goesOn(Finished(&withJobs, resp, now), &withJobs), store.Done, "a", 4, time.Time{}, time.Time{}, store.KeepJobs, now.Add(retention), ""},
		"finish with a tombstone":       {goesOn(Finished(tombed, resp, now), tombed), store.Done, "a", 2, time.Time{}, now.Add(retention + time.Hour), "", now.Add(retention), ""},
		"release frees an own claim":    {goesOn(Released(claim, now, Release{}), claim), store.Open, "a", 2, time.Time{}, now.Add(freedFor), store.KeepFreed, time.Time{}, ""},
		"release keeps an accepted one": {goesOn(Released(accepted, now, Release{Why: "down"}), accepted), store.Open, "a", 2, time.Time{}, time.Time{}, store.KeepOpen, time.Time{}, ""},
		"release frees a refused one":   {goesOn(Released(accepted, now, Release{Refused: true}), accepted), store.Open, "a", 2, time.Time{}, now.Add(freedFor), store.KeepFreed, time.Time{}, ""},
		"release keeps what was refused after a call": {
			goesOn(Released(accepted, now, Release{Refused: true, Calls: []string{"payments#1"}}), accepted), store.Open, "a", 2, time.Time{}, time.Time{}, store.KeepOpen, time.Time{}, "",
		},
		"release keeps a later state": {goesOn(Released(&phased, now, Release{}), &phased), store.Open, "a", 4, time.Time{}, time.Time{}, store.KeepOpen, time.Time{}, "1"},
		"release frees a taken-over one": {
			goesOn(Released(over, now, Release{}), over), store.Open, "b", 3, time.Time{}, now.Add(freedFor), store.KeepFreed, time.Time{}, "",
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
			if done := r.State == store.Done; done && (r.Retention != 0 || r.Tombstone != 0 && r.Keep != store.KeepJobs) || !done && r.Retention != retention {
				t.Errorf("retention %v and tombstone %v of a record kept for %q", r.Retention, r.Tombstone, r.Keep)
			}
			if (r.Keep == store.KeepOpen || r.Keep == store.KeepJobs) != r.Expires.IsZero() {
				t.Error("a kept record expires, or another one doesn't")
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
	return Seconds(t)
}

// A release keeps the hashes of calls in doubt, and no others.
func TestReleaseKeepsWhatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000_000)
	open := wrote(Claimed(store.Record{PK: "p", Owner: "a", Keep: store.KeepOpen, Mark: AnyCall}, now, now.Add(time.Hour), Life{}), nil, "")
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
	r := wrote(Claimed(store.Record{PK: "p", Owner: "a", Keep: store.KeepOpen, Mark: AnyCall}, begun, at(1), Life{}), nil, "")
	for h := 1; h < 4; h++ {
		r = goesOn(Renewed(r, at(h), at(h+1)), r)
	}
	failed := goesOn(Released(r, at(4), Release{Calls: []string{"pay#1"}}), r)
	for h := 5; h < 8; h++ {
		r = wrote(Taken(r, at(h), at(h+1), Life{}), r, "b")
		over := wrote(Taken(failed, at(h), at(h+1), Life{}), failed, "b")
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

// wrote returns next as owner writes it after prev; goesOn writes as the owner of
// prev.
func wrote(next, prev *store.Record, owner string) *store.Record {
	Stamp(next, prev, owner)
	return next
}

func goesOn(next, prev *store.Record) *store.Record { return wrote(next, prev, prev.Owner) }

// Every write of a holder, and every take-over, raises the version by one, under
// the writer's name. A transition changes neither: otherwise a write that is
// repeated from another record would skip a version.
func TestOnlyStampSetsOwnerAndVersion(t *testing.T) {
	t.Parallel()
	now, lease := time.Unix(1_000_000, 0), time.Unix(1_000_030, 0)
	const retention = 2 * time.Hour
	life := Life{Retention: retention}
	prev := wrote(Claimed(store.Record{PK: "p", ID: "i", Input: &store.Input{}}, now, lease, life), nil, "a")
	if prev.Owner != "a" || prev.Ver != 1 {
		t.Errorf("the claim is %s's at version %d", prev.Owner, prev.Ver)
	}
	prev.Phases = []store.Phase{{Name: "fax", Intent: true}}
	one := []store.Phase{{Name: "one"}}
	settled, err := Settled(prev, Settlement{NotMade: true}, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, next := range map[string]*store.Record{
		"phase":            Advanced(prev, now, one, nil, nil),
		"intent replaced":  IntentReplaced(prev, now, one, nil, nil),
		"intent taken out": IntentReplaced(prev, now, nil, nil, nil),
		"renewal":          Renewed(prev, now, lease),
		"finish":           Finished(prev, store.Response{}, now),
		"release":          Released(prev, now, Release{}),
		"stuck":            MadeStuck(prev, now, "nobody came"),
		"take-over":        Taken(prev, now, lease, life),
		"by a client":      TakenByClient(prev, now, lease, life, nil, store.HandlerID{}),
		"by a completer":   TakenUp(prev, now, lease, life),
		"settled":          settled,
	} {
		if next == prev || next.Owner != "a" || next.Ver != 1 {
			t.Errorf("%s: %s's at version %d", name, next.Owner, next.Ver)
		}
		if Stamp(next, prev, "b"); next.Owner != "b" || next.Ver != 2 {
			t.Errorf("%s, written: %s's at version %d", name, next.Owner, next.Ver)
		}
	}
}
