package recipes

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
)

// Sale is a customer's purchase, and the job that ships it.
type Sale struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
	Charge string `json:"charge,omitempty"`
}

// Sell charges a customer now, and hands the shipment, which takes a week, to a state
// machine. The job is staged in the commit of the answer: a charged sale is shipped, and a
// declined sale isn't.
func (charge Charge) Sell(ctx context.Context, req request) (response, error) {
	var sale Sale
	if err := json.Unmarshal([]byte(req.Body), &sale); err != nil || sale.Order == "" || sale.Amount <= 0 {
		return response{StatusCode: http.StatusBadRequest}, nil //nolint:nilerr // the client's mistake
	}
	id, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
		return charge(ctx, tx.Key("payments"), sale.Amount)
	})
	if err != nil {
		return response{}, err
	}
	sale.Charge = id
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Stage(idem.NewJob("ship", sale)) // SAMEKEY_SINKS=ship=states:ARN
		return response{StatusCode: http.StatusAccepted, Body: sale.Order}, nil
	})
}

// Remind takes an order, and reminds the customer a day later. The job waits in the order's
// record until then.
func Remind(ctx context.Context, req request) (response, error) {
	var sale Sale
	if err := json.Unmarshal([]byte(req.Body), &sale); err != nil || sale.Order == "" {
		return response{StatusCode: http.StatusBadRequest}, nil //nolint:nilerr // the client's mistake
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		remind := idem.NewJob("remind", sale)
		remind.At = time.Now().Add(24 * time.Hour)
		tx.Write(dynamo.Put("orders", map[string]any{"id": sale.Order, "amount": sale.Amount}))
		tx.Stage(remind)
		return response{StatusCode: http.StatusCreated, Body: sale.Order}, nil
	})
}
