package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/prove"
)

// scenarios begin with those that find most broken stores soon.
var scenarios = []scenario{
	{name: "a failure and a retry, two faults", clients: [][]try{as("A", fails, succeeds), as("A", succeeds)}, faults: 2, late: 1},
	{name: "a clock far ahead", clients: [][]try{as("A", succeeds), as("A", succeeds)}, faults: 2, late: 1, skew: 2 * timeLeft},
	{name: "a failure and a retry", clients: [][]try{as("A", fails, succeeds), as("A", succeeds)}, faults: 1, late: 1, moves: 1},
	{name: "a request and its retry, time passes twice", clients: [][]try{as("A", succeeds), as("A", succeeds)}, faults: 1, late: 1, moves: 2},
	{name: "two failures", clients: [][]try{as("A", fails), as("A", fails)}, faults: 1, late: 1, moves: 1},
	{name: "another request, two faults", clients: [][]try{as("A", fails, succeeds), as("B", succeeds)}, faults: 2, late: 1},
	{name: "three clients, two faults", clients: [][]try{as("A", succeeds), as("A", succeeds), as("A", succeeds)}, faults: 2, late: 1},
	{name: "conflicts", clients: [][]try{as("A", succeeds), as("A", succeeds)}, faults: 1, late: 1, conflicts: 4},
	{name: "three clients and another request, two faults", clients: [][]try{as("A", fails), as("A", succeeds), as("B", succeeds)}, faults: 2, late: 1},
	{name: "a client that tries again", clients: [][]try{as("A", succeeds, succeeds), as("A", succeeds)}, faults: 1, late: 1, moves: 1},
	{name: "another request", clients: [][]try{as("A", fails, succeeds), as("B", fails)}, faults: 1, late: 1, moves: 1},
	{name: "conflicts and a failure", clients: [][]try{as("A", fails, succeeds), as("A", succeeds)}, faults: 1, late: 1, conflicts: 2},
	{name: "three clients, time passes twice", clients: [][]try{as("A", succeeds), as("A", succeeds), as("A", succeeds)}, moves: 2},
	{name: "three clients and another request", clients: [][]try{as("A", fails), as("A", succeeds), as("B", succeeds)}, faults: 1, late: 1, moves: 1},
	{name: "a panic and an answer that isn't stored", clients: [][]try{as("A", panics), as("A", busy, succeeds)}, faults: 1, late: 1, moves: 1},
	{name: "conflicts and a take-over", clients: [][]try{as("A", succeeds), as("A", succeeds)}, faults: 1, late: 1, conflicts: 1, moves: 1},
	{name: "three clients", clients: [][]try{as("A", succeeds), as("A", succeeds), as("A", succeeds)}, faults: 1, late: 1, moves: 1},
	{name: "a request and its retry", clients: [][]try{as("A", succeeds), as("A", succeeds)}, faults: 2, late: 2, moves: 1},
}

// as returns a client's tries of one request.
func as(request string, handlers ...outcome) []try {
	tries := make([]try, len(handlers))
	for i, h := range handlers {
		tries[i] = try{request, h}
	}
	return tries
}

// short returns sc with bounds for a quick look: one conflict, and one fault or one move
// of the clock.
func (sc scenario) short() scenario {
	sc.faults, sc.conflicts, sc.moves = min(sc.faults, 1), min(sc.conflicts, 1), min(sc.moves, 1)
	if sc.moves > 0 {
		sc.faults = 0
	}
	return sc
}

