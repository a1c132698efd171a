// Package effects has handlers for the rule effects.
package effects

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stripe/stripe-go/v85"

	"github.com/samekey/samekey/idem"
)

type request struct{ Body, ID string }

type response = idem.Response

// Mails is an interface of the user's own, with a method of the SDK.
type Mails interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
}

// Payments is a client of a provider, as handlers have it. What it reads has names of
// things.
type Payments interface {
	Charge(ctx context.Context, amount int, key string) (string, error)
	Refund(ctx context.Context, charge string) error
	Order(ctx context.Context, id string) (Order, error)
	OrderByID(ctx context.Context, id string, fields ...string) (Order, error)
	ChargeStatus(ctx context.Context, id string) (string, error)
	Send(text string)
	Notify(ctx context.Context, why error) error
	Publish(ctx context.Context) error
	Submit(form, text string) error
	Transfer(ctx context.Context, from, to string) error
	Phase(ctx context.Context, tx *idem.Tx) (int, error)
	Mail(ctx context.Context, m *sqs.SendMessageInput) error
	SendMessageOutput(ctx context.Context, m *sqs.SendMessageOutput) error
	Create(*CreateInput) error
	Update(*UpdateParams) error
	Cancel(*stripe.Charge) error
}

type (
	CreateInput  struct{}
	UpdateParams struct{}
)

type App struct {
	pay   Payments
	mails Mails
	items *dynamodb.Client
	http  *http.Client
	db    *sql.DB
}

// Order is the result of a phase.
type Order struct{ ID string }
