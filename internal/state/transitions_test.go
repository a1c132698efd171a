package state

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
)

// Times of these tests. The clock has nanoseconds, which no record has.
var (
	claimedAt = time.UnixMilli(1_000_000_250)
	clock     = claimedAt.Add(10*time.Second + 999_999)
	clockMs   = claimedAt.Add(10 * time.Second)
	clockSec  = time.Unix(1_000_010, 0)
	leaseEnd  = claimedAt.Add(time.Minute)
	nextLease = clock.Add(time.Minute)
)

// busy is a record that an attempt holds, with a phase, a job, a call in doubt and a past.
func busy() *store.Record {
	return &store.Record{
		PK: "v1#ns#a", ID: "i", State: store.Open, Owner: "a", Ver: 7, Fingerprint: "f", Scope: "s", Tenant: "t", Route: "r",
		Created: claimedAt, Run: claimedAt, Lease: leaseEnd, Keep: store.KeepOpen, Retention: aRetention,
		Handler: store.HandlerID{Function: "fn", Name: "h"},
		Phases:  []store.Phase{{Name: "zero", Result: []byte("0"), At: 5 * time.Millisecond}},
		Jobs:    map[string]store.Job{"0.0": {Kind: "mail"}},
		Input:   &store.Input{Method: "POST"},
		Calls:   map[string]int{"pay#": 1},
		Doubts:  []string{"fax#1"}, DoubtSince: claimedAt.Add(-time.Hour), DoubtUntil: claimedAt.Add(-time.Minute), Sent: map[string]string{"fax#1": "data"},
		Tries: 2, LastErr: "an earlier error",
		Settled:   []store.Decision{{By: "joe", At: claimedAt, What: "released"}},
		Handovers: []store.Handover{{At: claimedAt, Kind: HandoverRelease}},
	}
}

// with is a busy record after some changes.
func with(change func(r *store.Record)) *store.Record {
	r := busy()
	change(r)
	return r
}

func expiring(r *store.Record) {
	r.Keep, r.Expires, r.Input = store.KeepNothing, leaseEnd.Add(time.Hour), nil
}

func intent(r *store.Record) {
	r.Phases = append(r.Phases, store.Phase{Name: "pay", Intent: true, At: 6 * time.Millisecond})
}

func stuck(r *store.Record) {
	r.State, r.Lease, r.WaitSince = store.Stuck, time.Time{}, claimedAt
}

func noDoubt(r *store.Record) {
	r.Doubts, r.DoubtSince, r.DoubtUntil, r.Sent = nil, time.Time{}, time.Time{}, nil
}

// asked notes a look-up that has decided nothing, and resolved one whose doubt has ended.
func asked(r *store.Record) {
	r.Asked = &store.Asked{Phase: "pay", At: claimedAt, Times: 2, Said: "unknown", Sent: claimedAt.Add(-time.Minute)}
}

func resolved(r *store.Record) {
	asked(r)
	r.Asked.Sent = time.Time{}
}

func answered200(r *store.Record) {
	r.State, r.Lease, r.LastErr, r.Input, r.Retention = store.Done, time.Time{}, "", nil, 0
	r.Phases = []store.Phase{{Name: "zero", At: 5 * time.Millisecond}}
	r.Response = &store.Response{Status: 200, Body: []byte("ok")}
	noDoubt(r)
}

func finished(r *store.Record) {
	answered200(r)
	r.Jobs, r.Keep, r.Expires = nil, store.KeepNothing, time.Unix(1_007_210, 0)
}

func gaveBack(r *store.Record) {
	r.LastErr, r.Handovers = "of a job", append(r.Handovers, store.Handover{At: claimedAt, Kind: HandoverRelease, Err: "an earlier error"})
}

func both(a, b func(*store.Record)) func(*store.Record) {
	return func(r *store.Record) { a(r); b(r) }
}

