package pages_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

// Ride is what docs/start/phases.md books.
type Ride struct {
	ID string `dynamodbav:"id" json:"id"`
	To string `dynamodbav:"to" json:"to"`
}

// Charge is the provider's.
type Charge struct{ ID string }

// Receipt is the job's.
type Receipt struct{ Ride string }

const rides, audit = "rides", "audit"

type rideKey struct {
	ID string `dynamodbav:"id"`
}

type auditEntry struct {
	Ride   string `dynamodbav:"ride"`
	Action string `dynamodbav:"action"`
}

func parse(req request) (order struct{ To string }, err error) {
	return order, json.Unmarshal([]byte(req.Body), &order)
}

func invalid(err error) response {
	return response{StatusCode: http.StatusBadRequest, Body: err.Error()}
}

func booked(r Ride, c Charge) response {
	return response{StatusCode: http.StatusCreated, Body: r.ID + " to " + r.To + ", paid by " + c.ID}
}

func newID() string { return "ride-1" }

// provider charges once for each key, and gives its first answers to nobody.
type provider struct{ calls, charges, lost int }

func (p *provider) Charge(_ context.Context, r Ride, key string) (Charge, error) {
	p.calls++
	if key == "" || r.ID == "" {
		return Charge{}, errors.New("no key or no ride")
	}
	p.charges = 1
	if p.calls <= p.lost {
		return Charge{}, errors.New("no answer")
	}
	return Charge{ID: "ch_1"}, nil
}

var pay = &provider{lost: 1}

func book(ctx context.Context, req request) (response, error) {
	order, err := parse(req) // no effect: may run again
	if err != nil {
		return invalid(err), nil
	}
	ride, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (Ride, error) {
		ride := Ride{ID: newID(), To: order.To}
		tx.Write(dynamo.Put(rides, ride), dynamo.Put(audit, auditEntry{Ride: ride.ID, Action: "created"}))
		return ride, nil
	})
	if err != nil {
		return response{}, err
	}
	charge, err := idem.Foreign(ctx, "charge_created", func(ctx context.Context, tx *idem.Tx) (Charge, error) {
		return pay.Charge(ctx, ride, tx.Key("payments"))
	})
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Write(dynamo.Update(rides, rideKey{ride.ID}, "SET charge = :c", dynamo.Args{":c": charge.ID}))
		tx.Stage(idem.NewJob("send_receipt", Receipt{Ride: ride.ID}))
		return booked(ride, charge), nil
	})
}

func Example_phases() {
	store := &idem.MemoryStore{}
	h := lambda.Wrap(idem.New(store), lambda.HTTPAPI, book)
	req := request{RawPath: "/rides", Headers: map[string]string{"idempotency-key": "8e03978e-40d5"}, Body: `{"to":"work"}`}
	req.RequestContext.HTTP.Method = http.MethodPost
	req.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"sub": "jane"}}
	for range 3 {
		re, err := h.Handle(context.Background(), req)
		fmt.Println(re.StatusCode, re.Headers["Idempotent-Replayed"], err)
	}
	for _, w := range store.Writes() {
		fmt.Println(w)
	}
	fmt.Println(pay.calls, "calls,", pay.charges, "charge")
	// Output:
	// 500  <nil>
	// 201  <nil>
	// 201 true <nil>
	// put rides {"id":"ride-1","to":"work"}
	// put audit {"action":"created","ride":"ride-1"}
	// update rides {"id":"ride-1"} SET charge = "ch_1"
	// 2 calls, 1 charge
}
