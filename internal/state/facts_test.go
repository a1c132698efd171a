package state

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
					"completable":      {Completable(r), k.kept && in != nil},
					"unfinished":       {Unfinished(r), k.unfinished},
					"kept":             {Kept(r), k.kept},
					"kept for nothing": {KeptForNothing(r), k.letGo && jobs == nil},
					"freed":            {Freed(r), k.keep == store.KeepFreed},
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
		"tombstone":  {{State: store.Done, Until: before, Expires: after}},
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

func TestLifetimeEndsWithTheAnswer(t *testing.T) {
	t.Parallel()
	until, expires := clock.Add(time.Hour), clock.Add(2*time.Hour)
	for _, tt := range []struct{ until, expires, want time.Time }{
		{until, expires, until}, {until, time.Time{}, until}, {time.Time{}, expires, expires}, {},
	} {
		if got := Lifetime(&store.Record{Until: tt.until, Expires: tt.expires}); !got.Equal(tt.want) {
			t.Errorf("until %v, expires %v: %v", tt.until, tt.expires, got)
		}
	}
}

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
			got, since := Waits(&tt.r, clock.Add(after), grace)
			if got != want || since.Sub(clock) != tt.dueFrom {
				t.Errorf("%s, %v after its attempt began: it waits for %s from %v on, want %s from %v on", name, after, got, since.Sub(clock), want, tt.dueFrom)
			}
		}
		if got, _ := Waits(&tt.r, clock.Add(tt.dueFrom), grace); tt.r.Lease.IsZero() && got != tt.before {
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

// An operation without its request is left to its client for one retention.
func TestLeftUntil(t *testing.T) {
	t.Parallel()
	if got := LeftUntil(&store.Record{Run: clock, Retention: time.Hour}); !got.Equal(clock.Add(time.Hour)) {
		t.Errorf("until %v", got)
	}
}

// A life is in whole seconds, as in an item, and not shorter.
func TestLifeOf(t *testing.T) {
	t.Parallel()
	if got, want := LifeOf(time.Hour+1, 2*time.Second), (Life{time.Hour + time.Second, 2 * time.Second}); got != want {
		t.Errorf("got %+v", got)
	}
	long := Life{Retention: 72 * time.Hour, Tombstone: time.Hour}
	if got := Taken(busy(), clock, nextLease, long); (Life{got.Retention, got.Tombstone}) != long {
		t.Errorf("taken over, it has %v and %v", got.Retention, got.Tombstone)
	}
}

func TestOnlyJobsDecide(t *testing.T) {
	t.Parallel()
	var of []Reason
	for _, c := range []Reason{NoReason, ReasonUnknown, ReasonStuck, ReasonBlocked, ReasonParked} {
		if (Wait{Reason: c}).OfJobs() {
			of = append(of, c)
		}
	}
	if !slices.Equal(of, []Reason{NoReason, ReasonParked}) {
		t.Errorf("only jobs decide about %q", of)
	}
}

// Of several parked jobs the first by name is told, whatever order a map has.
func TestTheFirstParkedJob(t *testing.T) {
	t.Parallel()
	r := &store.Record{State: store.Done, Jobs: make(map[string]store.Job)}
	for _, name := range []string{"9.9", "0.1", "5.0", "3.3", "1.0"} {
		r.Jobs[name] = store.Job{Kind: "of " + name, Failed: "refused"}
	}
	r.Jobs["0.0"] = store.Job{Kind: "waits"}
	want := Wait{Reason: ReasonParked, Job: "0.1", Kind: "of 0.1", Failed: "refused"}
	for range 20 {
		if diff := cmp.Diff(want, WaitOf(r)); diff != "" {
			t.Fatal(diff)
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
