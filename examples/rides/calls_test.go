package rides_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/examples/rides/world"
)

type calls = map[string]int

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
	st := onDynamoDB(t)
	ride, replay := calls{"PutItem": 1, "TransactWriteItems": 2, "UpdateItem": 1}, calls{"PutItem": 1}
	var first answer
	st.costs(t, "a ride", ride, func() { first = st.post(t, jane, "k", trip).is(t, 201) })
	st.costs(t, "a replay", replay, func() { st.post(t, jane, "k", trip).replays(t, first) })
	st.costs(t, "a mismatch", replay, func() { st.post(t, jane, "k", other).is(t, 422) })
	st.costs(t, "a look at the ride", calls{"GetItem": 1}, func() { st.get(t, jane, first.ride(t).ID).is(t, 200) })
	st.costs(t, "what is refused", calls{}, func() { st.post(t, jane, "k", `{}`).is(t, 422) })
	st.want(t, whole)
}

// Each failure leaves something that a retry can end.
func TestFailuresOfARide(t *testing.T) {
	t.Parallel()
	st := onDynamoDB(t)
	for _, point := range []string{"started", rideCreated, chargeCreated, "finished"} {
		st.post(t, jane, "k", raising(point)).is(t, 500).has(t, "Retry with the same key")
	}
	st.world.SetMode(world.Mode{Charge: world.ChargeThenDrop, Times: 1})
	_ = st.post(t, jane, "k", trip) // 201 where the charge is recorded, else 500
	first := st.post(t, jane, "k", trip)
	if first.StatusCode != 201 {
		t.Errorf("got %d %s, want 201", first.StatusCode, first.Body)
	}
	st.want(t, whole)
}

func TestDeclinedCardOnDynamoDB(t *testing.T) {
	t.Parallel()
	st := onDynamoDB(t)
	st.world.SetMode(world.Mode{Charge: world.Decline, Times: 1})
	first := st.post(t, jane, "k", trip).is(t, 402)
	st.post(t, jane, "k", trip).replays(t, first)
	st.want(t, seen{Rides: 1, Audits: 1})
}
