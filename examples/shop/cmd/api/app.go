package main

import (
	"encoding/json"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/shop/provider"
	"github.com/samekey/samekey/idem"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

// app is the application behind the routes.
type app struct {
	db       dynamo.Getter
	payments provider.Client
	orders   string // the table of orders, by id
	stock    string // the table of articles, by sku
}

func newApp(db dynamo.Getter) *app {
	return &app{
		db: db, payments: provider.Client{URL: os.Getenv("PAYMENTS_URL")},
		orders: os.Getenv("ORDERS_TABLE"), stock: os.Getenv("STOCK_TABLE"),
	}
}

// Order is an item of the table of orders. Its JSON is the client's view.
type Order struct {
	ID       string `json:"id" dynamodbav:"id"`
	SKU      string `json:"sku" dynamodbav:"sku"`
	Quantity int    `json:"quantity" dynamodbav:"quantity"`
	Amount   int    `json:"amount" dynamodbav:"amount"` // in cents
	Mail     string `json:"mail" dynamodbav:"mail"`
	State    string `json:"state" dynamodbav:"state"`
	Charge   string `json:"charge,omitempty" dynamodbav:"charge,omitempty"`
}

// The states of an order.
const (
	reserved  = "reserved"
	paid      = "paid"
	declined  = "declined"
	cancelled = "cancelled"
)

type orderKey struct {
	ID string `dynamodbav:"id"`
}

type stockKey struct {
	SKU string `dynamodbav:"sku"`
}

// takeStock takes n articles, or gives them back if n is negative.
func (a *app) takeStock(sku string, n int) *dynamo.Write {
	return dynamo.Update(a.stock, stockKey{sku}, "SET pieces = pieces - :n", dynamo.Args{":n": n}).
		If("pieces >= :n", dynamo.Args{":n": n})
}

// move moves an order from one state to another.
func (a *app) move(id, from, to, charge string) *dynamo.Write {
	return dynamo.Update(a.orders, orderKey{id}, "SET #state = :to, charge = :charge",
		dynamo.Args{"#state": "state", ":to": to, ":charge": charge}).If("#state = :from", dynamo.Args{":from": from})
}

func answer(status int, v any) response {
	body, err := json.Marshal(v)
	if err != nil {
		return response{StatusCode: http.StatusInternalServerError}
	}
	return response{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}
}

func problem(status int, text string) response {
	return answer(status, map[string]string{"error": text})
}

// guests sets one scope for all callers: nobody verifies the callers, keys are random, and
// no handler needs the caller.
func guests(o *idem.Options) {
	idem.OneScope(o)
	o.CallerFromOp = true
}
