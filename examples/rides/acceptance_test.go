package rides_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/idem/store"
)

// What a client of Rocket Rides meets, as far as it needs neither a stream nor a process of its
// own: those are played by the local stack. The rules of keys are tests of package lambda.

func TestNewRide(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		a := st.post(t, jane, newKey(), trip).is(t, 201).has(t, "Your pilot is on their way")
		st.want(t, whole)
		ride, paid := a.ride(t), st.charges(t)[0]
		if ride.User != jane || ride.OriginLat != 37.7 || ride.TargetLon != -122.3 || ride.CreatedAt.IsZero() {
			t.Errorf("the answer has the ride %+v", ride)
		}
		if ride.ChargeID != paid.ID || paid.Customer != "cus_jane" || paid.Amount != 2000 {
			t.Errorf("charge %q in the answer, %+v at the provider", ride.ChargeID, paid)
		}
		if got, want := a.Headers["Location"], "/rides/"+ride.ID; got != want {
			t.Errorf("Location is %q, want %q", got, want)
		}
		for _, job := range st.record(t).Jobs {
			if want := `{"ride_id":"` + ride.ID + `","to":"jane@example.com","amount":2000}`; job.Kind != "send_ride_receipt" || string(job.Args) != want {
				t.Errorf("the job is %s %s, want %s", job.Kind, job.Args, want)
			}
		}
	})
}

func TestSameRequestAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		first := st.post(t, jane, "k", trip).is(t, 201)
		if a := st.post(t, jane, "k", other).is(t, 422).has(t, `"code":"idempotency_key_mismatch"`); strings.Contains(a.Body, "ride_") {
			t.Errorf("the answer to another request gives something away: %s", a.Body)
		}
		for range 2 {
			st.post(t, jane, "k", trip).replays(t, first)
		}
		st.want(t, whole)
	})
}

func TestTwoUsers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		a := st.post(t, jane, "k", trip).is(t, 201)
		b := st.post(t, omar, "k", trip).is(t, 201)
		if a.ride(t).ID == b.ride(t).ID || b.ride(t).User != omar {
			t.Errorf("the second user got %s", b.Body)
		}
		st.post(t, jane, "k", trip).replays(t, a)
		st.post(t, omar, "k", trip).replays(t, b)
		st.want(t, seen{Rides: 2, Paid: 2, Audits: 2, Jobs: 2, Charges: 2, Calls: 2})
	})
}

func TestHundredAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		const clients = 100
		answers := make([]answer, clients)
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() { answers[i] = st.post(t, jane, "k", trip) })
		}
		wg.Wait()
		var made, told int
		for _, a := range answers {
			switch {
			case a.StatusCode == 201 && a.Headers["Idempotent-Replayed"] == "":
				made++
			case a.StatusCode == 201, a.StatusCode == 409 && a.Headers["Retry-After"] != "":
				told++
			default:
				t.Errorf("a client got %d %s", a.StatusCode, a.Body)
			}
		}
		if made != 1 || told != clients-1 {
			t.Errorf("%d made and %d told, want 1 and %d", made, told, clients-1)
		}
		st.want(t, whole)
	})
}

func TestDeclinedCard(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		st.world.SetMode(world.Mode{Charge: world.Decline, Times: 1})
		first := st.post(t, jane, "k", trip).is(t, http.StatusPaymentRequired).has(t, `{"error":"Your card was declined."}`)
		// The provider would take the card now: it is not asked.
		st.post(t, jane, "k", trip).replays(t, first)
		st.want(t, seen{Rides: 1, Audits: 1})
		if st.record(t).State != store.Done {
			t.Error("the operation is not done")
		}
	})
}

func TestProviderDown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode world.Mode
		left seen
	}{
		"it says so":               {world.Mode{Charge: world.Error, Times: 2}, whole},
		"it never answers":         {world.Mode{Charge: world.Hang, Times: 2}, whole},
		"it charges and is silent": {world.Mode{Charge: world.ChargeThenDrop, Times: 2}, seen{Rides: 1, Paid: 1, Audits: 1, Jobs: 1, Charges: 1, Calls: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := inMemory(t)
			st.world.SetMode(tc.mode)
			for range 2 {
				limit := 10 * time.Minute
				if tc.mode.Charge == world.Hang {
					limit = 5 * time.Second
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				re, err := st.function.Handle(ctx, event(jane, "k", trip))
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				answer{re}.is(t, 500).has(t, "Retry with the same key")
				st.at(t, "ride_created")
			}
			first := st.post(t, jane, "k", trip).is(t, 201)
			st.post(t, jane, "k", trip).replays(t, first)
			st.want(t, tc.left)
		})
	}
}

func TestRefusedBeforeItsKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		st.calls()
		st.post(t, "", "k", trip).is(t, 401)
		st.post(t, "nobody@example.com", "k", trip).is(t, 401)
		st.post(t, jane, "k", `{"origin_lat":91,"origin_lon":0,"target_lat":0,"target_lon":0}`).is(t, 422)
		for op, n := range st.calls() {
			t.Errorf("%d calls of %s", n, op)
		}
		if got := st.records(t); len(got) != 0 {
			t.Errorf("%d records", len(got))
		}
		st.want(t, seen{})
		st.post(t, jane, "k", trip).is(t, 201)
		st.want(t, whole)
	})
}

func TestFalseCondition(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		for range 2 {
			st.post(t, jane, "k", raising("finished")).is(t, 500) // behind tx.Stage
			st.want(t, seen{Rides: 1, Audits: 1, Charges: 1, Calls: 1})
		}
		st.refuse(t) // the ride has gone
		st.post(t, jane, "k", trip).is(t, 500)
		st.at(t, chargeCreated)
		if got := st.look(t); got.Paid != 0 || len(st.record(t).Jobs) != 0 {
			t.Errorf("there are %d paid rides and %d jobs of the phase that failed, want none", got.Paid, len(st.record(t).Jobs))
		}
	})
}

func TestChargeIsRecorded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		st.post(t, jane, "k", raising("finished")).is(t, 500)
		st.at(t, chargeCreated)
		st.world.SetMode(world.Mode{Charge: world.Error})
		first := st.post(t, jane, "k", trip).is(t, 201)
		st.post(t, jane, "k", trip).replays(t, first)
		st.want(t, whole)
	})
}

// raising is the same trip, with a failure at a recovery point.
func raising(point string) string {
	return strings.TrimSuffix(trip, "}") + `,"raise_error":"` + point + `"}`
}

const (
	rideCreated   = "ride_created"
	chargeCreated = "charge_created"
)
