package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
)

// Order is what a client orders. The ID is new for every run of the handler.
type Order struct {
	ID       string `json:"id"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
}

// createOrder is an ordinary handler: the wrapper in main.go makes it safe to retry.
func createOrder(_ context.Context, req events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	var order Order
	if err := json.Unmarshal([]byte(req.Body), &order); err != nil || order.Item == "" || order.Quantity < 1 {
		return answer(http.StatusBadRequest, map[string]string{"error": `send {"item": "…", "quantity": 1}`})
	}
	order.ID = rand.Text()
	return answer(http.StatusCreated, order)
}

func answer(status int, v any) (events.APIGatewayV2HTTPResponse, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	return events.APIGatewayV2HTTPResponse{
		StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body),
	}, nil
}
