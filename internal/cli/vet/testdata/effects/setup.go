// Package effects has handlers for the rule effects.
package effects

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/idem"
)

type request struct{ Body, ID string }

type response = idem.Response

// Mails is an interface of the user's own, with a method of the SDK.
type Mails interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
}

type App struct {
	mails Mails
	items *dynamodb.Client
	http  *http.Client
	db    *sql.DB
}

// Order is the result of a phase.
type Order struct{ ID string }
