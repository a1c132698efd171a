// Package payments keeps a record of each payment from the events that Stripe
// sends. It has no code for signatures, duplicates and retries.
package payments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
)

// Payment is an item of the table. Events come in any order, so each kind of event
// writes separate attributes, and a refund may create the item.
type Payment struct {
	ID       string `dynamodbav:"id"` // of Stripe's payment intent
	Amount   int64  `dynamodbav:"amount"`
	Currency string `dynamodbav:"currency"`
	PaidAt   int64  `dynamodbav:"paid_at"`  // epoch seconds
	Refunded int64  `dynamodbav:"refunded"` // all refunds so far
}

// Receipt is the job that is staged for a payment.
type Receipt struct {
	Payment  string `json:"payment"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Recorder writes to a table with the partition key "id".
type Recorder struct{ Table string }

// event holds the used parts of Stripe's events.
type event struct {
	Type    string `json:"type"`
	Created int64  `json:"created"`
	Data    struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
}

// Handle records payments and refunds, and ignores other types of events.
func (r Recorder) Handle(ctx context.Context, ev webhook.Event) error {
	var e event
	if err := json.Unmarshal(ev.Body, &e); err != nil {
		return fmt.Errorf("event %s: %w", ev.ID, err)
	}
	switch e.Type {
	case "payment_intent.succeeded":
		return r.paid(ctx, e)
	case "charge.refunded":
		return r.refunded(ctx, e)
	}
	return nil
}

// paid records a payment and stages its receipt, in the commit that records the
// event.
func (r Recorder) paid(ctx context.Context, e event) error {
	var pi struct {
		ID       string `json:"id"`
		Amount   int64  `json:"amount_received"`
		Currency string `json:"currency"`
	}
	if err := json.Unmarshal(e.Data.Object, &pi); err != nil || pi.ID == "" {
		return fmt.Errorf("%s: %w", e.Type, errors.Join(errNoIntent, err))
	}
	_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
		tx.Write(dynamo.Update(r.Table, key{pi.ID}, "SET amount = :amount, currency = :currency, paid_at = :at",
			dynamo.Args{":amount": pi.Amount, ":currency": pi.Currency, ":at": e.Created}))
		tx.Stage(idem.NewJob("send_receipt", Receipt{Payment: pi.ID, Amount: pi.Amount, Currency: pi.Currency}))
		return nil, nil
	})
	return err
}

// refunded records the total of all refunds. An event of an earlier refund that comes later
// has a smaller total and changes nothing.
func (r Recorder) refunded(ctx context.Context, e event) error {
	var charge struct {
		PaymentIntent string `json:"payment_intent"`
		Refunded      int64  `json:"amount_refunded"`
	}
	if err := json.Unmarshal(e.Data.Object, &charge); err != nil || charge.PaymentIntent == "" {
		return fmt.Errorf("%s: %w", e.Type, errors.Join(errNoIntent, err))
	}
	_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
		tx.Write(dynamo.Update(r.Table, key{charge.PaymentIntent}, "SET refunded = :refunded", dynamo.Args{":refunded": charge.Refunded}).
			If("attribute_not_exists(refunded) OR refunded < :refunded"))
		return nil, nil
	})
	if errors.Is(err, idem.ErrCondition) {
		return idem.Respond(nil) // handled: the table already has a larger total
	}
	return err
}

// errNoIntent makes Stripe send the event again, until a version that
// understands it is deployed.
var errNoIntent = errors.New("no payment intent")

// key is a payment's key.
type key struct {
	ID string `dynamodbav:"id"`
}
