// Package answers has handlers for the rule answers.
package answers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

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

// want +8 `answers: the answer 409 isn't stored, and an earlier phase is committed: the operation continues, so the client gets 503, not 409. Return idem.Respond to end the operation with this answer, or refuse before the first phase`

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
	if errors.Is(err, errSoldOut) { // nothing is done yet: the key is free
		return response{StatusCode: http.StatusConflict}, nil
	}
	switch {
	case errors.Is(err, errSoldOut):
		return response{StatusCode: http.StatusConflict}, nil
	case err != nil:
		return response{StatusCode: http.StatusPaymentRequired}, nil // the answer is stored
	}
	return response{StatusCode: http.StatusServiceUnavailable}, nil // a client doesn't take a 503 for the outcome
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

func problem(status int, text string) response { return response{StatusCode: status, Body: text} }

func soldOut() (response, error) { return response{StatusCode: http.StatusConflict}, nil }

func fail(w http.ResponseWriter, text string, status int) { http.Error(w, text, status) }

func answerTo(err error) response {
	if err != nil {
		return response{StatusCode: http.StatusConflict}
	}
	return response{StatusCode: http.StatusOK}
}

func byHelpers(ctx context.Context, w http.ResponseWriter, n int) (response, error) {
	order, err := idem.Atomic(ctx, "order_created", created)
	if err != nil {
		return problem(http.StatusConflict, "nothing was done"), nil
	}
	switch order.Stock {
	case 0:
		return problem(http.StatusConflict, "sold out"), nil // want `answers: the answer 409`
	case 1:
		return soldOut() // want `answers: the answer 409`
	case 2:
		fail(w, "no", http.StatusForbidden) // want `answers: the answer 403`
	case 3:
		fail(w, "later", http.StatusServiceUnavailable)
	case 4:
		return problem(n, "a status out of sight"), nil
	case 5:
		return answerTo(err), nil // the function has other answers, too
	}
	return problem(http.StatusCreated, ""), nil
}

type outcome struct {
	Code, Status int
	Text         string
}

func engine(store *idem.MemoryStore) *idem.Engine { return idem.New(store, idem.OneScope, limits) }

func limits(o *idem.Options) { o.MinKey = 30 }

// These are no refusals: another status, an unknown status, a status beside an error.
func noRefusals(ctx context.Context, w http.ResponseWriter, given response, how int) (any, error) {
	order, err := idem.Atomic(ctx, "order_created", created)
	switch how {
	case 1:
		return response{StatusCode: http.StatusFound}, nil
	case 2:
		return response{StatusCode: http.StatusInternalServerError}, nil
	case 3:
		return response{StatusCode: order.Stock}, nil
	case 4:
		return response{StatusCode: http.StatusConflict}, err
	case 5:
		return given, nil
	case 6:
		return outcome{Code: http.StatusConflict}, nil
	case 7:
		return map[string]int{"Status": http.StatusConflict}, nil
	case 8:
		return outcome{http.StatusConflict, http.StatusConflict, ""}, nil
	case 9:
		return struct{ Status string }{Status: "failed"}, nil
	case 10:
		fmt.Fprint(w, "code", http.StatusConflict)
		http.Error(failed())
		return both(ctx)
	}
	return outcome{Status: http.StatusBadRequest}, nil // want `answers: the answer 400`
}

func failed() (http.ResponseWriter, string, int) { return nil, "", http.StatusConflict }

func both(context.Context) (any, error) { return nil, nil }

func inLiterals(ctx context.Context, w http.ResponseWriter) {
	idem.Atomic(ctx, "order_created", created)
	run(func() { http.Error(w, "sold out", http.StatusConflict) }) // want `answers: the answer 409`
	later := func() { http.Error(w, "sold out", http.StatusConflict) }
	later()
}

func run(f func()) { f() }

// Before the answer there is no phase, a Finish, or one whose commit waits.
func nothingCommitted(ctx context.Context, how int) (response, error) {
	run(func() {})
	failed()
	if how == 1 {
		return response{StatusCode: http.StatusConflict}, nil
	}
	if how == 2 {
		res, _ := idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) { return response{StatusCode: 201}, nil })
		if res.StatusCode == 0 {
			return response{StatusCode: http.StatusConflict}, nil
		}
	}
	idem.Foreign(ctx, "charged", charge, idem.Remembers(time.Hour))
	return response{StatusCode: http.StatusConflict}, nil // want `answers: the answer 409`
}

// The tested error comes from another call.
func otherErrors(ctx context.Context) (response, error) {
	_, err := idem.Atomic(ctx, "order_created", created)
	_, other := both(ctx)
	if other != nil {
		return response{StatusCode: http.StatusConflict}, nil // want `answers: the answer 409`
	}
	if errors.Is(err, errSoldOut) {
		return response{StatusCode: http.StatusConflict}, nil
	}
	if err == nil {
		_, err = both(ctx)
	}
	_, err = idem.Atomic(ctx, "order_priced", created)
	return response{}, err
}
