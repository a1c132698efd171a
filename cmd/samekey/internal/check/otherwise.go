package check

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// examination.mismatch sends the first key with another body.
func (e *examination) mismatch(ctx context.Context) error {
	c := e.keyed(e.key("first"))
	c.body = e.template.OtherBody
	a, err := e.send(ctx, c)
	switch {
	case err != nil:
		return err
	case a.replays(e.first):
		e.breaks("mismatch-replayed", "the request with the other body got the first answer, "+was(a))
	case a.ok():
		e.breaks("mismatch-ran", "the request with the other body got a new answer, "+was(a))
	case a.refused():
		e.blame(a, "idempotency_conflict")
		for _, contract := range Contracts() {
			if a.status != mismatchStatus(contract) {
				e.breaks("mismatch-status", fmt.Sprintf("refused with %d", a.status), contract)
			}
		}
		if len(e.first.body) > 8 && bytes.Contains(a.body, e.first.body) {
			e.breaks("mismatch-leak", fmt.Sprintf("the refusal (%d) contains the first answer", a.status))
		}
	default:
		e.breaks("mismatch-status", strconv.Itoa(a.status))
	}
	return nil
}

// mismatchStatus returns the status that a contract demands if a request has a known
// key but another body.
func mismatchStatus(contract string) int {
	switch contract {
	case Stripe:
		return http.StatusBadRequest
	case UCP:
		return http.StatusConflict
	}
	return http.StatusUnprocessableEntity
}

// examination.path sends the first request to another path.
func (e *examination) path(ctx context.Context) error {
	c := e.keyed(e.key("first"))
	c.path = e.template.OtherPath
	a, err := e.send(ctx, c)
	switch {
	case err != nil:
		return err
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return unseen(fmt.Sprintf("%s answers %d: give an --other-path that accepts this request", e.template.OtherPath, a.status))
	case a.replays(e.first):
		e.breaks("path-replayed", "the request to the other path got the first path's answer, "+was(a))
	case a.ok():
		e.breaks("path-ran", was(a))
	}
	return nil
}

// examination.method sends the first request with another method.
func (e *examination) method(ctx context.Context) error {
	c := e.keyed(e.key("first"))
	c.method = e.template.OtherMethod
	a, err := e.send(ctx, c)
	if err == nil && a.replays(e.first) {
		e.breaks("method-replayed", "the other method got the answer to "+e.template.Method+", "+was(a))
	}
	return err
}

// examination.caller sends the first request with other credentials.
func (e *examination) caller(ctx context.Context) error {
	c := e.keyed(e.key("first"))
	c.header = e.template.OtherCaller
	a, err := e.send(ctx, c)
	switch {
	case err != nil:
		return err
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return unseen(fmt.Sprintf("the API answers %d to the other caller: give credentials that the API accepts for this request", a.status))
	case a.replays(e.first):
		e.breaks("caller-replayed", "the other caller got the first caller's answer, "+was(a))
	}
	return nil
}

// examination.refusal sends a request whose body is refused, and then the corrected
// request with the same key.
func (e *examination) refusal(ctx context.Context) error {
	c := e.keyed(e.key("refusal"))
	c.body = e.template.RefusedBody
	refused, err := e.send(ctx, c)
	if err != nil {
		return err
	}
	if !refused.refused() {
		return unseen(fmt.Sprintf("the API answers %d to --refused-body: give a body that the API refuses with a 4xx", refused.status))
	}
	contracts := freed(refused.status)
	if len(contracts) == 0 {
		return unseen(fmt.Sprintf("the API refuses --refused-body with %d, but no contract frees the key after this status", refused.status))
	}
	corrected, err := e.send(ctx, e.keyed(e.key("refusal")))
	if err == nil && !corrected.ok() {
		e.breaks("refusal-burns", fmt.Sprintf("the invalid input got %d, and the corrected request got %d", refused.status, corrected.status), contracts...)
	}
	return err
}

// freed returns the contracts that free the key after an answer with this status.
// Stripe's documentation says that a key is freed after invalid parameters, rate limits
// and conflicts.
func freed(status int) (contracts []string) {
	switch status {
	case 400, 401, 406, 407, 409, 415, 421, 426, 429:
		return []string{Default, Stripe}
	case 403, 408, 422, 423, 425, 428:
		return []string{Default}
	}
	return nil
}