// Each transition changes these fields, and no other. It leaves the record before as it
// was.
func TestWhatChanges(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	one := []store.Phase{{Name: "one", Result: []byte("1")}}
	mail := map[string]store.Job{"1.0": {Kind: "fax"}}
	ok := store.Response{Status: 200, Body: []byte("ok")}
	none := func(*store.Record) {}
	type transition = func(held *store.Record) (*store.Record, error)
	plain := func(f func(held *store.Record) *store.Record) transition {
		return func(held *store.Record) (*store.Record, error) { return f(held), nil }
	}
	advance := func(phases []store.Phase, jobs map[string]store.Job, calls ...string) transition {
		return plain(func(r *store.Record) *store.Record { return Advanced(r, clock, phases, jobs, calls) })
	}
	replace := func(phases ...store.Phase) transition {
		return plain(func(r *store.Record) *store.Record {
			return IntentReplaced(r, clock, phases, []string{"fax#1"})
		})
	}
	finish := plain(func(r *store.Record) *store.Record { return Finished(r, ok, clock) })
	release := func(b Release) transition {
		return plain(func(r *store.Record) *store.Record { return Released(r, clock, b) })
	}
	takeByClient := func(by store.HandlerID) transition {
		return plain(func(r *store.Record) *store.Record {
			return TakenByClient(r, clock, nextLease, 2*time.Hour, &store.Input{Method: "PUT"}, by)
		})
	}
	settle := func(s Settlement) transition {
		s.By = "jane"
		return func(r *store.Record) (*store.Record, error) { return Settled(r, s, clock) }
	}
	decided := func(what, from, to string) func(*store.Record) {
		return func(r *store.Record) {
			r.Settled = append(r.Settled, store.Decision{By: "jane", At: clockMs, What: what, From: from, To: to})
		}
	}
	handedOver := func(kind string, function, why string) func(*store.Record) {
		return func(r *store.Record) {
			r.Handovers = append(r.Handovers, store.Handover{At: clockMs, Kind: kind, Function: function, Err: why})
		}
	}
	takenOver := func(r *store.Record) { r.Lease, r.Run = clockMs.Add(time.Minute), clockMs }
	released := func(r *store.Record) { r.Lease, r.Run = time.Time{}, clockMs }
	tryAgain := func(r *store.Record) {
		r.State, r.Lease, r.Tries, r.LastErr, r.Run, r.WaitSince = store.Open, time.Time{}, 0, "", clockMs, time.Time{}
	}
	freed := func(r *store.Record) {
		released(r)
		r.Keep, r.Expires, r.Input = store.KeepFreed, clockSec.Add(15*time.Minute), nil
	}
	fresh := func(r *store.Record) { // nothing was done
		noDoubt(r)
		r.Phases, r.Jobs, r.Calls, r.Tries, r.LastErr = nil, nil, nil, 0, ""
	}
	for name, tt := range map[string]struct {
		held func(*store.Record) // what makes it of a busy record
		do   transition
		want func(*store.Record) // what it does to that
	}{
		"a call begins": {expiring, plain(func(r *store.Record) *store.Record { return Calling(r, AnyCall, map[string]string{"fax#1": "new"}) }), func(r *store.Record) {
			r.Keep, r.Expires, r.Mark = store.KeepOpen, time.Time{}, AnyCall
			r.Sent = Sending(r.Sent, map[string]string{"fax#1": "new"})
		}},

		"a call begins that was looked up": {asked, plain(func(r *store.Record) *store.Record { return Calling(r, AnyCall, nil) }), func(r *store.Record) {
			r.Mark = AnyCall
			resolved(r)
		}},
		"a call begins that a look-up has not found": {both(asked, func(r *store.Record) { r.Doubts, r.Mark = []string{"?pay", "fax#1"}, "?pay" }), plain(func(r *store.Record) *store.Record {
			return Doubtful{Phase: "pay", Call: "fax#1", Keyless: true, Memory: time.Hour}.CallingOnce(r, map[string]string{"fax#1": "new"})
		}), func(r *store.Record) {
			noDoubt(r)
			r.Sent = map[string]string{"fax#1": "new"}
			resolved(r)
		}},
		"a call begins that had begun, beside another in doubt": {both(intent, func(r *store.Record) { r.Doubts = []string{"?fax"} }), plain(func(r *store.Record) *store.Record {
			return Doubtful{Phase: "pay", Call: "pay#2", Memory: time.Hour}.CallingOnce(r, nil)
		}), func(r *store.Record) { r.Phases, r.Mark = r.Phases[:1], AnyCall }},

		"nothing is committed": {expiring, advance(nil, nil), none},
		"a phase is committed": {func(r *store.Record) {
			expiring(r)
			r.Blocked, r.WaitSince = true, claimedAt
			r.Doubts, r.Sent = []string{"fax#1", "pay#2"}, map[string]string{"fax#1": "data", "pay#2": "more"}
		}, advance(one, mail, "pay#2", "pay#3", "mail/welcome"), func(r *store.Record) {
			r.Keep, r.Expires, r.Blocked, r.WaitSince = store.KeepOpen, time.Time{}, false, time.Time{}
			r.Phases = append(r.Phases, store.Phase{Name: "one", Result: []byte("1"), At: 10 * time.Second})
			r.Jobs = map[string]store.Job{"0.0": {Kind: "mail"}, "1.0": {Kind: "fax"}}
			r.Calls = map[string]int{"pay#": 3, "mail/welcome": 1}
			r.Doubts, r.Sent = []string{"fax#1"}, map[string]string{"fax#1": "data"}
		}},
		"a phase without jobs, of a clock behind the claim's": {
			both(fresh, func(r *store.Record) { r.Created = clock.Add(time.Hour) }), advance(one, nil),
			func(r *store.Record) {
				r.Phases = []store.Phase{{Name: "one", Result: []byte("1"), At: time.Millisecond}}
			},
		},
		"jobs are committed": {func(r *store.Record) { expiring(r); fresh(r) }, advance(nil, mail), func(r *store.Record) {
			r.Keep, r.Expires, r.Jobs = store.KeepOpen, time.Time{}, map[string]store.Job{"1.0": {Kind: "fax"}}
		}},
		"an intent is taken back": {both(intent, expiring), replace(), func(r *store.Record) { r.Phases = r.Phases[:1] }},
		"an intent is replaced": {intent, replace(one...), func(r *store.Record) {
			noDoubt(r)
			r.Phases[1] = store.Phase{Name: "one", Result: []byte("1"), At: 10 * time.Second}
			r.Calls = map[string]int{"pay#": 1, "fax#": 1}
		}},

		"it finishes": {func(r *store.Record) {
			r.Jobs, r.Blocked, r.WaitSince = nil, true, claimedAt
		}, finish, func(r *store.Record) { finished(r); r.Blocked, r.WaitSince = false, time.Time{} }},
		"it finishes, with jobs": {func(r *store.Record) { expiring(r); r.Blocked = true }, finish, func(r *store.Record) {
			answered200(r)
			r.Blocked, r.Keep, r.Expires, r.Until, r.Run = false, store.KeepJobs, time.Time{}, time.Unix(1_007_210, 0), clockMs
		}},
		"it is given up": {func(r *store.Record) { expiring(r); r.Blocked = true }, plain(func(r *store.Record) *store.Record { return MadeStuck(r, clock, long) }), func(r *store.Record) {
			r.State, r.Lease, r.LastErr, r.Keep, r.Expires, r.Blocked, r.WaitSince = store.Stuck, time.Time{}, long[:256], store.KeepOpen, time.Time{}, false, clockMs
		}},
		"its request goes": {stuck, plain(Emptied), func(r *store.Record) { r.Input = nil }},

		"its lease is renewed": {none, plain(func(r *store.Record) *store.Record { return Renewed(r, clock, nextLease) }), func(r *store.Record) {
			r.Lease = clockMs.Add(time.Minute)
		}},
		"the retry of a client takes it over": {none, takeByClient(store.HandlerID{Function: "fn", Name: "new"}), func(r *store.Record) {
			takenOver(r)
			r.Input, r.Handler = &store.Input{Method: "PUT"}, store.HandlerID{Function: "fn", Name: "new"}
			handedOver(HandoverRetry, "", "")(r)
		}},
		"another function takes it over": {none, takeByClient(store.HandlerID{Function: "fn2"}), func(r *store.Record) {
			takenOver(r)
			r.Input, r.Handler = &store.Input{Method: "PUT"}, store.HandlerID{Function: "fn2"}
			handedOver(HandoverRetry, "fn2", "")(r)
		}},
		"the retry of a client takes up what was released": {
			func(r *store.Record) { r.Lease = time.Time{} }, takeByClient(store.HandlerID{Function: "fn", Name: "h"}),
			func(r *store.Record) {
				r.Lease, r.Run, r.Input = clockMs.Add(time.Minute), clockMs, &store.Input{Method: "PUT"}
				handedOver(HandoverRetry, "", "")(r)
			},
		},
		"a completer takes it up": {none, plain(func(r *store.Record) *store.Record { return TakenUp(r, clock, nextLease, aRetention) }), func(r *store.Record) {
			takenOver(r)
			r.Tries = 3
			handedOver(HandoverCompleter, "", "")(r)
		}},

		"it is released": {func(r *store.Record) { r.Blocked, r.WaitSince = true, claimedAt }, release(Release{}), func(r *store.Record) {
			released(r)
			r.Blocked, r.WaitSince = false, time.Time{}
			handedOver(HandoverRelease, "", "")(r)
		}},
		"it is released after a call": {none, release(Release{Calls: []string{"pay#2"}, Sent: map[string]string{"pay#2": "more"}, Why: long}), func(r *store.Record) {
			released(r)
			r.LastErr, r.Doubts, r.Sent = long, []string{"fax#1", "pay#2"}, map[string]string{"fax#1": "data", "pay#2": "more"}
			r.DoubtUntil = leaseEnd
			handedOver(HandoverRelease, "", long[:256])(r)
		}},
		"it is released after a call that a phase records": {
			func(r *store.Record) { r.Doubts = []string{AnyCall} }, release(Release{Calls: []string{"pay#1"}, Sent: map[string]string{"pay#1": "more"}}),
			func(r *store.Record) {
				released(r)
				handedOver(HandoverRelease, "", "")(r)
			},
		},
		"its program refuses it": {none, release(Release{Refusal: errors.New("another phase"), Why: "another phase"}), func(r *store.Record) {
			released(r)
			r.LastErr, r.Blocked, r.WaitSince = "another phase", true, clockMs
			handedOver(HandoverRelease, "", "another phase")(r)
		}},
		"a look-up has decided nothing": {asked, release(Release{Look: &LookedUp{Asked: &store.Asked{Phase: "pay", Times: 3}}, Why: "why"}), func(r *store.Record) {
			released(r)
			r.LastErr, r.Asked = "why", &store.Asked{Phase: "pay", Times: 3}
			handedOver(HandoverRelease, "", "why")(r)
		}},
		"a look-up has decided nothing, which counts": {none, release(Release{Look: &LookedUp{Counts: true}}), func(r *store.Record) {
			released(r)
			r.Tries = 3
			handedOver(HandoverRelease, "", "")(r)
		}},
		"a completer's look-up was too early": {none, release(Release{Look: &LookedUp{}, Counted: true}), func(r *store.Record) {
			released(r)
			r.Tries = 1
			handedOver(HandoverRelease, "", "")(r)
		}},
		"a completer's look-up counts as its try": {none, release(Release{Look: &LookedUp{Counts: true}, Counted: true}), func(r *store.Record) {
			released(r)
			handedOver(HandoverRelease, "", "")(r)
		}},
		"its answer is withheld": {none, release(Release{Answers: true}), func(r *store.Record) {
			released(r)
			r.Tries = 3
			handedOver(HandoverWithheld, "", "")(r)
		}},
		"its answer is withheld, and the try is counted": {none, release(Release{Answers: true, Counted: true}), func(r *store.Record) {
			released(r)
			handedOver(HandoverWithheld, "", "")(r)
		}},
		"its answer isn't stored, and nobody acts without the client": {both(expiring, fresh), release(Release{Answers: true, Calls: []string{"pay#1"}}), func(r *store.Record) {
			released(r)
			r.Doubts, r.DoubtSince, r.DoubtUntil = []string{"pay#1"}, claimedAt, leaseEnd
			handedOver(HandoverRelease, "", "")(r)
		}},
		"its key is freed":                  {both(expiring, fresh), release(Release{}), freed},
		"its request is refused":            {fresh, release(Release{Refused: true, Refusal: errors.New("another phase"), Why: "no"}), both(freed, func(r *store.Record) { r.LastErr = "no" })},
		"its request is refused, with jobs": {func(r *store.Record) { fresh(r); r.Jobs = busy().Jobs }, release(Release{Refused: true}), both(released, handedOver(HandoverRelease, "", ""))},

		"people have it tried again":                             {both(stuck, noDoubt), settle(Settlement{}), both(tryAgain, decided("try again", "stuck", "released"))},
		"people say that it was not made":                        {stuck, settle(Settlement{NotMade: true}), both(tryAgain, both(noDoubt, decided("not made", "stuck", "released")))},
		"people have it looked up":                               {both(stuck, both(asked, intent)), settle(Settlement{Ask: true}), both(tryAgain, decided("ask: pay", "stuck", "released"))},
		"people say that a call that was looked up was not made": {both(stuck, asked), settle(Settlement{NotMade: true}), both(tryAgain, both(resolved, both(noDoubt, decided("not made", "stuck", "released"))))},
		"people risk it twice":                                   {stuck, settle(Settlement{RiskTwice: true}), both(tryAgain, both(noDoubt, decided("risk of twice", "stuck", "released")))},
		"people answer":                                          {none, settle(Settlement{Answer: &store.Response{Status: 410}}), both(func(r *store.Record) { r.Tries, r.LastErr, r.Run = 0, "", clockMs }, decided("answer 410", "held", "done"))},
		"people say what a call came to": {both(intent, stuck), settle(Settlement{Result: []byte(`"é"`)}), func(r *store.Record) {
			both(tryAgain, both(noDoubt, decided("result of pay", "stuck", "released")))(r)
			r.Phases[1] = store.Phase{Name: "pay", Result: []byte(`"é"`)}
			r.Calls = map[string]int{"pay#": 1, Skipped: 1}
		}},
		"people say that a begun call was not made": {both(intent, stuck), settle(Settlement{NotMade: true}), func(r *store.Record) {
			both(tryAgain, both(noDoubt, decided("not made: pay", "stuck", "released")))(r)
			r.Phases = r.Phases[:1]
		}},
		"people risk a begun call twice": {both(intent, stuck), settle(Settlement{RiskTwice: true}), func(r *store.Record) {
			both(tryAgain, both(noDoubt, decided("risk of twice: pay", "stuck", "released")))(r)
			r.Phases = r.Phases[:1]
		}},

		"people end its lease": {func(r *store.Record) { r.Blocked = true }, func(r *store.Record) (*store.Record, error) { return LeaseEnded(r, clock, "jane") }, func(r *store.Record) {
			released(r)
			r.LastErr, r.WaitSince = "an operator ended its lease", clockMs
			decided("end the lease", "held", "released")(r)
		}},
		"people erase it": {both(finished, gaveBack), func(r *store.Record) (*store.Record, error) { return Erased(r, clock, "jane") }, func(r *store.Record) {
			r.Scope, r.Response, r.Overflow, r.LastErr = "", &store.Response{Status: 200}, &store.Overflow{}, ""
			r.Handovers[1].Err = ""
			decided("erase", "replayable", "replayable")(r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := with(tt.held)
			got, err := tt.do(before)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(with(both(tt.held, tt.want)), got); diff != "" {
				t.Errorf("after (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(with(tt.held), before); diff != "" {
				t.Errorf("the record before has changed (-want +got):\n%s", diff)
			}
		})
	}
}

// A claim is of now, and kept if its request is stored or its handler will make calls.
func TestClaimIsKeptForARequestOrACall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		r    store.Record
		kept bool
	}{
		"neither":   {store.Record{}, false},
		"a request": {store.Record{Input: &store.Input{}}, true},
		"a call":    {store.Record{Keep: store.KeepOpen}, true},
	} {
		want := tt.r
		want.State, want.Created, want.Run, want.Lease = store.Open, clockMs, clockMs, clockMs.Add(time.Minute)
		if tt.kept {
			want.Keep = store.KeepOpen
		} else {
			want.Expires = clockSec.Add(aRetention)
		}
		tt.r.Retention, want.Retention = aRetention, aRetention
		if diff := cmp.Diff(&want, Claimed(tt.r, clock, nextLease)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A record keeps the last ten decisions of people, and the last ten handovers; only a
// completer's are not cut, which a store adds without reading them.
func TestListsOfARecordAreCut(t *testing.T) {
	t.Parallel()
	r := with(func(r *store.Record) { r.Settled, r.Handovers = nil, nil })
	for i := range 12 {
		n := min(i+1, 10)
		r = Released(r, clock, Release{Why: fmt.Sprint(i)})
		r.Settled = Decided(r, clock, "jane", fmt.Sprint(i), "")
		if len(r.Handovers) != n || r.Handovers[n-1].Err != fmt.Sprint(i) || len(r.Settled) != n || r.Settled[n-1].What != fmt.Sprint(i) {
			t.Fatalf("after %d: %v, %v", i+1, r.Handovers, r.Settled)
		}
	}
	if up := TakenUp(r, clock, nextLease, aRetention); len(up.Handovers) != 11 {
		t.Errorf("a completer leaves %d handovers", len(up.Handovers))
	}
}

// What has expired stays so for clocks that are a minute behind, and a freed record stays
// as it is.
func TestBuriedStaysExpired(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keep          store.Keep
		expires, want time.Duration // from now
	}{
		"expired just now": {store.KeepNothing, -time.Second, -time.Minute},
		"expired long ago": {store.KeepNothing, -time.Hour, -time.Hour},
		"freed":            {store.KeepFreed, time.Minute, time.Minute},
	} {
		r := with(func(r *store.Record) { r.Keep, r.Expires = tt.keep, clockSec.Add(tt.expires) })
		want := *r
		want.Expires = clockSec.Add(tt.want)
		if diff := cmp.Diff(&want, Buried(r, clock)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Of an answer that is too large the status is left, and what tells that its body was
// another.
func TestStatusOnly(t *testing.T) {
	t.Parallel()
	r := &store.Record{Response: &store.Response{Status: 201, Header: map[string][]string{"X": {"y"}}, Body: []byte("body")}}
	StatusOnly(r)
	want := &store.Record{Response: &store.Response{Status: 201}, Overflow: &store.Overflow{Length: 4, SHA256: sha256.Sum256([]byte("body"))}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

// No record expires before its lease, or TTL could delete it under its holder; a kept one
// doesn't expire.
func TestExpiryFollowsTheLease(t *testing.T) {
	t.Parallel()
	now, lease := time.Unix(1_000_000, 0), time.Unix(1_000_030, 0)
	later := now.Add(time.Hour)
	claim := Claimed(store.Record{PK: "p", ID: "i", Retention: aRetention}, now, lease)
	for name, tt := range map[string]struct {
		got  *store.Record
		want time.Duration // from now
	}{
		"a claim":                      {claim, aRetention},
		"a claim beyond its retention": {Claimed(store.Record{Retention: aRetention}, now, now.Add(5*time.Hour)), 6 * time.Hour},
		"a take-over":                  {Taken(claim, later, lease.Add(time.Hour), aRetention), time.Hour + aRetention},
		"a take-over beyond it":        {Taken(claim, now, now.Add(5*time.Hour), aRetention), 6 * time.Hour},
		"a renewal":                    {Renewed(claim, later, lease.Add(time.Hour)), time.Hour + aRetention},
		"a release that frees":         {Released(claim, now, Release{}), freedFor},
	} {
		if !tt.got.Expires.Equal(now.Add(tt.want)) {
			t.Errorf("%s: expires at %v, want %v from now", name, tt.got.Expires, tt.want)
		}
	}
	phased := Advanced(claim, now, []store.Phase{{Name: "one"}}, nil, nil)
	for name, r := range map[string]*store.Record{"a phase": phased, "a take-over after it": Taken(phased, later, lease, aRetention), "a renewal after it": Renewed(phased, later, lease)} {
		if !r.Expires.IsZero() || r.Keep != store.KeepOpen {
			t.Errorf("%s: expires at %v, kept for %q, want never", name, r.Expires, r.Keep)
		}
	}
}
