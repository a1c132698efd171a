// Package keys has handlers for the rule keys.
package keys

import (
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stripe/stripe-go/v85"

	"github.com/samekey/samekey/idem"
)

type Payments interface {
	Charge(ctx context.Context, amount int, key string) (string, error)
	Lookup(ctx context.Context, id string) (string, error)
}

type App struct {
	payments Payments
	queue    *sqs.Client
	items    *dynamodb.Client
	stripe   *stripe.Client
}

// want +4 `keys: Payments.Charge is called in an idem.Foreign without tx.Key: a retry can't tell whether the call was made, and makes the call again. Send tx.Key\("service"\) as the call's idempotency key, or say idem.NotIdempotent\(\)`

func (a *App) bad(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, _ *idem.Tx) (string, error) {
		return a.payments.Charge(ctx, 20, "order-1")
	})
	return err
}

func (a *App) good(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
		return a.payments.Charge(ctx, 20, tx.Key("payments"))
	})
	return err
}

func (a *App) alsoBad(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "queued", func(ctx context.Context, _ *idem.Tx) (bool, error) {
		_, err := a.queue.SendMessage(ctx, &sqs.SendMessageInput{}) // want `keys: sqs.Client.SendMessage is called`
		return true, err
	})
	if err != nil {
		return err
	}
	_, err = idem.Foreign(ctx, "posted", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		_, err := http.Post("http://127.0.0.1", "text/plain", strings.NewReader("")) // want `keys: http.Post is called`
		return tx.Repeats(), err
	})
	if err != nil {
		return err
	}
	_, err = idem.Foreign(ctx, "charged", a.charged)
	if err != nil {
		return err
	}
	_, err = idem.Foreign(ctx, "paid", func(ctx context.Context, _ *idem.Tx) (string, error) {
		return a.pay(ctx) // want `keys: Payments.Charge \(by App.pay\) is called`
	}, idem.Remembers(0))
	return err
}

func (a *App) charged(ctx context.Context, _ *idem.Tx) (string, error) {
	charge, err := a.stripe.V1Charges.Create(ctx, &stripe.ChargeCreateParams{}) // want `keys: stripe.v1ChargeService.Create is called`
	if err != nil {
		return "", err
	}
	return charge.ID, nil
}

func (a *App) pay(ctx context.Context) (string, error) { return a.payments.Charge(ctx, 20, "") }

// A system without keys is declared as one. A lookup, and a write that is the same
// when it is made again, need no key. Whoever has the Tx can ask for a key.
func (a *App) alsoGood(ctx context.Context, opts []idem.PhaseOption) error {
	_, err := idem.Foreign(ctx, "without", func(ctx context.Context, _ *idem.Tx) (string, error) {
		return a.pay(ctx)
	}, idem.NotIdempotent())
	if err != nil {
		return err
	}
	_, err = idem.Foreign(ctx, "looked_up", func(ctx context.Context, _ *idem.Tx) (string, error) {
		if _, err := a.items.PutItem(ctx, &dynamodb.PutItemInput{}); err != nil {
			return "", err
		}
		return a.payments.Lookup(ctx, "1")
	})
	if err != nil {
		return err
	}
	_, err = idem.Foreign(ctx, "handed_on", func(ctx context.Context, tx *idem.Tx) (string, error) { return a.with(ctx, tx) })
	if err != nil {
		return err
	}
	_, err = idem.Foreign(ctx, "by_id", func(ctx context.Context, _ *idem.Tx) (string, error) {
		op, _ := idem.FromContext(ctx)
		return a.payments.Charge(ctx, 20, op.ID())
	})
	if err != nil {
		return err
	}
	_, err = idem.Foreign(ctx, "unseen_options", func(ctx context.Context, _ *idem.Tx) (string, error) {
		return a.payments.Charge(ctx, 20, "")
	}, opts...)
	return err
}

func (a *App) with(ctx context.Context, tx *idem.Tx) (string, error) {
	return a.payments.Charge(ctx, 20, tx.Key("payments"))
}

// The function asks for the key, or passes its Tx on.
func (a *App) more(ctx context.Context, made func() idem.PhaseOption) {
	given := idem.Remembers(0)
	idem.Foreign(ctx, "first", func(ctx context.Context, tx *idem.Tx) (string, error) {
		key := tx.Key("payments")
		a.recursive(ctx)
		return a.payments.Charge(ctx, 20, key)
	}, given, made())
	idem.Foreign(ctx, "in a field", func(ctx context.Context, tx *idem.Tx) (string, error) {
		c, _ := caller{a: a, tx: tx}, struct{}{}
		return a.payments.Charge(ctx, 20, c.key())
	})
	idem.Foreign(ctx, "in a literal", func(ctx context.Context, tx *idem.Tx) (string, error) {
		c, _ := caller{a, tx}, struct{ n int }{1}
		return a.payments.Charge(ctx, 20, c.key())
	})
	idem.Foreign(ctx, "handed on", func(ctx context.Context, tx *idem.Tx) (string, error) {
		a.with(ctx, tx)
		return a.payments.Charge(ctx, 20, "")
	})
	idem.Foreign(ctx, "without effects", func(ctx context.Context, _ *idem.Tx) (string, error) {
		a.recursive(ctx)
		return "", nil
	})
}

type caller struct {
	a  *App
	tx *idem.Tx
}

func (c caller) key() string { return c.tx.Key("payments") }

func (a *App) recursive(ctx context.Context) { a.recursive(ctx) }