// TestSchedules walks some of the schedules within the scenarios' bounds, and in make
// schedules all of them: about a minute of two cores.
func TestSchedules(t *testing.T) {
	t.Parallel()
	var through, schedules, runs atomic.Int64
	for _, sc := range scenarios {
		// One goroutine runs at a time, so the race detector has no more to see in more
		// schedules.
		if !prove.All() {
			sc = sc.short()
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			r := explore(t, sc, nil)
			if r.violation != "" {
				t.Errorf("%s\n%s", r.violation, r.story)
			}
			t.Logf("%d schedules of up to %d steps in %d runs", r.schedules, r.deepest, r.runs)
			schedules.Add(int64(r.schedules))
			runs.Add(int64(r.runs))
			through.Add(1)
		})
	}
	t.Cleanup(func() { // after all scenarios
		t.Logf("FIGURES %d schedules, %d runs", schedules.Load(), runs.Load())
		if n := runs.Load(); n < 10_000 && through.Load() == int64(len(scenarios)) { // not with -run
			t.Errorf("%d runs, want at least 10,000: the bounds are too tight", n)
		}
	})
}

// An attempt that is frozen for a lifetime, between its claim and the Load after
// the claim, must not claim again with the same nonce: a late take-over of its
// first claim would match nonce and ver 1 and rob the second claim. The scenarios
// show the second claim; this test needs wider bounds.
func TestThawedAfterALifetime(t *testing.T) {
	t.Parallel()
	sc := scenario{clients: [][]try{as("A", succeeds), as("A", succeeds)}}
	const a, b = 0, 1
	violation, story := play(t, sc, []step{
		{answerLost, a}, {what: leasesEnd}, {answered, b}, {doubled, b}, {what: lifeEnds}, {answered, a}, {answered, a}, {what: lands},
	})
	if violation != "" {
		t.Errorf("%s\n%s", violation, story)
	}
}

// live reports whether a clock shows r as in the way.
func live(r *store.Record, now time.Time) bool { return r != nil && !state.Free(r, now) }

// fail records the first violation.
func (w *world) fail(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}

// checkClaim checks the effect of a claim on the record.
func (w *world) checkClaim(k *call, before, after, held *store.Record) {
	me := k.by
	switch {
	case w.blind():
	case held != nil && k.claim.Seen == nil && !state.Freed(before) && state.Over(before.Expires, k.claim.Now):
		w.fail("%s: the key is free, and its claim is refused", me.name)
	case same(before, after):
	case before != nil && before.Owner == me.nonce:
		w.fail("%s: a late copy of its claim revives what it has given up", me.name)
	case live(before, k.claim.Now):
		w.fail("%s: its claim overwrites a live record", me.name)
	case after.Ver != 1:
		w.fail("%s: its claim has ver %d", me.name, after.Ver)
	default:
		w.checkLease(me, after)
	}
}

// checkCommit checks the effect of a commit on the record.
func (w *world) checkCommit(k *call, before, after *store.Record) {
	me, prev := k.by, k.commit.Prev
	if same(before, after) {
		return
	}
	if after.State == store.Done {
		w.checkStored(me, after)
	}
	switch {
	case w.blind():
	case before == nil:
		w.fail("%s: writes where there is no record", me.name)
	case before.State == store.Done:
		w.fail("%s: changes a finished record", me.name)
	case before.Fingerprint != me.fingerprint:
		w.fail("%s: a mismatching request changes the record", me.name)
	case before.Owner != prev.Owner || before.Ver != prev.Ver:
		w.fail("%s: writes on what it has not seen", me.name)
	case after.Owner != me.nonce || after.Ver != before.Ver+1 || after.ID != before.ID:
		w.fail("%s: leaves owner %s, ver %d, operation %s", me.name, w.names[after.Owner], after.Ver, w.names[after.ID])
	case prev.Owner != me.nonce && before.Lease.After(k.sent):
		w.fail("%s: takes over from a live holder", me.name)
	case prev.Owner != me.nonce:
		w.checkLease(me, after)
	case after.State == store.Open && !after.Lease.IsZero():
		w.fail("%s: neither finishes nor releases", me.name)
	case after.State == store.Open && !state.Freed(after):
		w.fail("%s: a release without a call keeps the key", me.name)
	}
}

func (w *world) blind() bool { return w.broken != nil && w.broken.blind }

