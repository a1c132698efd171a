package recipes

import (
	"context"
	"encoding/json"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
)

// Shipment is the job that a payment's event stages.
type Shipment struct {
	Order string `json:"order"`
}

// OnPayment turns the event of a payment into a job. The commit that records the event also
// stages the job: each event makes one job, however often the event is delivered.
func OnPayment(ctx context.Context, ev webhook.Event) error {
	var payment struct {
		Order string `json:"order"`
	}
	if err := json.Unmarshal(ev.Body, &payment); err != nil {
		return err
	}
	_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
		tx.Stage(idem.NewJob("ship", Shipment{payment.Order}))
		return nil, nil
	})
	return err
}
