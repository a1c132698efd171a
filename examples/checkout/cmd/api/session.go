package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

// app is the merchant behind the routes.
type app struct {
	db       dynamo.Getter
	sessions string // the table of sessions, by id
	payments payments
}

func newApp(db dynamo.Getter) *app {
	return &app{db: db, sessions: os.Getenv("SESSIONS_TABLE"), payments: payments{url: os.Getenv("PAYMENTS_URL")}}
}

// Session is a checkout session: an item of the table, and what assistants see of it.
type Session struct {
	ID       string `json:"id" dynamodbav:"id"`
	Status   string `json:"status" dynamodbav:"status"`
	Currency string `json:"currency" dynamodbav:"currency"`
	Items    []Item `json:"line_items" dynamodbav:"items"`
	Totals   []Sum  `json:"totals" dynamodbav:"totals"`
	Order    *Order `json:"order,omitempty" dynamodbav:"order,omitempty"`
}

// Item is an article and how many of it.
type Item struct {
	ID       string `json:"id" dynamodbav:"id"`
	Quantity int    `json:"quantity" dynamodbav:"quantity"`
}

// Sum is an amount in cents.
type Sum struct {
	Type   string `json:"type" dynamodbav:"type"`
	Amount int    `json:"amount" dynamodbav:"amount"`
}

// Order is what a completed session became. Its webhook has the same fields.
type Order struct {
	ID      string `json:"id" dynamodbav:"id"`
	Session string `json:"checkout_session_id" dynamodbav:"session"`
}

// row is a session as the table has it.
type row struct {
	Session

	Owner  string `dynamodbav:"owner"` // the caller who created it
	Charge string `dynamodbav:"charge,omitempty"`
}

// The states of a session.
const (
	ready      = "ready_for_payment"
	inProgress = "in_progress"
	completed  = "completed"
	canceled   = "canceled"
)

const price = 1200 // of any article, in cents

// fill puts the items of a request into a session. It reports whether they can be sold.
func (s *Session) fill(body string) bool {
	var in struct{ Items []Item }
	if json.Unmarshal([]byte(body), &in) != nil || len(in.Items) == 0 {
		return false
	}
	total := 0
	for _, it := range in.Items {
		if it.ID == "" || it.Quantity < 1 || it.Quantity > 100 {
			return false
		}
		total += price * it.Quantity
	}
	s.Items, s.Totals = in.Items, []Sum{{"total", total}}
	return true
}

type sessionKey struct {
	ID string `dynamodbav:"id"`
}

func (a *app) put(ev request, s Session, charge string) *dynamo.Write {
	return dynamo.Put(a.sessions, row{s, caller(ev), charge})
}

// read reads the session of the request's path, which must be the caller's own. What it read
// must still be true when tx commits. An answer in its error refuses the request.
func (a *app) read(ctx context.Context, tx *idem.Tx, ev request) (Session, error) {
	var r row
	found, err := dynamo.Get(ctx, tx, a.db, a.sessions, sessionKey{lambda.PathValue(ctx, "id")}, &r)
	if err == nil && (!found || r.Owner == "" || r.Owner != caller(ev)) {
		err = idem.Respond(refusal(http.StatusNotFound, "not_found", "There is no such session."))
	}
	return r.Session, err
}

var unauthorized = refusal(http.StatusUnauthorized, "unauthorized", "The authorizer names no caller.")

// caller is whom the authorizer has let in; "", who has no session, if it is another one
// than the template's.
func caller(ev request) string {
	if a := ev.RequestContext.Authorizer; a != nil {
		name, _ := a.Lambda["sub"].(string)
		return name
	}
	return ""
}

func answer(status int, v any) response {
	body, err := json.Marshal(v)
	if err != nil {
		return response{StatusCode: http.StatusInternalServerError}
	}
	return response{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}
}

// refusal is an error as the protocol has it.
func refusal(status int, code, message string) response {
	return answer(status, map[string]string{"type": "invalid_request", "code": code, "message": message})
}
