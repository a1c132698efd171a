package rides_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/idem"
)

type calls = map[string]int

// modes are the settings that decide what a ride costs.
var modes = []struct {
	name            string
	merge, deferred bool
	ride, replay    calls
}{
	{"claim first", false, false, calls{"PutItem": 1, "TransactWriteItems": 2, "UpdateItem": 1}, calls{"PutItem": 1}},
	{"claim merged", true, false, calls{"TransactWriteItems": 2, "UpdateItem": 1}, calls{"TransactWriteItems": 1}},
	{"charge deferred", false, true, calls{"PutItem": 1, "TransactWriteItems": 2}, calls{"PutItem": 1}},
	{"both", true, true, calls{"TransactWriteItems": 2}, calls{"TransactWriteItems": 1}},
}

// inEachMode runs a test on DynamoDB, where calls are counted.
func inEachMode(t *testing.T, test func(t *testing.T, st *stage, ride, replay calls)) {
	t.Helper()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			st := onDynamoDB(t, func(o *idem.Options) { o.MergeClaim = m.merge })
			st.app.Deferred = m.deferred
			st.function = rides.NewFunction(st.app, st.engine())
			test(t, st, m.ride, m.replay)
		})
	}
}

func (st *stage) costs(t *testing.T, what string, want calls, do func()) {
	t.Helper()
	st.calls()
	do()
	if diff := cmp.Diff(want, st.calls()); diff != "" {
		t.Errorf("calls of %s (-want +got):\n%s", what, diff)
	}
}

func TestCallsOfARide(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, st *stage, ride, replay calls) {
		var first answer
		st.costs(t, "a ride", ride, func() { first = st.post(t, jane, "k", trip).is(t, 201) })
		st.costs(t, "a replay", replay, func() { st.post(t, jane, "k", trip).replays(t, first) })
		st.costs(t, "a mismatch", replay, func() { st.post(t, jane, "k", other).is(t, 422) })
		st.costs(t, "a look at the ride", calls{"GetItem": 1}, func() { st.get(t, jane, first.ride(t).ID).is(t, 200) })
		st.costs(t, "what is refused", calls{}, func() { st.post(t, jane, "k", `{}`).is(t, 422) })
		st.want(t, whole)
	})
}

// Whatever the mode, each failure leaves something a retry can end.
func TestFailuresInEachMode(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, st *stage, _, _ calls) {
		for _, point := range []string{"started", rideCreated, chargeCreated, "finished"} {
			st.post(t, jane, "k", raising(point)).is(t, 500).has(t, "Retry with the same key")
		}
		st.world.SetMode(world.Mode{Charge: world.ChargeThenDrop, Times: 1})
		_ = st.post(t, jane, "k", trip) // 201 where the charge is recorded, else 500
		first := st.post(t, jane, "k", trip)
		if first.StatusCode != 201 {
			t.Errorf("got %d %s, want 201", first.StatusCode, first.Body)
		}
		got := whole
		got.Calls = st.charges(t)[0].Calls // more than one where it is deferred
		if recorded := !st.app.Deferred; recorded && got.Calls != 1 {
			t.Errorf("%d calls of the provider, want 1", got.Calls)
		}
		st.want(t, got)
	})
}

func TestDeclinedCardInEachMode(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, st *stage, _, _ calls) {
		st.world.SetMode(world.Mode{Charge: world.Decline, Times: 1})
		first := st.post(t, jane, "k", trip).is(t, 402)
		st.post(t, jane, "k", trip).replays(t, first)
		st.want(t, seen{Rides: 1, Audits: 1})
	})
}
