// Package recipes has the handlers of docs/start/recipes.md. The tests run each handler
// except [Bulk.PayAll] to a crash before and after each of its calls.
package recipes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

// Transfer moves cents from one account to another.
type Transfer struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int    `json:"amount"`
}

type account struct {
	ID string `dynamodbav:"id"`
}

// MoveMoney books a transfer: both accounts, the entry and the answer, or nothing.
func MoveMoney(ctx context.Context, ev request) (response, error) {
	var t Transfer
	if json.Unmarshal([]byte(ev.Body), &t) != nil || t.Amount < 1 || t.From == "" || t.To == "" || t.From == t.To {
		return response{StatusCode: http.StatusBadRequest}, nil //nolint:nilerr // the client's mistake
	}
	op, ok := idem.FromContext(ctx)
	if !ok {
		return response{}, idem.ErrNoOperation
	}
	re, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Write(
			dynamo.Update("accounts", account{t.From}, "SET balance = balance - :n", dynamo.Args{":n": t.Amount}).If("balance >= :n"),
			dynamo.Update("accounts", account{t.To}, "SET balance = balance + :n", dynamo.Args{":n": t.Amount}).If("attribute_exists(id)"),
			dynamo.Put("entries", map[string]any{"id": op.ID(), "from": t.From, "to": t.To, "amount": t.Amount}),
		)
		return response{StatusCode: http.StatusCreated, Body: op.ID()}, nil
	})
	if errors.Is(err, idem.ErrCondition) { // too little money, or no such account
		return response{}, idem.Respond(response{StatusCode: http.StatusPaymentRequired})
	}
	return re, err
}
