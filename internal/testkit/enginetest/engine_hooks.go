package enginetest

import (
	"context"
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// engineHooks tests hooks and logs of an engine.
func engineHooks(s suite) {
	s.run("the hook of replays runs on replays only and sees the record's life", func(t *testing.T, e *env) {
		var a app
		var seen []idem.Event
		eng := e.engine(func(o *idem.Options) {
			o.Hooks.Replayed = func(_ context.Context, ev idem.Event) { seen = append(seen, ev) }
		})
		first := do(t, eng, order("k", "1"), a.run).first(t)
		do(t, eng, order("k", "2"), a.run).refused(t, idem.ErrMismatch)
		if len(seen) != 0 {
			t.Fatalf("told of %d replays before the first", len(seen))
		}
		do(t, eng, order("k", "1"), a.run).replays(t, first)
		if len(seen) != 1 {
			t.Fatalf("told of %d replays, want 1", len(seen))
		}
		r := e.record(t, order("k", "1"))
		ev := seen[0]
		if ev.ID != r.ID || ev.Status != 201 || ev.Route != "/rides" || !ev.Expires.Equal(r.Expires) || !ev.Created.Equal(r.Created) {
			t.Errorf("told %+v of record %+v", ev, r)
		}
	})

	s.run("each outcome tells its own hook, once", func(t *testing.T, e *env) {
		var a app
		var told []string
		tell := func(name string) func(context.Context, idem.Event) {
			return func(_ context.Context, ev idem.Event) {
				told = append(told, name)
				if ev.Route != "/rides" {
					t.Errorf("%s was told route %q", name, ev.Route)
				}
			}
		}
		eng := e.engine(func(o *idem.Options) {
			o.Hooks = idem.Hooks{
				Claimed: tell("claimed"), TakenOver: tell("taken over"), Finished: tell("finished"), Released: tell("released"),
				Replayed: tell("replayed"), InFlight: tell("in flight"), Mismatch: tell("mismatch"), LeaseLost: tell("lease lost"),
				Refused: tell("refused"), Failed: tell("failed"), Unprotected: tell("unprotected"),
			}
		})
		expect := func(what string, want ...string) {
			t.Helper()
			if !slices.Equal(told, want) {
				t.Errorf("%s: told %q, want %q", what, told, want)
			}
			told = nil
		}

		do(t, eng, order("k", "1"), a.run)
		expect("a new request", "claimed", "finished")
		do(t, eng, order("k", "1"), a.run)
		expect("a replay", "replayed")
		do(t, eng, order("k", "2"), a.run)
		expect("a mismatch", "mismatch")
		do(t, eng, order("bad key", "1"), a.run)
		expect("a bad key", "refused")
		serve(t, eng, order("", "1"), a.run)
		expect("no key", "refused")
		do(t, eng, order("k2", "1"), a.fail(errDown))
		expect("a failing handler", "claimed", "released")
		e.abandon(t, order("k3", "1"))
		do(t, eng, order("k3", "1"), a.run)
		expect("in flight", "in flight")
		e.clock.Advance(storetest.LeaseOver)
		do(t, eng, order("k3", "1"), a.run)
		expect("a take-over", "taken over", "finished")
		e.store.Reset(idemtest.At("Claim", 0, idemtest.Fault{Err: errDown}))
		do(t, eng, order("k4", "1"), a.run)
		expect("a failing store", "failed")
	})
}
