package idemtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// If [store.Take].From returns a record, a take-over by a ticket writes exactly this
// record. If the store has no Take, the scenarios use Load and Commit, as an engine
// does. If the store's Take refuses although From returns a record, the scenarios use
// Commit.
func storeTake(s suite) {
	const ours = "POST /rides/{id}"
	mine := store.HandlerID{Function: "rides", Name: ours}
	handlers := []store.HandlerID{{Function: "old"}, {Function: "rides", Name: "POST /old"}, mine}
	many := []store.HandlerID{mine}
	for i := range 150 {
		many = append(many, store.HandlerID{Function: "rides", Name: fmt.Sprint("POST /", i)})
	}

	random := make([]byte, 20<<10)
	_, _ = rand.Read(random)

	for _, tt := range []struct {
		name   string
		stored func(*store.Record)
		take   func(*store.Take)
		why    state.Refusal
	}{
		{"as the ticket saw it", func(*store.Record) {}, func(*store.Take) {}, state.Good},
		{"the second time", func(r *store.Record) { r.Tries = 1 }, func(*store.Take) {}, state.Good},
		{"released", func(r *store.Record) { r.Lease = time.Time{} }, func(*store.Take) {}, state.Good},
		{"released, and the ticket doesn't know", func(r *store.Record) { r.Lease = time.Time{} }, func(t *store.Take) { t.Released = false }, state.Good},
		{"released, in doubt", func(r *store.Record) {
			r.Lease, r.Doubts, r.DoubtSince = time.Time{}, []string{"fax#1"}, r.Created
		}, func(*store.Take) {}, state.Good},
		{"abandoned, in doubt", func(r *store.Record) {
			r.Doubts, r.DoubtSince = []string{"fax#1"}, r.Created.Add(-time.Hour)
		}, func(*store.Take) {}, state.Good},
		{"abandoned in a call", func(r *store.Record) { r.Mark = "?" }, func(*store.Take) {}, state.Good},
		{"abandoned in a call, in doubt", func(r *store.Record) {
			r.Mark, r.Doubts, r.DoubtSince = "?fax", []string{"fax#1"}, r.Created.Add(-time.Hour)
			r.DoubtUntil, r.Asked = r.Created, &store.Asked{Phase: "fax", At: r.Created, Times: 1, Said: "unknown", Sent: r.Created}
		}, func(*store.Take) {}, state.Good},
		{"abandoned, and the ticket says released", func(*store.Record) {}, func(t *store.Take) { t.Released = true }, state.Good},
		{"held, and the ticket says released", func(*store.Record) {}, func(t *store.Take) {
			t.Released, t.Now = true, leaseOf(t.Now).Add(-time.Millisecond)
		}, state.Held},
		{"with all that an open record may have", func(r *store.Record) {
			full := fullNext(r)
			full.State, full.Response, full.Overflow, full.Input = r.State, nil, nil, r.Input
			full.Ver, full.Keep, full.Until, full.Lease = r.Ver, store.KeepOpen, time.Time{}, r.Lease
			full.Handler, full.Tenant = r.Handler, r.Tenant
			full.Phases = []store.Phase{{Name: "one", Result: []byte("1")}, {Name: "fax", Intent: true}}
			full.Calls, full.Doubts, full.DoubtSince, full.Blocked = map[string]int{"payments#": 2}, nil, time.Time{}, true
			*r = *full
		}, func(*store.Take) {}, state.Good},
		{"by a program that remembers for longer", func(*store.Record) {}, func(t *store.Take) {
			t.Retention = 72 * time.Hour
		}, state.Good},
		{"by a program of the defaults", func(r *store.Record) { r.Retention = 72 * time.Hour }, func(*store.Take) {}, state.Good},
		{"a large request", func(*store.Record) {}, func(*store.Take) {}, state.Good},
		{"its lease is over since this millisecond", func(*store.Record) {}, func(t *store.Take) { t.Now = leaseOf(t.Now) }, state.Good},
		{"its lease ends in a millisecond", func(*store.Record) {}, func(t *store.Take) { t.Now = leaseOf(t.Now).Add(-time.Millisecond) }, state.Held},
		{"another owner", func(*store.Record) {}, func(t *store.Take) { t.Owner = rand.Text() }, state.Moved},
		{"an older version", func(*store.Record) {}, func(t *store.Take) { t.Ver-- }, state.Moved},
		{"a later version", func(*store.Record) {}, func(t *store.Take) { t.Ver++ }, state.Moved},
		{"no record", func(*store.Record) {}, func(t *store.Take) { t.PK += "x" }, state.Moved},
		{"stuck", func(r *store.Record) { r.State = store.Stuck }, func(*store.Take) {}, state.Moved},
		{"done", func(r *store.Record) { *r = *finishedNext(r, nil); r.Ver--; r.Input = nil }, func(*store.Take) {}, state.Moved},
		{"without its request", func(r *store.Record) { r.Input = nil }, func(*store.Take) {}, state.NoRequest},
		{"not kept", func(r *store.Record) { r.Keep, r.Expires = "", r.Run.Truncate(time.Second).Add(24*time.Hour) }, func(*store.Take) {}, state.NoRequest},

		{"many handlers", func(*store.Record) {}, func(t *store.Take) { t.Handlers = many }, state.Good},
		{"a former name", func(r *store.Record) { r.Handler.Name = "POST /old" }, func(*store.Take) {}, state.Good},
		{"a former function, without a name", func(r *store.Record) { r.Handler = store.HandlerID{Function: "old"} }, func(*store.Take) {}, state.Good},
		{"another name", func(r *store.Record) { r.Handler.Name = "POST /refunds" }, func(*store.Take) {}, state.OtherHandler},
		{"another function", func(r *store.Record) { r.Handler.Function = "refunds" }, func(*store.Take) {}, state.OtherHandler},
		{"this name in a former function", func(r *store.Record) { r.Handler.Function = "old" }, func(*store.Take) {}, state.OtherHandler},
		{"no name", func(r *store.Record) { r.Handler.Name = "" }, func(*store.Take) {}, state.OtherHandler},
		{"no function", func(r *store.Record) { r.Handler.Function = "" }, func(*store.Take) {}, state.OtherHandler},
		{"nobody's", func(r *store.Record) { r.Handler = store.HandlerID{} }, func(t *store.Take) { t.Handlers = []store.HandlerID{{}} }, state.Good},
		{"somebody's, and nobody asks", func(*store.Record) {}, func(t *store.Take) { t.Handlers = []store.HandlerID{{}} }, state.OtherHandler},
		{"no handlers at all", func(r *store.Record) { r.Handler = store.HandlerID{} }, func(t *store.Take) { t.Handlers = nil }, state.OtherHandler},
		{"another tenant", func(*store.Record) {}, func(t *store.Take) { t.Tenant = "jane" }, state.OtherTenant},
		{"a tenant where nobody asks", func(*store.Record) {}, func(t *store.Take) { t.Tenant = "" }, state.OtherTenant},
		{"no tenant", func(r *store.Record) { r.Tenant = "" }, func(*store.Take) {}, state.OtherTenant},
		{"no tenant, and nobody asks", func(r *store.Record) { r.Tenant = "" }, func(t *store.Take) { t.Tenant = "" }, state.Good},
	} {
		s.run("take: "+tt.name, func(t *testing.T, e *env) {
			c := storetest.ClaimAt(e.clock.Now())
			c.Next.Keep, c.Next.Expires = store.KeepOpen, time.Time{}
			c.Next.Input = &store.Input{Method: "POST", Path: "/rides/1", Body: []byte(`{"amount":5}`)}
			if strings.HasPrefix(tt.name, "a large") {
				c.Next.Input.Body = random
			}
			r := storetest.MustClaim(t, e.inner, c)
			r = storetest.MustCommit(t, e.inner, r, storetest.Next(r, tt.stored))

			tk := store.Take{
				PK: r.PK, Owner: r.Owner, Ver: r.Ver, Released: r.Lease.IsZero(), Now: c.Now.Add(time.Hour), Handlers: handlers, Tenant: r.Tenant,
				NewOwner: rand.Text(), Lease: c.Now.Add(time.Hour + storetest.Limit), Retention: 24 * time.Hour,
			}
			if tk.Tenant == "" {
				tk.Tenant = "zoë"
			}
			tt.take(&tk)
			seen := r
			if tk.PK != r.PK {
				seen = nil
			}
			tk = state.WithFrom(tk)
			want := tk.From(seen)
			if why := state.MayTake(seen, tk); why != tt.why || (want != nil) != (why == state.Good) {
				t.Fatalf("it is refused for %d, want %d; From returns %+v", why, tt.why, want)
			}
			held, taken, err := takeOrCommit(storetest.Limited(t), e.inner, tk)
			if err != nil || taken != (tt.why == state.Good) {
				t.Fatalf("Take returned %+v, %t, %v", held, taken, err)
			}
			switch {
			case taken:
				storetest.SameRecord(t, storetest.Whole(t, e.inner, held), want)
				storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), want)
				if held, again, err := takeOrCommit(storetest.Limited(t), e.inner, tk); err != nil || again {
					t.Errorf("the same ticket again: %+v, %t, %v", held, again, err)
				} else {
					storetest.SameRecord(t, storetest.Whole(t, e.inner, held), want)
				}
			case seen == nil:
				storetest.SameRecord(t, held, &store.Record{})
			default:
				storetest.SameRecord(t, storetest.Whole(t, e.inner, held), r)
				storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
			}
		})
	}

	s.run("take: in a cancelled context it fails, and says whether it may have been applied", func(t *testing.T, e *env) {
		r := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		held, taken, err := take(cancelled(t), e.inner, state.WithFrom(store.Take{PK: r.PK, Owner: r.Owner, Ver: r.Ver, Released: r.Lease.IsZero(), Now: r.Lease, NewOwner: rand.Text()}))
		if held != nil || taken || err == nil {
			t.Errorf("Take returned %+v, %t, %v; want an error", held, taken, err)
		}
	})

	s.run("take: of two tickets one is good", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		c.Next.Keep, c.Next.Expires, c.Next.Input = store.KeepOpen, time.Time{}, &store.Input{Method: "POST", Path: "/"}
		r := storetest.MustClaim(t, e.inner, c)
		won := make(chan string, 4)
		for range cap(won) {
			tk := state.WithFrom(store.Take{
				PK: r.PK, Owner: r.Owner, Ver: r.Ver, Released: r.Lease.IsZero(),
				Now: r.Lease, Handlers: handlers, Tenant: r.Tenant, NewOwner: rand.Text(), Lease: r.Lease.Add(storetest.Limit),
			})
			go func() {
				_, taken, err := take(storetest.Limited(t), e.inner, tk)
				if err != nil && !errors.Is(err, idem.ErrConflict) {
					t.Errorf("Take: %v", err)
				}
				if !taken {
					tk.NewOwner = ""
				}
				won <- tk.NewOwner
			}()
		}
		var owner string
		for range cap(won) {
			if o := <-won; o != "" && owner != "" {
				t.Errorf("%s and %s both have it", owner, o)
			} else if o != "" {
				owner = o
			}
		}
		if got := storetest.Load(t, e.inner, r.PK); got.Owner != owner || got.Ver != r.Ver+1 || got.Tries != 1 {
			t.Errorf("the record is %s's at version %d, try %d; want %s's at %d, try 1", got.Owner, got.Ver, got.Tries, owner, r.Ver+1)
		}
	})
}

// takeOrCommit takes a record over as an engine does. If the store's Take refuses
// although From returns a record, takeOrCommit commits this record.
func takeOrCommit(ctx context.Context, s store.Store, t store.Take) (*store.Record, bool, error) {
	prev, taken, err := take(ctx, s, t)
	if taken || err != nil {
		return prev, taken, err
	}
	next := t.From(prev)
	if next == nil {
		return prev, false, nil // prev shows why From refuses the record
	}
	held, err := s.Commit(ctx, store.Commit{Prev: prev, Next: next})
	if held != nil || err != nil {
		return held, false, err
	}
	return next, true, nil
}

// leaseOf returns the end of the record's lease, in a scenario that takes the record
// over at the time takenAt.
func leaseOf(takenAt time.Time) time.Time {
	return takenAt.Add(-time.Hour + storetest.Limit + 123*time.Millisecond)
}
