package world

import (
	"crypto/rand"
	"net/http"
	"time"
)

// charge is a payment that was taken. GET lists the exported fields.
type charge struct {
	ID       string `json:"id"`
	Key      string `json:"key"`
	Customer string `json:"customer"`
	Amount   int    `json:"amount"`
	Calls    int    `json:"calls"`

	request chargeRequest // the request that made the charge
	made    time.Time
}

// chargeRequest is the body of a request for a charge. Amount is in the
// smallest unit of the currency.
type chargeRequest struct {
	Customer    string `json:"customer"`
	Amount      int    `json:"amount"`
	Currency    string `json:"currency"`
	Description string `json:"description"`
}

func (w *World) postCharge(rw http.ResponseWriter, r *http.Request) {
	var req chargeRequest
	if !decode(rw, r, &req) {
		return
	}
	if req.Customer == "" || req.Amount <= 0 {
		refuse(rw, http.StatusBadRequest, "invalid_request_error", "", "customer and an amount above 0 are required")
		return
	}
	made, how := w.charge(r.Header.Get("Idempotency-Key"), req)
	how.hold(r.Context())
	switch {
	case how.kind == Hang:
		<-r.Context().Done()
	case how.kind == Error:
		refuse(rw, http.StatusServiceUnavailable, "api_error", "", "the provider is down")
	case how.kind == ChargeThenDrop:
		drop(rw)
	case made == nil:
		refuse(rw, http.StatusPaymentRequired, "card_error", "card_declined", "Your card was declined.")
	case made.request != req:
		refuse(rw, http.StatusBadRequest, "idempotency_error", "", "Keys for idempotent requests can only be used with the same parameters they were first used with.")
	default:
		answer(rw, http.StatusOK, struct {
			ID       string `json:"id"`
			Customer string `json:"customer"`
			Amount   int    `json:"amount"`
			Currency string `json:"currency"`
		}{made.ID, made.Customer, made.Amount, made.request.Currency})
	}
}

// getCharges lists all charges or, as a look-up, the charges made with a key. It also lists
// charges that are older than Memory.
func (w *World) getCharges(rw http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	list(rw, &w.mu, &w.charges, func(c *charge) bool { return key == "" || c.Key == key })
}

// drop cuts the connection in the middle of an answer. If no byte had been sent, net/http
// itself would repeat a request with a key.
func drop(rw http.ResponseWriter) {
	rw.Header().Set("Content-Length", "100")
	_, _ = rw.Write([]byte("{"))
	_ = http.NewResponseController(rw).Flush()
	panic(http.ErrAbortHandler) // net/http's way to cut a connection
}

// charge takes the money, once for each remembered key. It returns nil for a declined card, and
// an unspecified charge if the provider is down.
func (w *World) charge(key string, req chargeRequest) (*charge, behaviour) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how := w.mode.charge.take()
	if how.kind == Error || how.kind == Hang {
		return nil, how
	}
	for _, c := range w.charges {
		if key != "" && c.Key == key && (w.Memory == 0 || time.Since(c.made) < w.Memory) {
			c.Calls++
			return c, how
		}
	}
	if how.kind == Decline {
		return nil, how
	}
	c := &charge{ID: "ch_" + rand.Text(), Key: key, Customer: req.Customer, Amount: req.Amount, Calls: 1, request: req, made: time.Now()}
	w.charges = append(w.charges, c)
	return c, how
}
