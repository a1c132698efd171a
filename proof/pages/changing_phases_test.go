package pages_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// Order is the result of the first phase of docs/operate/changes.md, as
// version 1 has it.
type Order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// VersionedOrder is the same with the version of its handler.
type VersionedOrder struct {
	Order
	Version int `json:"version"` // 0 in what version 1 has stored
}

// till is a provider that charges once for each key, and may give no answer.
type till struct {
	charges map[string]int
	silent  bool
}

func (p *till) Charge(_ context.Context, amount int, key string) (Charge, error) {
	p.charges[key] = amount
	if p.silent {
		return Charge{}, errors.New("no answer")
	}
	return Charge{ID: fmt.Sprint("ch_", amount)}, nil
}

func (p *till) orderV1(ctx context.Context, _ request) (response, error) {
	order, err := idem.Atomic(ctx, "ordered", func(context.Context, *idem.Tx) (Order, error) {
		return Order{ID: "1", Amount: 20}, nil
	})
	if err != nil {
		return response{}, err
	}
	return p.pay(ctx, order)
}

// pay is the rest of version 1.
func (p *till) pay(ctx context.Context, order Order) (response, error) {
	charge, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (Charge, error) {
		return p.Charge(ctx, order.Amount, tx.Key("payments"))
	})
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) {
		return response{StatusCode: http.StatusCreated, Body: charge.ID}, nil
	})
}

func (p *till) orderV2(ctx context.Context, _ request) (response, error) {
	order, err := idem.Atomic(ctx, "ordered", func(context.Context, *idem.Tx) (VersionedOrder, error) {
		return VersionedOrder{Order{ID: "1", Amount: 20}, 2}, nil
	})
	if err != nil {
		return response{}, err
	}
	if order.Version < 2 {
		return p.pay(ctx, order.Order) // the phases of version 1, as they were
	}
	return p.payWithTax(ctx, order.Order)
}

// orderV1Ready is version 1 that knows the phases of version 2, and begins none.
func (p *till) orderV1Ready(ctx context.Context, _ request) (response, error) {
	order, err := idem.Atomic(ctx, "ordered", func(context.Context, *idem.Tx) (VersionedOrder, error) {
		return VersionedOrder{Order{ID: "1", Amount: 20}, 1}, nil
	})
	if err != nil {
		return response{}, err
	}
	if order.Version < 2 {
		return p.pay(ctx, order.Order)
	}
	return p.payWithTax(ctx, order.Order)
}

// payWithTax has a new phase before the charge, and another service.
func (p *till) payWithTax(ctx context.Context, order Order) (response, error) {
	taxed, err := idem.Atomic(ctx, "taxed", func(context.Context, *idem.Tx) (int, error) {
		return order.Amount + 4, nil
	})
	if err != nil {
		return response{}, err
	}
	charge, err := idem.Foreign(ctx, "charged_with_tax", func(ctx context.Context, tx *idem.Tx) (Charge, error) {
		return p.Charge(ctx, taxed, tx.Key("bank"))
	})
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) {
		return response{StatusCode: http.StatusCreated, Body: charge.ID}, nil
	})
}

// The guide's way to deploy any change: an operation goes on with the phases that it
// began with, and a roll-back refuses those of the new version until that is back.
func TestOperationsKeepTheirPhases(t *testing.T) {
	t.Parallel()
	p := &till{charges: make(map[string]int)}
	store := &idem.MemoryStore{}
	send := func(key string, version func(context.Context, request) (response, error), silent bool) (int, string) {
		t.Helper()
		p.silent = silent
		req := request{RawPath: "/orders", Headers: map[string]string{"idempotency-key": key}, Body: `{}`}
		req.RequestContext.HTTP.Method = http.MethodPost
		req.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"sub": "jane"}}
		re, err := lambda.Wrap(idem.New(store), lambda.HTTPAPI, version).Handle(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return re.StatusCode, re.Body
	}
	is := func(what string, wantStatus int, wantBody string, status int, body string) {
		t.Helper()
		if status != wantStatus || wantBody != "" && body != wantBody {
			t.Errorf("%s: %d %s, want %d %s", what, status, body, wantStatus, wantBody)
		}
	}
	status, body := send("old-1", p.orderV1, true)
	is("version 1 hears nothing from its provider", 500, "", status, body)
	status, body = send("old-1", p.orderV2, false)
	is("version 2 goes on with the phases of version 1", 201, "ch_20", status, body)
	status, body = send("new-1", p.orderV2, true)
	is("version 2 hears nothing from its provider", 500, "", status, body)
	status, body = send("new-1", p.orderV1, false)
	is("after a roll-back, version 1 refuses it", 500, "", status, body)
	status, body = send("new-2", p.orderV1, false)
	is("and takes new requests", 201, "ch_20", status, body)
	status, body = send("new-1", p.orderV2, false)
	is("version 2 is back and goes on", 201, "ch_24", status, body)
	status, body = send("new-3", p.orderV2, true)
	is("version 2 hears nothing again", 500, "", status, body)
	status, body = send("new-3", p.orderV1Ready, false)
	is("a version 1 that knows the phases of version 2 goes on", 201, "ch_24", status, body)
	if len(p.charges) != 4 {
		t.Errorf("%d charges for 4 orders: %v", len(p.charges), p.charges)
	}
}