// checkLease checks a new holder's write: no lease may outlive its record, or
// claims and TTL could hit a held record.
func (w *world) checkLease(a *attempt, r *store.Record) {
	if !r.Lease.After(r.Run) || !r.Expires.After(r.Lease) {
		w.fail("%s: holds the key for %v of a lifetime of %v", a.name, r.Lease.Sub(r.Run), r.Expires.Sub(r.Run))
	}
}

// checkStored checks a newly stored answer.
func (w *world) checkStored(a *attempt, r *store.Record) {
	var body string
	if r.Response != nil {
		body = string(r.Response.Body)
	}
	if i := slices.IndexFunc(w.stored, func(s answer) bool { return s.id == r.ID }); i >= 0 && w.stored[i].body != body {
		w.fail("%s: stores %q for an operation with %q", a.name, body, w.stored[i].body)
	}
	w.stored = append(w.stored, answer{r.ID, body})
}

// same reports whether nothing was written.
func same(a, b *store.Record) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Owner == b.Owner && a.Ver == b.Ver && a.State == b.State && a.ID == b.ID &&
		a.Lease.Equal(b.Lease) && a.Expires.Equal(b.Expires) && (a.Response == nil) == (b.Response == nil)
}

// checkStart is called when a handler starts: its attempt must hold the record at
// this moment, and no other attempt may still hold it.
func (w *world) checkStart(a *attempt, op *idem.Op) {
	r := w.record()
	if r == nil || r.State != store.Open || r.Owner != a.nonce || r.Fingerprint != a.fingerprint || op.ID() != r.ID || op.TakenOver() != (r.Ver > 1) {
		w.fail("%s: its handler starts without the record", a.name)
		return
	}
	a.lease = r.Lease
	for _, c := range w.clients {
		if b := c.at; b != a && b.inside && !c.dead && b.lease.After(a.client.now()) {
			w.fail("%s: its handler starts while %s holds the key", a.name, b.name)
		}
	}
}

// checkAnswer is called when Engine.Do returns: the current record and the
// attempt's events must allow the answer.
func (w *world) checkAnswer(a *attempt, res idem.Result, err error) {
	r, now := w.record(), a.client.now()
	ok := false
	switch {
	case err == nil && res.Replayed:
		ok = r != nil && r.State == store.Done && r.Fingerprint == a.fingerprint && res.Status == http.StatusCreated &&
			string(res.Body) == string(r.Response.Body) && strings.HasPrefix(string(res.Body), a.request+" by ")
	case err == nil && a.handler == busy:
		ok = a.ran && res.Status == http.StatusServiceUnavailable && res.Expires.IsZero()
	case err == nil && res.Expires.IsZero(): // not stored: only after trouble with the store
		ok = a.ran && a.handler == succeeds && a.troubled
	case err == nil:
		ok = a.ran && a.handler == succeeds && slices.Contains(w.stored, answer{a.id, string(res.Body)})
	case errors.Is(err, errHandler):
		ok = a.ran && (a.handler == fails || a.handler == panics)
	case errors.Is(err, idem.ErrLeaseLost):
		ok = a.ran && (a.handler != succeeds || w.spent.moves > 0 || w.skew > 0)
	case errors.Is(err, idem.ErrMismatch):
		ok = !a.ran && live(r, now) && r.Fingerprint != a.fingerprint
	case errors.Is(err, idem.ErrInFlight):
		ok = !a.ran && (a.troubled || a.slept || live(r, now) && r.Owner != a.nonce && r.Lease.After(now))
	case errors.Is(err, idem.ErrUnavailable):
		ok = !a.ran && a.troubled
	}
	if ok && w.story == nil {
		return
	}
	said := fmt.Sprintf("%d %q", res.Status, res.Body)
	switch {
	case err != nil:
		said = strings.ReplaceAll(err.Error(), "\n", "; ")
	case res.Replayed:
		said += ", replayed"
	case res.Expires.IsZero():
		said += ", not stored"
	}
	w.tell("    answer to %s: %s", a.name, said)
	if !ok {
		w.fail("%s: gets an answer it must not get: %s", a.name, said)
	}
}

