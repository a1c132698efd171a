package idemtest

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
	"github.com/samekey/samekey/internal/trace"
)

func storeCommit(s suite) {
	s.run("a commit with the right owner and version lands", func(t *testing.T, e *env) {
		r := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		r = storetest.MustCommit(t, e.inner, r, storetest.Next(r, func(n *store.Record) { n.LastErr = "it failed" }))
		storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
		r = storetest.MustCommit(t, e.inner, r, storetest.Next(r, func(n *store.Record) { n.LastErr = "" }))
		storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
	})

	s.run("a take-over changes the owner, and the old one is fenced out", func(t *testing.T, e *env) {
		old := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		r := storetest.MustCommit(t, e.inner, old, storetest.TakenOver(old))
		storetest.SameRecord(t, storetest.RefusedCommit(t, e.inner, old, finishedNext(old, []byte("too late"))), r)
		storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
	})

	s.run("another owner at the same version is refused", func(t *testing.T, e *env) {
		r := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		prev := r.Clone()
		prev.Owner = rand.Text()
		storetest.SameRecord(t, storetest.RefusedCommit(t, e.inner, prev, finishedNext(prev, []byte("not mine"))), r)
		storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
	})

	for name, ver := range map[string]int64{"an older": 1, "a newer": 3} {
		s.run(name+" version of the same owner is refused", func(t *testing.T, e *env) {
			r := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
			r = storetest.MustCommit(t, e.inner, r, storetest.Next(r, func(n *store.Record) { n.LastErr = "it failed" }))
			prev := r.Clone()
			prev.Ver = ver
			storetest.SameRecord(t, storetest.RefusedCommit(t, e.inner, prev, finishedNext(prev, []byte("not now"))), r)
			storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
		})
	}

	s.run("a commit sent twice lands once and then gets its own record", func(t *testing.T, e *env) {
		prev := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		r := storetest.MustCommit(t, e.inner, prev, finishedNext(prev, []byte("once")))
		storetest.SameRecord(t, storetest.RefusedCommit(t, e.inner, prev, r.Clone()), r)
	})

	// Only the engine checks whether a holder's record has expired. The store lets the
	// holder write an expired record.
	s.run("an expired record can be committed by who holds it", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		c.Next.Expires = c.Now.Add(-time.Hour)
		r := storetest.MustClaim(t, e.inner, c)
		r = storetest.MustCommit(t, e.inner, r, finishedNext(r, []byte("late, but fenced")))
		storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
	})

	s.run("a commit on a missing record makes none, and says that there is none", func(t *testing.T, e *env) {
		r := storetest.ClaimAt(e.clock.Now()).Next
		storetest.SameRecord(t, storetest.RefusedCommit(t, e.inner, r, finishedNext(r, []byte("nowhere"))), &store.Record{})
		if got := storetest.Load(t, e.inner, r.PK); got != nil {
			t.Errorf("a record was made: %+v", got)
		}
	})

	s.run("a commit in a cancelled context fails, and says whether it may have been applied", func(t *testing.T, e *env) {
		r := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		held, err := e.inner.Commit(cancelled(t), store.Commit{Prev: r, Next: finishedNext(r, []byte("too late"))})
		if held != nil || err == nil {
			t.Fatalf("Commit returned %+v, %v; want an error", held, err)
		}
		if got := storetest.Load(t, e.inner, r.PK); got.Ver != r.Ver && !errors.Is(err, store.ErrUnknown) {
			t.Errorf("Commit returned %v, which says nothing was written, and wrote %+v", err, got)
		}
	})

	s.run("writes that could not be built are refused, and nothing is written", func(t *testing.T, e *env) {
		for name, writes := range map[string][]idem.Write{"broken": {brokenWrite{}}, "nil": {nil}} {
			c := storetest.ClaimAt(e.clock.Now())
			r := storetest.MustClaim(t, e.inner, c)
			held, err := e.inner.Commit(storetest.Limited(t), store.Commit{Prev: r, Next: finishedNext(r, nil), Writes: writes})
			if held != nil || !errors.Is(err, idem.ErrWrite) {
				t.Errorf("%s: Commit returned %+v, %v; want idem.ErrWrite", name, held, err)
			}
			storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
		}
	})

	s.run("a large record is written whole, or refused and not written", func(t *testing.T, e *env) {
		r := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		big := storetest.Next(r, func(n *store.Record) {
			n.Keep, n.Expires = store.KeepOpen, time.Time{}
			n.Phases = []store.Phase{{Name: "one", Result: []byte(`"` + strings.Repeat("x", 401<<10) + `"`)}}
		})
		held, err := e.inner.Commit(storetest.Limited(t), store.Commit{Prev: r, Next: big.Clone()})
		if held != nil || errors.Is(err, store.ErrUnknown) {
			t.Errorf("Commit returned %+v, %v; want none, or an error that says nothing was written", held, err)
		}
		if err != nil {
			big = r
		}
		storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), big)
	})

	// A claim or a commit writes a large first phase. If the store accepts this write,
	// the store must also accept a later take-over, although the take-over makes the
	// record larger.
	for name, begin := range map[string]func(*testing.T, store.Store, *store.Record) (*store.Record, error){
		"claim": func(t *testing.T, st store.Store, large *store.Record) (*store.Record, error) {
			return st.Claim(storetest.Limited(t), store.Claim{Next: large.Clone(), Now: large.Created})
		},
		"commit": func(t *testing.T, st store.Store, large *store.Record) (*store.Record, error) {
			first := large.Clone()
			first.Phases = nil
			return st.Commit(storetest.Limited(t), store.Commit{Prev: storetest.MustClaim(t, st, store.Claim{Next: first, Now: first.Created}), Next: next(first, large)})
		},
	} {
		s.run("a "+name+" leaves room for take-overs, or is refused", func(t *testing.T, e *env) {
			c := storetest.ClaimAt(e.clock.Now())
			large := c.Next.Clone()
			large.Keep, large.Expires = store.KeepOpen, time.Time{}
			large.Phases = []store.Phase{{Name: "one", Result: []byte(`"` + strings.Repeat("x", 408_900) + `"`)}}
			held, err := begin(t, e.inner, large)
			switch {
			case errors.Is(err, store.ErrTooLarge):
				return
			case err != nil || held != nil:
				t.Fatalf("got %+v, %v", held, err)
			}
			r := storetest.Load(t, e.inner, large.PK)
			over := storetest.TakenOver(r)
			over.LastErr = strings.Repeat("e", 1000)
			if held, err := e.inner.Commit(storetest.Limited(t), store.Commit{Prev: r, Next: over}); held != nil || err != nil {
				t.Errorf("a take-over got %+v, %v", held, err)
			}
		})
	}

	commitTouchesWhatDiffers(s)
	commitDropsJobs(s)
}

