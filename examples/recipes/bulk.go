package recipes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/samekey/samekey/idem"
)

// Payment is an element of a list. The client chooses the payment's key, and uses it in
// each list with the payment.
type Payment struct {
	Key    string `json:"key"`
	Amount int    `json:"amount"`
}

// Answer is the answer to one element.
type Answer struct {
	Key    string          `json:"key"`
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// Bulk pays lists.
type Bulk struct {
	Engine *idem.Engine
	Pay    func(ctx context.Context, p Payment) (idem.Response, error)
}

// PayAll makes each element an operation: each is done once and has its own answer. The
// list has no key: a client sends the unfinished elements in another list.
func (b Bulk) PayAll(ctx context.Context, caller string, list []Payment) ([]Answer, error) {
	answers := make([]Answer, len(list))
	for i, p := range list {
		body, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		one := idem.Request{Scope: caller, Key: p.Key, Method: http.MethodPost, Path: "/payments", Route: "POST /payments", Body: body}
		re, err := b.Engine.Do(ctx, one, func(ctx context.Context) (idem.Response, error) { return b.Pay(ctx, p) })
		answers[i] = Answer{p.Key, statusOf(re.Status, err), re.Body}
	}
	return answers, nil
}

// statusOf returns an element's status. A 503 asks the client to send the element
// again, with the same key.
func statusOf(status int, err error) int {
	switch {
	case err == nil:
		return status
	case errors.Is(err, idem.ErrMismatch):
		return http.StatusUnprocessableEntity
	case errors.Is(err, idem.ErrKeyMissing), errors.Is(err, idem.ErrKeyInvalid):
		return http.StatusBadRequest
	case errors.Is(err, idem.ErrInFlight):
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}
