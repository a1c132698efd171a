package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/samekey/samekey/idem"
)

// Ride is what these examples book.
type Ride struct{ ID, To string }

// Provider charges once for each key, or loses its answers.
type Provider struct {
	Down    bool
	charges map[string]int
}

func (p *Provider) Charge(key string, cents int) (string, error) {
	if p.charges == nil {
		p.charges = make(map[string]int)
	}
	p.charges[key] = cents
	if p.Down {
		return "", errors.New("no answer")
	}
	return fmt.Sprintf("ch_%d", cents), nil
}

// sendTwice sends one request and its retry.
func sendTwice(engine *idem.Engine, handler func(context.Context) (idem.Response, error), between ...func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req := idem.Request{
		Method: http.MethodPost, Path: "/rides", Header: http.Header{"Idempotency-Key": {"8e03978e-40d5"}},
		Identity: idem.Identity{Kind: "jwt", Subject: "jane"},
	}
	for i := range 2 {
		res, _ := engine.Serve(ctx, req, handler)
		fmt.Println(res.Status, string(res.Body), res.Replayed)
		if i == 0 {
			for _, fn := range between {
				fn()
			}
		}
	}
}

// The decision is committed with its writes and jobs. The handler fails afterwards, and
// the retry gets the committed ride.
func ExampleAtomic() {
	rides := 0
	failing := errors.New("out of memory")
	handler := func(ctx context.Context) (idem.Response, error) {
		ride, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (Ride, error) {
			rides++
			ride := Ride{ID: fmt.Sprint("ride-", rides), To: "work"}
			// tx.Write(dynamo.Put("rides", ride)) would commit with it, too.
			tx.Stage(idem.NewJob("look_for_driver", ride))
			return ride, nil
		})
		if err != nil {
			return idem.Response{}, err
		}
		if failing != nil {
			return idem.Response{}, failing
		}
		return idem.Response{Status: 201, Body: []byte(ride.ID)}, nil
	}
	sendTwice(idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Problem = short }), handler, func() { failing = nil })
	fmt.Println(rides, "ride")
	// Output:
	// 500 internal_error false
	// 201 ride-1 false
	// 1 ride
}

// short makes bodies for these examples.
func short(p idem.Problem) idem.Response {
	return idem.Response{Status: p.Status, Body: []byte(p.Code)}
}

// The first answer of the provider is lost. The retry calls again with the same key, so
// there is one charge.
func ExampleForeign() {
	provider := &Provider{Down: true}
	handler := func(ctx context.Context) (idem.Response, error) {
		charge, err := idem.Foreign(ctx, "charged", func(_ context.Context, tx *idem.Tx) (string, error) {
			return provider.Charge(tx.Key("payments"), 2000)
		})
		return idem.Response{Status: 201, Body: []byte(charge)}, err
	}
	sendTwice(idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Problem = short }), handler, func() { provider.Down = false })
	fmt.Println(len(provider.charges), "charge")
	// Output:
	// 500 internal_error false
	// 201 ch_2000 false
	// 1 charge
}

// The last phase commits its writes and jobs together with the answer.
func ExampleFinish() {
	store := &idem.MemoryStore{}
	handler := func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Stage(idem.NewJob("send_receipt", Ride{ID: "ride-1"}))
			return idem.Response{Status: 201, Body: []byte("ride-1")}, nil
		})
	}
	sendTwice(idem.New(store), handler)
	for _, record := range store.Records() {
		fmt.Println(record.State, len(record.Jobs), "job")
	}
	// Output:
	// 201 ride-1 false
	// 201 ride-1 true
	// done 1 job
}

// A declined card is an answer: it is stored whatever its status, and the retry gets it
// again.
func ExampleRespond() {
	handler := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "charged", func(context.Context, *idem.Tx) (string, error) {
			fmt.Println("the card is declined")
			return "", idem.Respond(idem.Response{Status: 402, Body: []byte("declined")})
		})
		return idem.Response{Status: 201}, err
	}
	sendTwice(idem.New(&idem.MemoryStore{}), handler)
	// Output:
	// the card is declined
	// 402 declined false
	// 402 declined true
}

// A system without keys is called at most once. Nobody knows the outcome of a lost
// answer, so the operation waits for a person.
func ExampleNotIdempotent() {
	calls := 0
	handler := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "faxed", func(context.Context, *idem.Tx) (bool, error) {
			calls++
			return false, errors.New("the line is dead")
		}, idem.NotIdempotent())
		return idem.Response{Status: 201}, err
	}
	sendTwice(idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Problem = short }), handler)
	fmt.Println(calls, "call")
	// Output:
	// 409 idempotency_stuck false
	// 409 idempotency_stuck false
	// 1 call
}

// An error that certainly had no effect lets the retry call again, also a system without
// keys.
func ExampleSafeToRetry() {
	refused := true
	handler := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "faxed", func(context.Context, *idem.Tx) (bool, error) {
			if refused {
				return false, idem.SafeToRetry(errors.New("connection refused"))
			}
			return true, nil
		}, idem.NotIdempotent())
		return idem.Response{Status: 201, Body: []byte("sent")}, err
	}
	sendTwice(idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Problem = short }), handler, func() { refused = false })
	// Output:
	// 500 internal_error false
	// 201 sent false
}

// A job that is staged between phases joins the next commit, here the answer's.
func ExampleStage() {
	store := &idem.MemoryStore{}
	handler := func(ctx context.Context) (idem.Response, error) {
		err := idem.Stage(ctx, idem.NewJob("send_receipt", Ride{ID: "ride-1"}))
		return idem.Response{Status: 201, Body: []byte("ride-1")}, err
	}
	sendTwice(idem.New(store), handler)
	for _, record := range store.Records() {
		for _, job := range record.Jobs {
			fmt.Println(job.Kind, string(job.Args))
		}
	}
	// Output:
	// 201 ride-1 false
	// 201 ride-1 true
	// send_receipt {"ID":"ride-1","To":""}
}

// The provider forgets its keys after a week, so a call without an answer is repeated for
// nearly as long. After that it waits for a person.
func ExampleRemembers() {
	now := time.Now()
	provider := &Provider{Down: true}
	handler := func(ctx context.Context) (idem.Response, error) {
		charge, err := idem.Foreign(ctx, "charged", func(_ context.Context, tx *idem.Tx) (string, error) {
			return provider.Charge(tx.Key("payments"), 2000)
		}, idem.Remembers(7*24*time.Hour))
		return idem.Response{Status: 201, Body: []byte(charge)}, err
	}
	sendTwice(idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.Problem, o.Retention, o.Now = short, 30*24*time.Hour, func() time.Time { return now }
	}), handler, func() { provider.Down, now = false, now.Add(8*24*time.Hour) })
	// Output:
	// 500 internal_error false
	// 409 idempotency_stuck false
}

// The price has changed between two attempts. The first one may have charged, so the
// second one sends nothing.
func ExampleSends() {
	price := 2000
	provider := &Provider{Down: true}
	handler := func(ctx context.Context) (idem.Response, error) {
		charge, err := idem.Foreign(ctx, "charged", func(_ context.Context, tx *idem.Tx) (string, error) {
			return provider.Charge(tx.Key("payments"), price)
		}, idem.Sends("payments", price))
		return idem.Response{Status: 201, Body: []byte(charge)}, err
	}
	sendTwice(idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Problem = short }), handler, func() { provider.Down, price = false, 3000 })
	fmt.Println(len(provider.charges), "charge")
	// Output:
	// 500 internal_error false
	// 409 idempotency_stuck false
	// 1 charge
}
