package rides_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (st *stage) get(t *testing.T, user, id string) answer {
	t.Helper()
	ev := event(user, "", "")
	ev.RouteKey, ev.RawPath, ev.PathParameters = "GET /rides/{id}", "/rides/"+id, map[string]string{"id": id}
	ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.Path = "GET", ev.RawPath
	return st.send(t, ev)
}

func TestShowOwnRidesOnly(t *testing.T) {
	t.Parallel()
	st := onDynamoDB(t)
	booked := st.post(t, jane, "k", trip).is(t, 201).ride(t)
	if diff := cmp.Diff(booked, st.get(t, jane, booked.ID).is(t, 200).ride(t)); diff != "" {
		t.Errorf("the ride (-booked +shown):\n%s", diff)
	}
	st.get(t, omar, booked.ID).is(t, 404)
	st.get(t, jane, "ride_x").is(t, 404)
	st.get(t, "", booked.ID).is(t, 401)
	st.get(t, "nobody@example.com", booked.ID).is(t, 401)
}
