package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

// Order is what a client orders.
type Order struct {
	ID       string `json:"id"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
}

type response = events.APIGatewayV2HTTPResponse

// createOrder draws the order's ID in one phase, and stages its mail with the answer.
func createOrder(ctx context.Context, req events.APIGatewayV2HTTPRequest) (response, error) {
	var in Order
	if err := json.Unmarshal([]byte(req.Body), &in); err != nil || in.Item == "" || in.Quantity < 1 {
		return answer(http.StatusBadRequest, map[string]string{"error": `send {"item": "…", "quantity": 1}`})
	}
	order, err := idem.Atomic(ctx, "order_created", func(context.Context, *idem.Tx) (Order, error) {
		return Order{ID: rand.Text(), Item: in.Item, Quantity: in.Quantity}, nil
	})
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Stage(idem.NewJob("mail", order))
		return answer(http.StatusCreated, order)
	})
}

func answer(status int, v any) (response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return response{}, err
	}
	return response{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}, nil
}