// The function next returns large as the successor of first: a copy with the next
// version.
func next(first, large *store.Record) *store.Record {
	n := large.Clone()
	n.Ver = first.Ver + 1
	return n
}

type brokenWrite struct{}

func (brokenWrite) Err() error     { return errors.New("it could not be built") }
func (brokenWrite) String() string { return "broken" }

// commitTouchesWhatDiffers checks that Commit changes only the fields in which Next
// differs from Prev. When a job is delivered, it leaves the record, but the version
// stays the same. So a holder's Prev may still have the job, and Commit must not write
// the job back.
func commitTouchesWhatDiffers(s suite) {
	a := idem.Job{Kind: "receipt", Args: []byte(`{"n":1}`)}
	b := idem.Job{Kind: "mail", Args: []byte(`{"n":2}`), Trace: trace.Context{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", State: "a=1,b=2"}}
	c := idem.Job{Kind: "push", Args: []byte(`{"n":3}`)}

	for _, tt := range []struct {
		name   string
		stored func(*store.Record) // makes the stored record
		seen   func(*store.Record) // makes the record as the holder has read it
		change func(*store.Record) // the change that the holder commits
		want   func(*store.Record) // the expected change of the stored record
	}{
		{
			name:   "a job that is gone is not brought back",
			stored: func(r *store.Record) { r.Jobs = map[string]idem.Job{"0.0": a} },
			seen:   func(r *store.Record) { r.Jobs = map[string]idem.Job{"0.0": a, "0.1": b} },
			change: func(r *store.Record) { r.LastErr = "it failed" },
			want:   func(r *store.Record) { r.LastErr = "it failed" },
		},
		{
			name:   "nor by a commit that stages another",
			stored: func(r *store.Record) { r.Jobs = map[string]idem.Job{"0.0": a} },
			seen:   func(r *store.Record) { r.Jobs = map[string]idem.Job{"0.0": a, "0.1": b} },
			change: func(r *store.Record) { r.Jobs["1.0"] = c },
			want:   func(r *store.Record) { r.Jobs["1.0"] = c },
		},
		{
			name:   "phases that don't differ stay as stored",
			stored: func(r *store.Record) { r.Phases = []store.Phase{{Name: "ride_created", Result: []byte(`{"id":7}`)}} },
			seen:   func(*store.Record) {},
			change: func(r *store.Record) { r.Lease = time.Time{} },
			want:   func(r *store.Record) { r.Lease = time.Time{} },
		},
		{
			name: "a renewed lease leaves phases, jobs and the reason to keep as stored",
			stored: func(r *store.Record) {
				r.Phases, r.Jobs = []store.Phase{{Name: "ride_created", Result: []byte(`{"id":7}`)}}, map[string]idem.Job{"0.0": a}
				r.Keep, r.Expires = store.KeepOpen, time.Time{}
			},
			seen:   func(*store.Record) {},
			change: func(r *store.Record) { r.Lease = r.Lease.Add(time.Minute) },
			want:   func(r *store.Record) { r.Lease = r.Lease.Add(time.Minute) },
		},
		{
			name:   "the reason to keep and the expiry stay as stored",
			stored: func(r *store.Record) { r.Keep, r.Expires = store.KeepOpen, time.Time{} },
			seen:   func(*store.Record) {},
			change: func(r *store.Record) { r.Tries = 2 },
			want:   func(r *store.Record) { r.Tries = 2 },
		},
	} {
		s.run("a commit touches only what differs: "+tt.name, func(t *testing.T, e *env) {
			claim := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
			stored := storetest.MustCommit(t, e.inner, claim, storetest.Next(claim, tt.stored))
			seen := claim.Clone()
			seen.Ver = stored.Ver
			tt.seen(seen)
			storetest.MustCommit(t, e.inner, seen, storetest.Next(seen, tt.change))
			storetest.SameRecord(t, storetest.Load(t, e.inner, stored.PK), storetest.Next(stored, tt.want))
		})
	}
}

// commitDropsJobs checks commits that free a record and drop its jobs. Commit must
// refuse if the stored jobs are no longer those in Prev.
func commitDropsJobs(s suite) {
	a, parked := idem.Job{Kind: "receipt", Args: []byte(`{"n":1}`)}, idem.Job{Kind: "mail", Args: []byte(`{"n":2}`), Failed: "no such address"}
	for _, tt := range []struct {
		name   string
		stored map[string]idem.Job
		seen   map[string]idem.Job
		err    error
	}{
		{"as they were seen", map[string]idem.Job{"0.0": a, "0.1": parked}, map[string]idem.Job{"0.0": a, "0.1": parked}, nil},
		{"of which one was delivered since", map[string]idem.Job{"0.0": a}, map[string]idem.Job{"0.0": a, "0.1": parked}, idem.ErrConflict},
		{"that were all delivered since", nil, map[string]idem.Job{"0.0": a}, idem.ErrConflict},
		{"of which one was parked since", map[string]idem.Job{"0.0": parked}, map[string]idem.Job{"0.0": a}, idem.ErrConflict},
		{"of which one was redriven since", map[string]idem.Job{"0.0": a}, map[string]idem.Job{"0.0": parked}, idem.ErrConflict},
	} {
		s.run("a freed record loses its jobs, "+tt.name, func(t *testing.T, e *env) {
			claim := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
			stored := storetest.MustCommit(t, e.inner, claim, storetest.Next(claim, func(r *store.Record) { r.Jobs = tt.stored }))
			seen := claim.Clone()
			seen.Ver, seen.Jobs = stored.Ver, tt.seen
			next := storetest.Next(seen, func(r *store.Record) { r.Jobs, r.Keep = nil, store.KeepFreed })
			held, err := e.inner.Commit(t.Context(), store.Commit{Prev: seen, Next: next})
			if held != nil || !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v; want %v", held, err, tt.err)
			}
			want := stored
			if tt.err == nil {
				want = storetest.Next(stored, func(r *store.Record) { r.Jobs, r.Keep = nil, store.KeepFreed })
			}
			storetest.SameRecord(t, storetest.Load(t, e.inner, stored.PK), want)
		})
	}
}
