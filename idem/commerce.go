package idem

import (
	"errors"
	"net/http"
)

// Answers in the error formats of the commerce protocols ACP and UCP.

// commerceCodes maps our errors to the codes of the protocols.
var commerceCodes = []struct {
	err  error
	code string
}{
	{ErrKeyMissing, "idempotency_key_required"},
	{ErrMismatch, "idempotency_conflict"},
}

// commerceError returns the code and the message of a problem. If the body can't be
// compared, the message says why.
func commerceError(p Problem) (code, message string) {
	code = p.Code
	for _, c := range commerceCodes {
		if errors.Is(p.Err, c.err) {
			code = c.code
		}
	}
	for _, why := range []error{errNotCanonical, errNotUTF8, errTooLong, errTooDeep, errTwice, errCase, errSurrogate} {
		if errors.Is(p.Err, why) {
			return code, "The body " + why.Error() + ". " + p.Detail
		}
	}
	return code, p.Title + ". " + p.Detail
}

// acpJSON returns the answer for p in the error format of ACP: one JSON object without
// nested objects.
func acpJSON(p Problem) Response {
	body := struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}{Type: "invalid_request"}
	switch {
	case p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests:
		body.Type = "service_unavailable"
	case p.Status >= http.StatusInternalServerError:
		body.Type = "processing_error"
	}
	body.Code, body.Message = commerceError(p)
	return problemResponse(p, "application/json", body)
}

func ucpJSON(p Problem) Response {
	if p.Status == http.StatusUnprocessableEntity {
		p.Status = http.StatusConflict
	}
	var body struct {
		Code    string `json:"code"`
		Content string `json:"content"`
	}
	body.Code, body.Content = commerceError(p)
	return problemResponse(p, "application/json", body)
}
