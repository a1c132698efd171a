package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/shop/provider"
	"github.com/samekey/samekey/idem"
)

const price = 1200 // in cents

// order reserves the stock, takes the payment, and confirms by mail.
func (a *app) order(ctx context.Context, ev request) (response, error) {
	var in Order
	if json.Unmarshal([]byte(ev.Body), &in) != nil || in.SKU == "" || in.Mail == "" || in.Quantity < 1 || in.Quantity > 100 {
		return problem(http.StatusBadRequest, `send {"sku": "…", "quantity": 1, "mail": "…"}`), nil //nolint:nilerr // the client's mistake
	}

	// the order and its stock commit together
	o, err := idem.Atomic(ctx, "reserved", func(_ context.Context, tx *idem.Tx) (Order, error) {
		o := Order{ID: rand.Text(), SKU: in.SKU, Quantity: in.Quantity, Amount: in.Quantity * price, Mail: in.Mail, State: reserved}
		tx.Write(a.takeStock(o.SKU, o.Quantity), dynamo.Put(a.orders, o))
		return o, nil
	})
	if errors.Is(err, idem.ErrCondition) {
		return response{}, idem.Respond(problem(http.StatusConflict, "sold out"))
	}
	if err != nil {
		return response{}, err
	}

	// "" is a declined card.
	charge, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
		charge, err := a.payments.Post(ctx, "/charges", tx.Key("payments"), map[string]any{"order": o.ID, "amount": o.Amount})
		if errors.Is(err, provider.ErrDeclined) {
			return "", nil
		}
		return charge, err
	})
	if err != nil {
		return response{}, err
	}

	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		if charge == "" {
			tx.Write(a.takeStock(o.SKU, -o.Quantity), a.move(o.ID, reserved, declined, ""))
			return problem(http.StatusPaymentRequired, "your card was declined"), nil
		}
		done := o
		done.State, done.Charge = paid, charge
		tx.Write(a.move(o.ID, reserved, paid, charge))
		tx.Stage(idem.NewJob("send_mail", provider.Mail{To: o.Mail, Text: "Thank you for order " + o.ID}))
		return answer(http.StatusCreated, done), nil
	})
}
