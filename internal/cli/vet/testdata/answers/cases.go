// Package answers has handlers for the rule answers.
package answers

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

var errSoldOut = errors.New("sold out")

type Order struct {
	ID    string
	Stock int
}

func created(context.Context, *idem.Tx) (Order, error) { return Order{}, nil }

func charge(ctx context.Context, tx *idem.Tx) (string, error) { return tx.Key("charge"), nil }

// want +8 `answers: the answer 409 isn't stored, and a phase before it is committed: the operation goes on, so its client hears 503 and not 409. Return idem.Respond to end the operation with this answer, or decide before the first phase`

func bad(ctx context.Context, req request) (response, error) {
	order, err := idem.Atomic(ctx, "order_created", created)
	if err != nil {
		return response{}, err
	}
	if order.Stock == 0 {
		return response{StatusCode: 409, Body: "sold out"}, nil
	}
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) {
		return response{StatusCode: 201}, nil
	})
}

func good(ctx context.Context, req request) (response, error) {
	order, err := idem.Atomic(ctx, "order_created", created)
	if err != nil {
		return response{}, err
	}
	if order.Stock == 0 {
		return response{}, idem.Respond(response{StatusCode: 409, Body: "sold out"})
	}
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) {
		return response{StatusCode: 201}, nil
	})
}

func beforeThePhases(ctx context.Context, req request) (response, error) {
	if req.Body == "" {
		return response{StatusCode: http.StatusBadRequest}, nil
	}
	_, err := idem.Atomic(ctx, "order_created", created)
	if errors.Is(err, errSoldOut) { // nothing was done: the key is free
		return response{StatusCode: http.StatusConflict}, nil
	}
	switch {
	case errors.Is(err, errSoldOut):
		return response{StatusCode: http.StatusConflict}, nil
	case err != nil:
		return response{StatusCode: http.StatusPaymentRequired}, nil // it is stored
	}
	return response{StatusCode: http.StatusServiceUnavailable}, nil // no client takes it for the outcome
}

func errorOfACall(ctx context.Context) (*response, error) {
	if _, err := idem.Foreign(ctx, "charged", charge); err != nil {
		return &response{StatusCode: http.StatusConflict}, nil // want `answers: the answer 409`
	}
	return &response{StatusCode: http.StatusCreated}, nil
}

func errorOfTheSecond(ctx context.Context) (response, error) {
	_, err := idem.Atomic(ctx, "order_created", created)
	if err != nil {
		return response{}, err
	}
	_, err = idem.Atomic(ctx, "order_priced", created)
	if err != nil {
		return response{StatusCode: http.StatusUnprocessableEntity}, nil // want `answers: the answer 422`
	}
	return response{StatusCode: http.StatusCreated}, nil
}

func firstPart(ctx context.Context) (Order, error) { return idem.Atomic(ctx, "order_created", created) }

func inParts(ctx context.Context) (response, error) {
	order, err := firstPart(ctx)
	switch {
	case errors.Is(err, errSoldOut):
		return response{StatusCode: http.StatusConflict}, nil
	case order.Stock == 0:
		return response{StatusCode: http.StatusTooManyRequests}, nil // want `answers: the answer 429`
	}
	return response{StatusCode: http.StatusCreated}, err
}

func deferred(ctx context.Context) (response, error) {
	order, err := idem.Atomic(ctx, "order_created", created, idem.Deferred())
	if err == nil && order.Stock == 0 {
		return response{StatusCode: http.StatusConflict}, nil // nothing is committed yet
	}
	return response{StatusCode: http.StatusCreated}, err
}

func overHTTP(w http.ResponseWriter, r *http.Request) {
	order, err := idem.Atomic(r.Context(), "order_created", created)
	switch {
	case err != nil:
		http.Error(w, "failed", http.StatusInternalServerError)
	case order.Stock < 0:
		http.Error(w, "sold out", http.StatusConflict) // want `answers: the answer 409`
	case order.Stock == 0:
		w.WriteHeader(http.StatusForbidden) // want `answers: the answer 403`
	default:
		w.WriteHeader(http.StatusCreated)
	}
}