// checkEnd is called when all clients are over. The key must still lead to one
// answer: at once if the key was freed, else after the end of the lease.
func (w *world) checkEnd() {
	calm := w.spent.moves+w.spent.deaths == 0 && w.skew == 0
	if calm && w.successes > 1 {
		w.fail("%d handlers have succeeded, though nobody died and no lease has ended", w.successes)
	}
	request, other := "A", "B"
	if r := w.record(); r != nil {
		// A key that is free is free for another request too.
		if live(r, w.now) != (w.names[r.Fingerprint] == "A") {
			request, other = "B", "A"
		}
		if r.State == store.Open && r.Lease.After(w.now) {
			w.now = r.Lease.Add(time.Second)
			w.tell("the lease ends")
		}
	}
	first, err := w.retry("x", request)
	if err != nil {
		w.fail("the key never comes to an answer: %v", err)
		return
	}
	for _, k := range w.packets {
		w.tell("%s %s%s", k.by.name, k.verb, eventNames[lands])
		w.perform(k)
	}
	second, err := w.retry("y", request)
	if err != nil || !second.Replayed || second.Status != first.Status || string(second.Body) != string(first.Body) {
		w.fail("after %q a retry gets %q, replayed %t, error %v", first.Body, second.Body, second.Replayed, err)
		return
	}
	if _, err := w.retry("z", other); !errors.Is(err, idem.ErrMismatch) {
		w.fail("another request on a finished key gets %v", err)
	}
	if calm && w.spent.faults+w.spent.conflicts == 0 && w.successes != 1 {
		w.fail("%d handlers have succeeded, though nothing went wrong", w.successes)
	}
}

// retry sends a request when no other client is active.
func (w *world) retry(name, request string) (idem.Result, error) {
	c := w.client(name)
	c.alone = true
	c.at = &attempt{try: try{request: request}, client: c, name: name}
	return c.do()
}

// brokenStore is the memory store with one rule broken.
type brokenStore struct {
	name   string
	claim  func(w *world, c store.Claim) (*store.Record, error)
	commit func(w *world, c store.Commit) (*store.Record, error)
	quiet  bool // clients notice nothing, or only for another reason
	blind  bool // the explorer ignores writes and checks only what clients see
}

