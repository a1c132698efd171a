// Package answersstored has an engine with its own rule for stored answers.
package answersstored

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

func engine(store *idem.MemoryStore) *idem.Engine { return idem.New(store, idem.Stripe, idem.OneScope) }

func other(store *idem.MemoryStore) *idem.Engine { return idem.New(store) }

func handle(ctx context.Context, req events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	_, err := idem.Atomic(ctx, "order_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: 403}, nil
}
