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
	"github.com/samekey/samekey/internal/storetest"
)

// A take-over by a ticket changes what [idem.Take.From] says, if it says so, and
// else nothing. What a store can't do in one write, or at all, is done by Load and
// Commit, as an engine does it.
func storeTake(s suite) {
	const ours = "POST /rides/{id}"
	mine := idem.HandlerID{Function: "rides", Name: ours}
	handlers := []idem.HandlerID{{Function: "old"}, {Function: "rides", Name: "POST /old"}, mine}
	many := []idem.HandlerID{mine}
	for i := range 150 {
		many = append(many, idem.HandlerID{Function: "rides", Name: fmt.Sprint("POST /", i)})
	}

	random := make([]byte, 20<<10)
	_, _ = rand.Read(random)

	for _, tt := range []struct {
		name   string
		stored func(*idem.Record)
		take   func(*idem.Take)
		err    error // From's
	}{
		{"as the ticket saw it", func(*idem.Record) {}, func(*idem.Take) {}, nil},
		{"the second time", func(r *idem.Record) { r.Tries = 1 }, func(*idem.Take) {}, nil},
		{"released", func(r *idem.Record) { r.Lease = time.Time{} }, func(*idem.Take) {}, nil},
		{"released, and the ticket doesn't know", func(r *idem.Record) { r.Lease = time.Time{} }, func(t *idem.Take) { t.Released = false }, nil},
		{"released, in doubt", func(r *idem.Record) {
			r.Lease, r.Doubts, r.DoubtSince = time.Time{}, []string{"fax#1"}, r.Created
		}, func(*idem.Take) {}, nil},
		{"abandoned, in doubt", func(r *idem.Record) {
			r.Doubts, r.DoubtSince = []string{"fax#1"}, r.Created.Add(-time.Hour)
		}, func(*idem.Take) {}, nil},
		{"abandoned, and the ticket says released", func(*idem.Record) {}, func(t *idem.Take) { t.Released = true }, nil},
		{"held, and the ticket says released", func(*idem.Record) {}, func(t *idem.Take) {
			t.Released, t.Now = true, leaseOf(t.Now).Add(-time.Millisecond)
		}, idem.ErrInFlight},
		{"with all that an open record may have", func(r *idem.Record) {
			full := fullNext(r)
			full.State, full.Response, full.Overflow, full.Input = r.State, nil, nil, r.Input
			full.Ver, full.Keep, full.Until, full.Tombstone, full.Lease = r.Ver, idem.KeepOpen, time.Time{}, 0, r.Lease
			full.Handler, full.Tenant = r.Handler, r.Tenant
			full.Phases = []idem.Phase{{Name: "one", Result: []byte("1")}, {Name: "fax", Intent: true}}
			full.Calls, full.Doubts, full.DoubtSince, full.Blocked = map[string]int{"payments#": 2}, nil, time.Time{}, true
			*r = *full
		}, func(*idem.Take) {}, nil},
		{"a large request", func(*idem.Record) {}, func(*idem.Take) {}, nil},
		{"its lease is over since this millisecond", func(*idem.Record) {}, func(t *idem.Take) { t.Now = leaseOf(t.Now) }, nil},
		{"its lease ends in a millisecond", func(*idem.Record) {}, func(t *idem.Take) { t.Now = leaseOf(t.Now).Add(-time.Millisecond) }, idem.ErrInFlight},
		{"another owner", func(*idem.Record) {}, func(t *idem.Take) { t.Owner = rand.Text() }, idem.ErrMoved},
		{"an older version", func(*idem.Record) {}, func(t *idem.Take) { t.Ver-- }, idem.ErrMoved},
		{"a later version", func(*idem.Record) {}, func(t *idem.Take) { t.Ver++ }, idem.ErrMoved},
		{"no record", func(*idem.Record) {}, func(t *idem.Take) { t.PK += "x" }, idem.ErrMoved},
		{"stuck", func(r *idem.Record) { r.State = idem.Stuck }, func(*idem.Take) {}, idem.ErrMoved},
		{"done", func(r *idem.Record) { *r = *finishedNext(r, nil); r.Ver--; r.Input = nil }, func(*idem.Take) {}, idem.ErrMoved},
		{"without its request", func(r *idem.Record) { r.Input = nil }, func(*idem.Take) {}, idem.ErrNotKept},
		{"not kept", func(r *idem.Record) { r.Keep, r.Expires = "", r.Run.Truncate(time.Second).Add(24*time.Hour) }, func(*idem.Take) {}, idem.ErrNotKept},

		{"many handlers", func(*idem.Record) {}, func(t *idem.Take) { t.Handlers = many }, nil},
		{"a former name", func(r *idem.Record) { r.Handler.Name = "POST /old" }, func(*idem.Take) {}, nil},
		{"a former function, without a name", func(r *idem.Record) { r.Handler = idem.HandlerID{Function: "old"} }, func(*idem.Take) {}, nil},
		{"another name", func(r *idem.Record) { r.Handler.Name = "POST /refunds" }, func(*idem.Take) {}, idem.ErrNotMine},
		{"another function", func(r *idem.Record) { r.Handler.Function = "refunds" }, func(*idem.Take) {}, idem.ErrNotMine},
		{"this name in a former function", func(r *idem.Record) { r.Handler.Function = "old" }, func(*idem.Take) {}, idem.ErrNotMine},
		{"no name", func(r *idem.Record) { r.Handler.Name = "" }, func(*idem.Take) {}, idem.ErrNotMine},
		{"no function", func(r *idem.Record) { r.Handler.Function = "" }, func(*idem.Take) {}, idem.ErrNotMine},
		{"nobody's", func(r *idem.Record) { r.Handler = idem.HandlerID{} }, func(t *idem.Take) { t.Handlers = []idem.HandlerID{{}} }, nil},
		{"somebody's, and nobody asks", func(*idem.Record) {}, func(t *idem.Take) { t.Handlers = []idem.HandlerID{{}} }, idem.ErrNotMine},
		{"no handlers at all", func(r *idem.Record) { r.Handler = idem.HandlerID{} }, func(t *idem.Take) { t.Handlers = nil }, idem.ErrNotMine},
		{"another tenant", func(*idem.Record) {}, func(t *idem.Take) { t.Tenant = "jane" }, idem.ErrNotMine},
		{"a tenant where nobody asks", func(*idem.Record) {}, func(t *idem.Take) { t.Tenant = "" }, idem.ErrNotMine},
		{"no tenant", func(r *idem.Record) { r.Tenant = "" }, func(*idem.Take) {}, idem.ErrNotMine},
		{"no tenant, and nobody asks", func(r *idem.Record) { r.Tenant = "" }, func(t *idem.Take) { t.Tenant = "" }, nil},
	} {
		s.run("take: "+tt.name, func(t *testing.T, e *env) {
			c := storetest.ClaimAt(e.clock.Now())
			c.Next.Keep, c.Next.Expires = idem.KeepOpen, time.Time{}
			c.Next.Input = &idem.Input{Method: "POST", Path: "/rides/1", Route: c.Next.Route, Body: []byte(`{"amount":5}`)}
			if strings.HasPrefix(tt.name, "a large") {
				c.Next.Input.Body = random
			}
			r := storetest.MustClaim(t, e.inner, c)
			r = storetest.MustCommit(t, e.inner, r, storetest.Next(r, tt.stored))

			tk := idem.Take{
				Ticket: idem.TicketFor(r), Now: c.Now.Add(time.Hour), Handlers: handlers, Tenant: r.Tenant,
				NewOwner: rand.Text(), Lease: c.Now.Add(time.Hour + storetest.Limit),
			}
			if tk.Tenant == "" {
				tk.Tenant = "zoë"
			}
			tt.take(&tk)
			seen := r
			if tk.PK != r.PK {
				seen = nil
			}
			want, err := tk.From(seen)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatalf("From says %v, want %v", err, tt.err)
			}
			held, taken, err := takeOrCommit(storetest.Limited(t), e.inner, tk)
			if err != nil || taken != (tt.err == nil) {
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
				storetest.SameRecord(t, held, &idem.Record{})
			default:
				storetest.SameRecord(t, storetest.Whole(t, e.inner, held), r)
				storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
			}
		})
	}

	s.run("take: in a cancelled context it fails, and says whether it may have been applied", func(t *testing.T, e *env) {
		r := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		held, taken, err := take(cancelled(t), e.inner, idem.Take{Ticket: idem.TicketFor(r), Now: r.Lease, NewOwner: rand.Text()})
		if held != nil || taken || err == nil {
			t.Errorf("Take returned %+v, %t, %v; want an error", held, taken, err)
		}
	})

	s.run("take: of two tickets one is good", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		c.Next.Keep, c.Next.Expires, c.Next.Input = idem.KeepOpen, time.Time{}, &idem.Input{Method: "POST", Path: "/"}
		r := storetest.MustClaim(t, e.inner, c)
		won := make(chan string, 4)
		for range cap(won) {
			tk := idem.Take{
				Ticket: idem.TicketFor(r), Now: r.Lease, Handlers: handlers, Tenant: r.Tenant, NewOwner: rand.Text(), Lease: r.Lease.Add(storetest.Limit),
			}
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

// takeOrCommit is Take, or what an engine does in its stead.
func takeOrCommit(ctx context.Context, s idem.Store, t idem.Take) (*idem.Record, bool, error) {
	prev, taken, err := take(ctx, s, t)
	if taken || err != nil {
		return prev, taken, err
	}
	next, err := t.From(prev)
	if err != nil {
		return prev, false, nil //nolint:nilerr // the record says why
	}
	held, err := s.Commit(ctx, idem.Commit{Prev: prev, Next: next})
	if held != nil || err != nil {
		return held, false, err
	}
	return next, true, nil
}

// leaseOf is when a record's lease ends that a ticket of these scenarios is for.
func leaseOf(takenAt time.Time) time.Time {
	return takenAt.Add(-time.Hour + storetest.Limit + 123*time.Millisecond)
}
