package idem

import (
	"encoding/json"
	"net/http"
)

// DefaultStored is the default of [Options.Stored]. DefaultStored accepts successes and
// definitive answers, such as a declined card (402). DefaultStored rejects three kinds of
// answers:
//
//   - answers after which the client may correct or repeat the request because nothing
//     was done (400, 403, 408, 409, 422, 423, 425, 428, 429);
//   - answers that ask for the same request with other credentials or headers, or over
//     another connection (401, 406, 407, 415, 421, 426, and a 4xx with a challenge);
//   - unexpected errors (5xx).
//
// A challenge is an answer that asks the client to repeat the request with a proof, such
// as a payment. DefaultStored recognises a challenge by the header WWW-Authenticate,
// Proxy-Authenticate or Payment-Required, or, in a 402, by the body that version 1 of
// x402 prescribes. DefaultStored reads no other body. So if your handler reports failures
// in the body of a 200, set a policy that reads it, such as one of package lambda. The
// presets don't store challenges either.
func DefaultStored(r Response) bool {
	switch r.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusUnprocessableEntity,
		http.StatusLocked, http.StatusTooEarly, http.StatusPreconditionRequired, http.StatusTooManyRequests:
		return false
	}
	return r.Status < http.StatusInternalServerError && !asksAgain(&r)
}

// storedBy returns a policy for [Options.Stored]. An answer below 500 is stored, unless
// its status is in the list except, or the answer asks for the same request in another
// way ([asksAgain]). An answer from 500 on is stored if serverErrors is true.
func storedBy(serverErrors bool, except ...int) func(Response) bool {
	not := make(map[int]bool, len(except))
	for _, status := range except {
		not[status] = true
	}
	return func(r Response) bool {
		if r.Status >= http.StatusInternalServerError {
			return serverErrors
		}
		return !not[r.Status] && !asksAgain(&r)
	}
}

// asksAgain reports whether an answer asks for the same request in another way: with a
// credential, a proof of payment or another encoding. Such an answer must not be
// stored, because the client's next request has the same fingerprint and would get the
// stored answer.
func asksAgain(r *Response) bool {
	switch r.Status {
	case http.StatusUnauthorized, http.StatusNotAcceptable, http.StatusProxyAuthRequired, http.StatusUnsupportedMediaType,
		http.StatusMisdirectedRequest, http.StatusUpgradeRequired:
		return true
	}
	if r.Status/100 != 4 {
		return false
	}
	for _, name := range []string{"Www-Authenticate", "Proxy-Authenticate", "Payment-Required"} {
		if len(r.Header[name]) > 0 {
			return true
		}
	}
	var x402 struct {
		Version json.Number `json:"x402Version"` // marks an answer of x402 version 1, which has no Payment-Required header
	}
	return r.Status == http.StatusPaymentRequired && json.Unmarshal(r.Body, &x402) == nil && x402.Version != ""
}