var brokenStores = []brokenStore{
	{name: "a claim without its condition", claim: func(w *world, c store.Claim) (*store.Record, error) {
		return w.put(c.Next)
	}},
	{name: "a claim over live records", claim: func(w *world, c store.Claim) (*store.Record, error) {
		if old := w.record(); old == nil || old.Owner != c.Next.Owner {
			return w.put(c.Next)
		}
		return w.store.Claim(context.Background(), c)
	}},
	{name: "a claim over finished records", claim: func(w *world, c store.Claim) (*store.Record, error) {
		if old := w.record(); old != nil && old.State == store.Done {
			return w.put(c.Next)
		}
		return w.store.Claim(context.Background(), c)
	}},
	{name: "a claim over nothing only", claim: func(w *world, c store.Claim) (*store.Record, error) {
		c.Now = time.Time{}
		return w.store.Claim(context.Background(), c)
	}},
	// Clients see no more of it than of a late first packet of a claim: a lease during
	// which no attempt may act.
	{name: "a claim over a freed record that it hasn't seen", quiet: true, claim: func(w *world, c store.Claim) (*store.Record, error) {
		if old := w.record(); old != nil && !live(old, c.Now) {
			return w.put(c.Next)
		}
		return w.store.Claim(context.Background(), c)
	}},
	{name: "a refused claim that says it is done", claim: func(w *world, c store.Claim) (*store.Record, error) {
		_, err := w.store.Claim(context.Background(), c)
		return nil, err
	}},
	{name: "a commit without its condition", commit: func(w *world, c store.Commit) (*store.Record, error) {
		if old := w.record(); old != nil {
			return w.commitOn(old.Owner, old.Ver, c)
		}
		return w.put(c.Next)
	}},
	{name: "a commit without owner and ver", commit: func(w *world, c store.Commit) (*store.Record, error) {
		if old := w.record(); old != nil {
			return w.commitOn(old.Owner, old.Ver, c)
		}
		return w.store.Commit(context.Background(), c)
	}},
	{name: "a commit without owner", commit: func(w *world, c store.Commit) (*store.Record, error) {
		if old := w.record(); old != nil {
			return w.commitOn(old.Owner, c.Prev.Ver, c)
		}
		return w.store.Commit(context.Background(), c)
	}},
	{name: "a commit without ver", commit: func(w *world, c store.Commit) (*store.Record, error) {
		if old := w.record(); old != nil {
			return w.commitOn(c.Prev.Owner, old.Ver, c)
		}
		return w.store.Commit(context.Background(), c)
	}},
	{name: "a commit that keeps ver", commit: func(w *world, c store.Commit) (*store.Record, error) {
		next := *c.Next
		next.Ver = c.Prev.Ver
		return w.store.Commit(context.Background(), store.Commit{Prev: c.Prev, Next: &next})
	}},
	{name: "a commit that keeps owner", commit: func(w *world, c store.Commit) (*store.Record, error) {
		next := *c.Next
		next.Owner = c.Prev.Owner
		return w.store.Commit(context.Background(), store.Commit{Prev: c.Prev, Next: &next})
	}},
	// No clock stops between the expiry and the end of the holder's lease, when
	// another claim would overwrite the held record.
	{name: "a take-over that keeps the expiry", quiet: true, commit: func(w *world, c store.Commit) (*store.Record, error) {
		next := *c.Next
		if next.Owner != c.Prev.Owner {
			next.Expires = c.Prev.Expires
		}
		return w.store.Commit(context.Background(), store.Commit{Prev: c.Prev, Next: &next})
	}},
	{name: "a refused commit that says it is done", commit: func(w *world, c store.Commit) (*store.Record, error) {
		_, err := w.store.Commit(context.Background(), c)
		return nil, err
	}},
	{name: "a refused commit that doesn't say by what", commit: func(w *world, c store.Commit) (*store.Record, error) {
		held, err := w.store.Commit(context.Background(), c)
		if held != nil {
			held = new(store.Record)
		}
		return held, err
	}},
}

// put writes r regardless of the stored record.
func (w *world) put(r *store.Record) (*store.Record, error) {
	w.store = new(idem.MemoryStore)
	return w.store.Claim(context.Background(), store.Claim{Next: r})
}

// commitOn commits on a condition with another owner and ver than the attempt
// saw.
func (w *world) commitOn(owner string, ver int64, c store.Commit) (*store.Record, error) {
	prev := *c.Prev
	prev.Owner, prev.Ver = owner, ver
	return w.store.Commit(context.Background(), store.Commit{Prev: &prev, Next: c.Next})
}

// A harness that can't fail proves nothing: every broken store must be found, by
// its records, and again by the answers to clients.
func TestBrokenStoreIsFound(t *testing.T) {
	t.Parallel()
	for _, b := range brokenStores {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			found(t, b)
		})
		if !b.quiet {
			t.Run(b.name+", by clients", func(t *testing.T) {
				t.Parallel()
				blind := b
				blind.blind = true
				found(t, blind)
			})
		}
	}
}

func found(t *testing.T, b brokenStore) {
	t.Helper()
	runs := 0
	for _, sc := range scenarios {
		r := explore(t, sc, &b)
		if runs += r.runs; r.violation != "" {
			t.Logf("found in %d runs, with %s: %s\n%s", runs, sc.name, r.violation, r.story)
			return
		}
	}
	t.Errorf("not found in %d runs", runs)
}
