package stream_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// An operation goes on: taken over by its client's retry or by a completer, from an
// attempt that gave it back or never came back.
func TestOperationsGoOn(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		for _, byTicket := range []bool{false, true} {
			t.Run(map[bool]string{false: "given back", true: "abandoned"}[dies]+map[bool]string{false: ", to the client", true: ", to a completer"}[byTicket], func(t *testing.T) {
				t.Parallel()
				goesOn(t, dies, byTicket)
			})
		}
	}
}

func goesOn(t *testing.T, dies, byTicket bool) {
	t.Helper()
	tab := newTable(t)
	feed, out := tab.tail(t), &outbox{}
	clock := idemtest.NewClock()
	options := func(o *idem.Options) { o.Resumable, o.CallsOut, o.Function, o.Now = true, dies, "rides", clock.Now }
	takes := calls{"UpdateItem": 1}
	if dies { // one expression can't say that a call may have been made
		takes["UpdateItem"]++
	}
	process := idemtest.Faulty(tab.Store, nil)
	req := tabletest.Post(tabletest.NewKey(), "{}")
	if _, err := idem.New(process, callertest.Anybody, tabletest.Unhurried, options).Do(t.Context(), req, func(context.Context) (idem.Response, error) {
		if dies {
			process.Crash()
		}
		return idem.Response{}, errors.New("down")
	}); err == nil {
		t.Fatal("no error")
	}
	claimed := tab.Only(t)
	clock.Advance(time.Hour)

	handler := func(ctx context.Context) (idem.Response, error) {
		if diff := cmp.Diff(takes, tab.Transport.Calls()); byTicket && diff != "" {
			t.Errorf("calls of the take-over (-want +got):\n%s", diff)
		}
		taken := tab.Only(t)
		if len(taken.Calls) != 0 || taken.Owner == claimed.Owner || taken.Lease.IsZero() {
			t.Errorf("taken over: %+v", taken)
		}
		if dies && (!slices.Equal(taken.Doubts, []string{state.AnyCall}) || !taken.DoubtSince.Equal(claimed.Created)) {
			t.Errorf("in doubt: %v since %v, want any call since the claim at %v", taken.Doubts, taken.DoubtSince, claimed.Created)
		}
		if _, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) { _ = tx.Key("payments"); return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		for _, name := range []string{"first", "second"} {
			if _, err := idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Stage(idem.NewJob(name, tabletest.Planted))
				return 1, nil
			}); err != nil {
				return idem.Response{}, err
			}
		}
		if now := tab.Only(t); now.Calls["payments#"] != 1 || len(now.Jobs) != 2 {
			t.Errorf("in the end: calls %v, jobs %v", now.Calls, now.Jobs)
		}
		return idem.Response{Status: 201, Body: []byte("done")}, nil
	}
	engine := tab.Engine(options)
	var err error
	if byTicket {
		ticket := jobs.TicketFor(tab.Only(t))
		tab.Transport.Reset()
		_, err = engine.Resume(t.Context(), ticket, func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return handler(ctx) })
	} else {
		_, err = engine.Do(t.Context(), req, handler)
	}
	if err != nil {
		t.Fatal(err)
	}
	it := tab.item(t, claimed.PK)
	for _, gone := range []string{"lease_ms", "doubts", "doubt_ms", "req", "exp_s"} {
		if it[gone] != nil {
			t.Errorf("the finish left %s", gone)
		}
	}
	if it["calls"] == nil {
		t.Error("the finish removed the calls")
	}
	tabletest.Replays(t, engine, req, "done")
	if seq := handle(t, stream.NewDrain(tab.Store, out), feed.event(t)); seq != "" {
		t.Errorf("%s is reported", seq)
	}
	if diff := cmp.Diff([]string{"first", "second"}, out.kinds()); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	tab.letGo(t, claimed.PK)
	tabletest.Replays(t, engine, req, "done")
}

// A deploy changes retention and tombstone between two attempts. An answer of people holds
// as the later attempt's program has it, whether a client or a completer asked for that
// attempt, and whatever the program is that people decide by.
func TestTheLaterProgramsRetentionHolds(t *testing.T) {
	t.Parallel()
	const short, long = 2 * time.Hour, 720 * time.Hour
	type terms struct{ retention, tombstone time.Duration }
	for name, tt := range map[string]struct{ before, later, want terms }{
		"from the defaults": {terms{}, terms{long, short}, terms{long, short}},
		"shorter":           {terms{long, short}, terms{short, long}, terms{short, long}},
		"no tombstone":      {terms{long, short}, terms{long, 0}, terms{long, 0}},
		"to the defaults":   {terms{long, short}, terms{}, terms{defaults.Retention, 0}},
	} {
		for _, byTicket := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", by a client", true: ", by a completer"}[byTicket], func(t *testing.T) {
				t.Parallel()
				tab, req := newTable(t), tabletest.Post(tabletest.NewKey(), "{}")
				clock := idemtest.NewClock()
				program := func(of terms) func(*idem.Options) {
					return func(o *idem.Options) { o.Now, o.Retention, o.Tombstone = clock.Now, of.retention, of.tombstone }
				}
				begin(t, tab, req, func(ctx context.Context) error {
					_, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
					return err
				}, program(tt.before))
				clock.Advance(time.Hour)
				handler := func(ctx context.Context) (idem.Response, error) {
					if _, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
						return idem.Response{}, err
					}
					_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("timeout") }, idem.NotIdempotent())
					return idem.Response{}, err
				}
				engine := tab.Engine(resumable, program(tt.later))
				var err error
				if byTicket {
					_, err = engine.Resume(t.Context(), jobs.TicketFor(tab.Only(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return handler(ctx) })
				} else {
					_, err = engine.Do(t.Context(), req, handler)
				}
				if !errors.Is(err, idem.ErrStuck) {
					t.Fatal(err)
				}
				operator := idem.New(tab.Store, callertest.Anybody, program(terms{}))
				if err := operator.Settle(t.Context(), tab.Only(t).PK, idem.Settlement{Answer: &idem.Response{Status: 201}, By: "jane"}); err != nil {
					t.Fatal(err)
				}
				r, now := tab.Only(t), state.Seconds(clock.Now())
				if got := (terms{state.Lifetime(r).Sub(now), r.Expires.Sub(state.Lifetime(r))}); got != tt.want {
					t.Errorf("its answer holds for %v, its tombstone for %v; want %v", got.retention, got.tombstone, tt.want)
				}
			})
		}
	}
}

