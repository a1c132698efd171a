package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Every combination of Judge's inputs is checked against the rules in reverse:
// what must hold of each verdict.
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
	if Judge(nil, "me", true, now) != Claimable {
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
	case gone != (v == Claimable):
		return "claim again exactly over nothing or an expired record of somebody else"
	case ours || gone:
		return ""
	case same != (v != Mismatch):
		return "another request, and no other, gets a mismatch, whatever the state or lock"
	case !same:
		return ""
	}
	want := map[store.State]Verdict{store.Done: Replay, store.Stuck: Stuck, store.Open: TakeOver}[r.State]
	if r.State == store.Open && held {
		want = InFlight
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
				want := Overtaken
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
		if Land(nil, prev, next, "me") != Overtaken || Land(&store.Record{}, prev, next, "me") != Overtaken {
			t.Error("a record that is gone doesn't fence")
		}
		for _, was := range []*store.Record{prev, next} {
			if got := Land(&store.Record{State: store.None, Owner: was.Owner, Ver: was.Ver}, prev, next, "me"); got != Overtaken {
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
	prev := wrote(Claimed(store.Record{PK: "p", ID: "i", Retention: retention}, now, lease), nil, "a")
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
		"a take-over":             {wrote(Taken(prev, now, lease.Add(time.Hour), retention), prev, "b"), false},
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

// wrote returns next as owner writes it after prev; goesOn writes as the owner of
// prev.
func wrote(next, prev *store.Record, owner string) *store.Record {
	Stamp(next, prev, owner)
	return next
}

func goesOn(next, prev *store.Record) *store.Record { return wrote(next, prev, prev.Owner) }

// After an answer that nobody heard the next attempt waits: a second, doubled with each
// try.
func TestJudgeOfAWithheldAnswer(t *testing.T) {
	t.Parallel()
	withheld := store.Handover{Kind: HandoverWithheld}
	record := func(change func(r *store.Record)) *store.Record {
		r := &store.Record{State: store.Open, Keep: store.KeepOpen, Run: clock, Handovers: []store.Handover{{}, withheld}}
		change(r)
		return r
	}
	for name, tt := range map[string]struct {
		r     *store.Record
		after time.Duration // from then on another attempt may run
	}{
		"withheld":                       {record(func(*store.Record) {}), time.Second},
		"withheld, the only handover":    {record(func(r *store.Record) { r.Handovers = r.Handovers[1:] }), time.Second},
		"withheld twice":                 {record(func(r *store.Record) { r.Tries = 1 }), 2 * time.Second},
		"withheld, and released":         {record(func(r *store.Record) { r.Handovers = append(r.Handovers, store.Handover{}) }), 0},
		"no handover":                    {record(func(r *store.Record) { r.Handovers = nil }), 0},
		"withheld, and it died after":    {record(func(r *store.Record) { r.Lease = clock.Add(-time.Second) }), 0},
		"nobody acts without its client": {record(func(r *store.Record) { r.Keep = store.KeepNothing }), 0},
	} {
		if got := Withheld(tt.r); tt.after == 0 != got.IsZero() || tt.after > 0 && !got.Equal(clock.Add(tt.after)) {
			t.Errorf("%s: withheld until %v", name, got)
		}
		for _, d := range []time.Duration{0, max(0, tt.after-time.Millisecond), tt.after} {
			want := TakeOver
			if d < tt.after {
				want = TooSoon
			}
			if got := Judge(tt.r, "me", true, clock.Add(d)); got != want {
				t.Errorf("%s, after %v: verdict %d, want %d", name, d, got, want)
			}
		}
	}
}

// Every difference that a phase can show tells two writes apart; contents don't.
func TestSameShape(t *testing.T) {
	t.Parallel()
	base := store.Record{State: store.Open, Lease: clock, Phases: []store.Phase{{Name: "one", Result: []byte("1")}, {Name: "two"}}}
	for name, tt := range map[string]struct {
		change func(r *store.Record)
		want   bool
	}{
		"nothing":               {func(*store.Record) {}, true},
		"another result":        {func(r *store.Record) { r.Phases[0].Result = []byte("2") }, true},
		"another lease":         {func(r *store.Record) { r.Lease = clock.Add(time.Hour) }, true},
		"kept, before a call":   {func(r *store.Record) { r.Keep = store.KeepOpen }, false},
		"no lease":              {func(r *store.Record) { r.Lease = time.Time{} }, false},
		"another state":         {func(r *store.Record) { r.State = store.Stuck }, false},
		"a phase more":          {func(r *store.Record) { r.Phases = append(r.Phases, store.Phase{}) }, false},
		"a phase less":          {func(r *store.Record) { r.Phases = r.Phases[:1] }, false},
		"another first phase":   {func(r *store.Record) { r.Phases[0].Name = "x" }, false},
		"another last phase":    {func(r *store.Record) { r.Phases[1].Name = "x" }, false},
		"an intent":             {func(r *store.Record) { r.Phases[1].Intent = true }, false},
		"an intent, and a name": {func(r *store.Record) { r.Phases[0] = store.Phase{Name: "x", Intent: true} }, false},
	} {
		r := base.Clone()
		tt.change(r)
		if got := SameShape(&base, r); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}

// The same version is a write's own only with the write's shape: an earlier write of that
// version may have landed after all.
func TestAnEarlierWriteIsNotThisOne(t *testing.T) {
	t.Parallel()
	prev := &store.Record{State: store.Open, Owner: "me", Ver: 3}
	next := &store.Record{State: store.Done, Owner: "me", Ver: 4}
	if got := Land(&store.Record{State: store.Open, Owner: "me", Ver: 4}, prev, next, "me"); got != Crossed {
		t.Errorf("landing %d, want %d", got, Crossed)
	}
}

// A ticket's bearer learns nothing of a record but that it has moved, unless it knows both
// owner and version.
func TestMayTake(t *testing.T) {
	t.Parallel()
	h := store.HandlerID{Function: "fn", Name: "h"}
	take := store.Take{Owner: "a", Ver: 7, Now: clock, Lease: nextLease, NewOwner: "b", Handlers: []store.HandlerID{{Name: "x"}, h}, Tenant: "t"}
	for name, tt := range map[string]struct {
		change func(r *store.Record)
		want   Refusal
	}{
		"it may":                       {func(*store.Record) {}, Good},
		"released":                     {func(r *store.Record) { r.Lease = time.Time{} }, Good},
		"another owner":                {func(r *store.Record) { r.Owner = "c" }, Moved},
		"another version":              {func(r *store.Record) { r.Ver++ }, Moved},
		"finished":                     {func(r *store.Record) { r.State = store.Done }, Moved},
		"stuck":                        {func(r *store.Record) { r.State = store.Stuck }, Moved},
		"freed":                        {func(r *store.Record) { r.Keep = store.KeepFreed }, Moved},
		"expired":                      {func(r *store.Record) { r.Expires = clock.Add(-time.Second) }, Moved},
		"held":                         {func(r *store.Record) { r.Lease = clock.Add(time.Millisecond) }, Held},
		"held, and of another handler": {func(r *store.Record) { r.Lease, r.Handler = clock.Add(time.Millisecond), store.HandlerID{} }, Held},
		"of another handler":           {func(r *store.Record) { r.Handler.Name = "y" }, OtherHandler},
		"of another tenant":            {func(r *store.Record) { r.Tenant = "u" }, OtherTenant},
		"of no tenant":                 {func(r *store.Record) { r.Tenant = "" }, OtherTenant},
		"without its request":          {func(r *store.Record) { r.Input = nil }, NoRequest},
		"that will expire":             {func(r *store.Record) { r.Expires = clock.Add(time.Hour) }, NoRequest},
	} {
		r := with(func(r *store.Record) { r.Lease = clock })
		tt.change(r)
		if got := MayTake(r, take); got != tt.want {
			t.Errorf("%s: refusal %d, want %d", name, got, tt.want)
		}
		want := Good
		if tt.want == Moved || tt.want == Held {
			want = tt.want
		}
		if got := Fits(r, "a", 7, clock); got != want {
			t.Errorf("%s: a ticket fits: %d, want %d", name, got, want)
		}
		taken := WithFrom(take).From(r)
		if (taken != nil) != (tt.want == Good) || taken != nil && (taken.Owner != "b" || taken.Ver != 8 || !taken.Lease.After(clock)) {
			t.Errorf("%s: taken as %+v", name, taken)
		}
	}
	if got := MayTake(nil, take); got != Moved {
		t.Errorf("no record: refusal %d", got)
	}
}
