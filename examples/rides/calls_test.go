package rides_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
