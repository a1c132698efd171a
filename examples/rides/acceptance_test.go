package rides_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda"
)

// The scenarios of the requirements, part 3, as far as they need neither a
// stream nor a process of its own. Those are played by the local stack.

func TestA01NewRide(t *testing.T) {
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

func TestA02SameRequestAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		key := newKey()
		first := st.post(t, jane, key, trip).is(t, 201)
		for range 3 {
			st.post(t, jane, key, trip).replays(t, first)
		}
		st.want(t, whole)
	})
}

func TestA03SameKeyOtherRequest(t *testing.T) {
	t.Parallel()
	for name, contract := range map[string]struct {
		preset func(*idem.Options)
		status int
		body   string
	}{
		"IETF":   {idem.IETF, 422, `"code":"idempotency_key_mismatch"`},
		"Stripe": {idem.Stripe, 400, `"type":"idempotency_error"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, st *stage) {
				key := `"` + newKey() + `"` // IETF wants quotes
				first := st.post(t, jane, key, trip).is(t, 201)
				a := st.post(t, jane, key, other).is(t, contract.status).has(t, contract.body)
				if strings.Contains(a.Body, "ride_") {
					t.Errorf("the answer gives something away: %s", a.Body)
				}
				st.post(t, jane, key, trip).replays(t, first)
				st.want(t, whole)
			}, contract.preset)
		})
	}
}

func TestA04SameKeyOtherRoute(t *testing.T) {
	t.Parallel()
	tips := func(st *stage, byRoute func(*idem.Options)) (*lambda.Handler[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse], events.APIGatewayV2HTTPRequest) {
		ev := event(jane, "k", trip)
		ev.RouteKey, ev.RawPath = "POST /tips", "/tips"
		return lambda.Wrap(st.engine(byRoute), lambda.HTTPAPI, func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "a tip"}, nil
		}, func(o *lambda.HandlerOptions) { o.Name = "rides" }), ev
	}
	t.Run("the account is the scope", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, st *stage) {
			st.post(t, jane, "k", trip).is(t, 201)
			h, ev := tips(st, func(*idem.Options) {})
			send(t, h.Handle, ev).is(t, 422)
			st.want(t, whole)
		})
	})
	t.Run("account and route are", func(t *testing.T) {
		t.Parallel()
		byRoute := func(o *idem.Options) { o.ScopeRoute = true }
		each(t, func(t *testing.T, st *stage) {
			st.post(t, jane, "k", trip).is(t, 201)
			h, ev := tips(st, byRoute)
			send(t, h.Handle, ev).is(t, 201).has(t, "a tip")
		}, byRoute)
	})
}

func TestA05MissingKey(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		mode    idem.KeyMode
		status  int
		records int
	}{
		{"required", idem.KeyRequired, 400, 0},
		{"made where it is missing", idem.KeyGenerate, 201, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, st *stage) {
				a := st.post(t, jane, "", trip).is(t, tc.status)
				if got := len(st.records(t)); got != tc.records {
					t.Errorf("%d records, want %d", got, tc.records)
				}
				if tc.records == 0 {
					a.has(t, "idempotency_key_missing")
					st.want(t, seen{})
				}
			}, func(o *idem.Options) { o.Key = tc.mode })
		})
	}
	// Phases need a record, so a route with phases can't do without a key.
	t.Run("optional", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, st *stage) {
			_, err := st.function.Handle(t.Context(), event(jane, "", trip))
			if !errors.Is(err, idem.ErrNoOperation) {
				t.Errorf("got %v, want ErrNoOperation", err)
			}
			st.want(t, seen{})
			st.post(t, jane, newKey(), trip).is(t, 201)
		}, func(o *idem.Options) { o.Key = idem.KeyOptional })
	})
}

func TestA06KeyLength(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		for _, key := range []string{strings.Repeat("k", 256), " ", "a\tb", `""`, "schlüssel"} {
			ev := event(jane, "", trip)
			ev.Headers["idempotency-key"] = key
			st.send(t, ev).is(t, 400)
		}
		st.want(t, seen{})
		st.post(t, jane, strings.Repeat("k", 255), trip).is(t, 201)
		st.want(t, whole)
	})
}

func TestA07QuotedKey(t *testing.T) {
	t.Parallel()
	t.Run("lenient", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, st *stage) {
			first := st.post(t, jane, `"abc"`, trip).is(t, 201)
			st.post(t, jane, "abc", trip).replays(t, first)
			st.want(t, whole)
		})
	})
	t.Run("strict", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, st *stage) {
			first := st.post(t, jane, `"abc"`, trip).is(t, 201)
			st.post(t, jane, "new", trip).is(t, 400)
			st.post(t, jane, "abc", trip).replays(t, first)
			st.post(t, jane, `"abc"`, trip).replays(t, first)
		}, func(o *idem.Options) { o.StrictKey = true })
	})
}

func TestA08TwoUsers(t *testing.T) {
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

func TestA09HundredAtOnce(t *testing.T) {
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

func TestA11DeclinedCard(t *testing.T) {
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

func TestA12ProviderDown(t *testing.T) {
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
			each(t, func(t *testing.T, st *stage) {
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
		})
	}
}

// What the app answers with 500 is stored by Stripe's first contract only. A
// failure it doesn't answer poisons nothing by any.
func TestA13ServerErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		preset func(*idem.Options)
		runs   int
	}{
		"v1": {idem.StripeV1, 1},
		"v2": {idem.Stripe, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, st *stage) {
				runs := 0
				h := lambda.Wrap(st.engine(), lambda.HTTPAPI, func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
					runs++
					return events.APIGatewayV2HTTPResponse{StatusCode: 500, Body: "no"}, nil
				}, func(o *lambda.HandlerOptions) { o.Name = "rides" })
				first := send(t, h.Handle, event(jane, "answered", trip)).is(t, 500)
				again := send(t, h.Handle, event(jane, "answered", trip))
				if runs != tc.runs {
					t.Errorf("%d runs, want %d", runs, tc.runs)
				}
				if tc.runs == 1 {
					again.replays(t, first)
				}
				st.post(t, jane, "failed", raising(chargeCreated)).is(t, 500)
				st.post(t, jane, "failed", trip).is(t, 201)
				st.want(t, whole)
			}, tc.preset)
		})
	}
}

func TestA14RefusedBeforeItsKey(t *testing.T) {
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

func TestA15OtherTokenAndTrace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		first := st.post(t, jane, "k", trip).is(t, 201)
		ev := event(jane, "k", trip)
		ev.Headers["authorization"] = "Bearer another-token-of-hers"
		ev.Headers["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		ev.Headers["x-request-id"] = "2"
		ev.RequestContext.HTTP.SourceIP = "192.0.2.2"
		st.send(t, ev).replays(t, first)
		st.want(t, whole)
	})
}

// A18 and, for the job that the phase staged, A20.
func TestA18FalseCondition(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		st.post(t, jane, "k", raising("finished")).is(t, 500)
		st.refuse(t) // the ride has gone
		st.post(t, jane, "k", trip).is(t, 500)
		st.at(t, chargeCreated)
		got := st.look(t)
		if got.Paid != 0 || len(st.record(t).Jobs) != 0 {
			t.Errorf("there are %d paid rides and %d jobs of the phase that failed", got.Paid, len(st.record(t).Jobs))
		}
	})
}

func TestA19ChargeIsRecorded(t *testing.T) {
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

func TestA20JobOfAnAbortedPhase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		for range 2 {
			st.post(t, jane, "k", raising("finished")).is(t, 500) // behind tx.Stage
			st.want(t, seen{Rides: 1, Audits: 1, Charges: 1, Calls: 1})
		}
		st.post(t, jane, "k", trip).is(t, 201)
		st.want(t, whole)
	})
}

func TestA33LargeAnswer(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456789", 90_000)
	each(t, func(t *testing.T, st *stage) {
		h := lambda.Wrap(st.engine(), lambda.HTTPAPI, func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: body}, nil
		}, func(o *lambda.HandlerOptions) { o.Name = "rides" })
		first := send(t, h.Handle, event(jane, "k", trip)).is(t, 201)
		send(t, h.Handle, event(jane, "k", trip)).replays(t, first)
		if first.Body != body {
			t.Error("the first answer is not the handler's")
		}
	}, func(o *idem.Options) { o.MaxBody = 1 << 20 })
}

func TestA34DerivedKey(t *testing.T) {
	t.Parallel()
	t.Run("of the charge", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, st *stage) {
			st.world.SetMode(world.Mode{Charge: world.ChargeThenDrop, Times: 1})
			st.post(t, jane, "k", trip).is(t, 500)
			st.post(t, jane, "k", trip).is(t, 201)
			st.post(t, omar, "k", trip).is(t, 201)
			charges := st.charges(t)
			if len(charges) != 2 || charges[0].Calls != 2 || charges[1].Calls != 1 || charges[0].Key == charges[1].Key {
				t.Errorf("got %+v, want jane's, called twice with one key, and omar's with another", charges)
			}
		})
	})
	t.Run("of each service, step, user and lifetime", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, st *stage) {
			var made [][]string // by each run
			h := lambda.Wrap(st.engine(), lambda.HTTPAPI, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
				_, err := idem.Foreign(ctx, chargeCreated, func(_ context.Context, tx *idem.Tx) (bool, error) {
					made = append(made, []string{tx.Key("payments"), tx.Key("payments", "refund"), tx.Key("mails")})
					if len(made) == 1 {
						return false, errTest // so a second attempt takes over
					}
					return true, nil
				})
				return events.APIGatewayV2HTTPResponse{StatusCode: 201}, err
			}, func(o *lambda.HandlerOptions) { o.Name = "rides" })
			send(t, h.Handle, event(jane, "k", trip)).is(t, 500)
			send(t, h.Handle, event(jane, "k", trip)).is(t, 201)
			send(t, h.Handle, event(omar, "k", trip)).is(t, 201)
			st.clock = st.clock.Add(73 * time.Hour) // the key has expired
			send(t, h.Handle, event(jane, "k", trip)).is(t, 201)

			if len(made) != 4 || !slices.Equal(made[0], made[1]) {
				t.Fatalf("keys of the runs: %v, want the first two alike", made)
			}
			different := make(map[string]bool)
			for _, key := range slices.Concat(made[1:]...) {
				different[key] = true
			}
			if len(different) != 9 {
				t.Errorf("%d different keys of 9: %v", len(different), made[1:])
			}
		})
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
