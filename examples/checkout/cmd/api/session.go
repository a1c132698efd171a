package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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

// Session is the part of a checkout session that assistants see.
type Session struct {
	ID       string `json:"id" dynamodbav:"id"`
	Status   string `json:"status" dynamodbav:"status"`
	Currency string `json:"currency" dynamodbav:"currency"`
	Items    []Item `json:"line_items" dynamodbav:"items"`
	Totals   []Sum  `json:"totals" dynamodbav:"totals"`
	Order    *Order `json:"order,omitempty" dynamodbav:"order,omitempty"`
}

// Item is an article and a quantity.
type Item struct {
	ID       string `json:"id" dynamodbav:"id"`
	Quantity int    `json:"quantity" dynamodbav:"quantity"`
}

// Sum is an amount in cents.
type Sum struct {
	Type   string `json:"type" dynamodbav:"type"`
	Amount int    `json:"amount" dynamodbav:"amount"`
}

// Order is the order of a completed session. Its webhook has the same fields.
type Order struct {
	ID      string `json:"id" dynamodbav:"id"`
	Session string `json:"checkout_session_id" dynamodbav:"session"`
}

// row is a session as the table has it.
type row struct {
	Session

	Owner      string `dynamodbav:"owner"`                // the caller who created it
	Completion string `dynamodbav:"completion,omitempty"` // the operation that is completing it
	Charge     string `dynamodbav:"charge,omitempty"`
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

func (a *app) put(r row) *dynamo.Write { return dynamo.Put(a.sessions, r) }

// look reads the session of the request's path, outside of a phase. It returns the zero row
// if there is no session.
func (a *app) look(ctx context.Context) (r row, err error) {
	key, err := attributevalue.MarshalMap(sessionKey{lambda.PathValue(ctx, "id")})
	if err != nil {
		return r, err
	}
	out, err := a.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &a.sessions, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return r, err
	}
	err = attributevalue.UnmarshalMap(out.Item, &r)
	return r, err
}

// read reads the session of the request's path. The session must be ready and belong to the
// caller. tx commits only if the session is unchanged. An error is an answer that is kept:
// the session will never exist, or it has ended. For an ended session, over is the status
// of the answer.
func (a *app) read(ctx context.Context, tx *idem.Tx, caller string, over int) (Session, error) {
	var r row
	_, err := dynamo.Get(ctx, tx, a.db, a.sessions, sessionKey{lambda.PathValue(ctx, "id")}, &r)
	switch {
	case err != nil:
	case r.Owner != caller:
		err = idem.Respond(noSession)
	case r.Status == inProgress: // begun after unlessBusy has looked: a retry comes to unlessBusy again
		err = errors.New("another request has begun to complete the session")
	case r.Status != ready:
		err = idem.Respond(notReady(over, r.Status))
	}
	return r.Session, err
}

// handler is a handler that also gets the caller's name.
type handler func(ctx context.Context, ev request, caller string) (response, error)

// identified passes the caller's name from the authorizer to h. An authorizer other than the
// template's may set no name.
func identified(h handler) func(context.Context, request) (response, error) {
	return func(ctx context.Context, ev request) (response, error) {
		caller := ""
		if a := ev.RequestContext.Authorizer; a != nil {
			caller, _ = a.Lambda["sub"].(string)
		}
		if caller == "" {
			return refusal(http.StatusUnauthorized, "unauthorized", "The authorizer names no caller."), nil
		}
		return h(ctx, ev, caller)
	}
}

// unlessBusy refuses a request while another request completes the session. The refusal is
// not kept, since nothing was done: if that payment is declined, the same request can
// succeed.
func (a *app) unlessBusy(h handler) handler {
	return func(ctx context.Context, ev request, caller string) (response, error) {
		r, err := a.look(ctx)
		op, _ := idem.FromContext(ctx)
		switch {
		case err != nil:
			return response{}, err
		case r.Owner == caller && r.Status == inProgress && r.Completion != op.ID():
			return notReady(http.StatusConflict, r.Status), nil
		}
		return h(ctx, ev, caller)
	}
}

func answer(status int, v any) response {
	body, err := json.Marshal(v)
	if err != nil {
		return response{StatusCode: http.StatusInternalServerError}
	}
	return response{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}
}

// refusal returns an error in the protocol's form.
func refusal(status int, code, message string) response {
	return answer(status, map[string]string{"type": "invalid_request", "code": code, "message": message})
}

var (
	noItems   = refusal(http.StatusBadRequest, "invalid", `Send {"items": [{"id": "…", "quantity": 1}]}.`)
	noSession = refusal(http.StatusNotFound, "not_found", "There is no such session.")
)

func notReady(status int, state string) response {
	return refusal(status, "invalid", "The session is "+state+".")
}