// The first jobs of a record are written as a map. Late writes about earlier jobs, which
// drains and operators make without raising the version, change nothing of them, before
// and after the commit; and no late copy of the commit brings a delivered job back.
func TestFirstJobsMeetLateWrites(t *testing.T) {
	t.Parallel()
	for name, delivered := range map[string]bool{"never had jobs": false, "its jobs were delivered": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			r := tab.claimed(t)
			if delivered {
				r = tab.delivered(t, r)
			}
			image := r.Clone()
			image.Jobs = map[string]store.Job{"0.0": {Kind: "early", Args: []byte("1")}}
			late := func() {
				t.Helper()
				for what, err := range map[string]error{
					"acknowledge": stream.Ack(t.Context(), tab.Store, image, "0.0"),
					"let go":      stream.LetGo(t.Context(), tab.Store, image),
				} {
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				if _, err := stream.Fail(t.Context(), tab.Store, image, map[string]error{"0.0": errPoison}, 1); err != nil {
					t.Errorf("fail: %v", err)
				}
				if n, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "jane", "0.0"); n != 0 || err != nil {
					t.Errorf("redrive: %d, %v", n, err)
				}
			}
			next := r.Clone()
			next.Ver++
			next.Phases = append(next.Phases, store.Phase{Name: "one", Result: []byte("1")})
			next.Jobs = map[string]store.Job{"1.0": {Kind: "a", Args: []byte("1")}, "1.1": {Kind: "b", Args: []byte("2")}}
			c := store.Commit{Prev: r, Next: next}
			came := 0
			tab.Transport.Fault = func(op string, _ int) dynamotest.Fault {
				if op != "UpdateItem" {
					return nil
				}
				return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
					if came++; came == 1 { // after the commit was made, and before it arrives
						late()
					}
					return base.RoundTrip(req)
				}
			}
			if held, err := tab.Store.Commit(t.Context(), c); held != nil || err != nil {
				t.Fatalf("refused with %+v, %v", held, err)
			}
			tab.Transport.Fault = nil
			if came == 0 {
				t.Fatal("nothing came in between: the test shows nothing")
			}
			tab.has(t, r.PK, "1.0", "1.1")
			late()
			tab.has(t, r.PK, "1.0", "1.1")

			if err := stream.Ack(t.Context(), tab.Store, next, "1.0"); err != nil {
				t.Fatal(err)
			}
			if held, err := tab.Store.Commit(t.Context(), c); held == nil || err != nil {
				t.Errorf("a late copy of the commit: %+v, %v; want it refused", held, err)
			}
			tab.has(t, r.PK, "1.1")
			more := next.Clone() // the holder doesn't know of the acknowledgement
			more.Ver++
			more.Jobs["2.0"] = store.Job{Kind: "c", Args: []byte("3")}
			if held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: next, Next: more}); held != nil || err != nil {
				t.Fatalf("refused with %+v, %v", held, err)
			}
			tab.has(t, r.PK, "1.1", "2.0")
		})
	}
}

// delivered stages a job in r and has it acknowledged: r is left with an empty map.
func (tab *table) delivered(t *testing.T, r *store.Record) *store.Record {
	t.Helper()
	next := r.Clone()
	next.Ver++
	next.Jobs = map[string]store.Job{"0.0": {Kind: "early", Args: []byte("1")}}
	if held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: r, Next: next}); held != nil || err != nil {
		t.Fatalf("refused with %+v, %v", held, err)
	}
	if err := stream.Ack(t.Context(), tab.Store, next, "0.0"); err != nil {
		t.Fatal(err)
	}
	now, err := tab.Store.Load(t.Context(), r.PK)
	if err != nil || len(now.Jobs) != 0 {
		t.Fatalf("got %+v, %v; want no jobs", now, err)
	}
	return now
}

// claimed is an open record that is kept and has no jobs.
func (tab *table) claimed(t *testing.T) *store.Record {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	r := &store.Record{
		PK: "v1##" + (tabletest.NewKey() + tabletest.NewKey())[:43], State: store.Open, Owner: tabletest.NewKey(), Ver: 1, ID: tabletest.NewKey(),
		Lease: now.Add(time.Hour), Keep: store.KeepOpen, Fingerprint: "0f", Created: now, Run: now,
	}
	if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: r, Now: now}); held != nil || err != nil {
		t.Fatalf("refused with %+v, %v", held, err)
	}
	return r
}

// has fails the test unless a record is open with these jobs, which wait and have not
// failed.
func (tab *table) has(t *testing.T, pk string, names ...string) {
	t.Helper()
	r, err := tab.Store.Load(t.Context(), pk)
	if err != nil || r.State != store.Open || len(r.Jobs) != len(names) {
		t.Fatalf("got %+v, %v; want the jobs %v", r, err, names)
	}
	for _, name := range names {
		if !state.Pending(r, name) || r.Jobs[name].Tries != 0 {
			t.Errorf("job %s is %+v", name, r.Jobs[name])
		}
	}
}
