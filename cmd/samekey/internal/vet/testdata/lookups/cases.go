// Package lookups has handlers for the rule lookups.
package lookups

import (
	"context"

	"github.com/samekey/samekey/idem"
)

type Bank interface {
	Pay(ctx context.Context, amount int, reference string) (string, error)
	Find(ctx context.Context, reference string) (string, bool, error)
	Refund(ctx context.Context, reference string) error
}

type App struct{ bank Bank }

func (a *App) pay(ctx context.Context, tx *idem.Tx) (string, error) {
	return a.bank.Pay(ctx, 20, tx.Key("bank"))
}

func (a *App) find(ctx context.Context, c idem.Call) (string, idem.Found, error) {
	id, there, err := a.bank.Find(ctx, c.Key)
	if !there {
		return "", idem.NotMade, err
	}
	return id, idem.Made, err
}

func (a *App) good(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "paid", a.pay, idem.NotIdempotent(), idem.Sends("bank", 20), idem.LookUp(a.find, 0))
	return err
}

func (a *App) waits(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "paid", a.pay, idem.NotIdempotent()) // want `hint: if the outcome of this call is unknown, the operation waits for a person`
	return err
}

func (a *App) unseen(ctx context.Context, opts ...idem.PhaseOption) error {
	_, err := idem.Foreign(ctx, "paid", a.pay, opts...)
	return err
}

func (a *App) unnamed(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "paid", a.pay, idem.LookUp(a.find, 0)) // want `lookups: the phase has a look-up, but no idem.Sends`
	return err
}

func (a *App) another(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "paid", a.pay, idem.Sends("bank", 20),
		idem.LookUp(func(context.Context, idem.Call) (int, idem.Found, error) { return 0, idem.NotMade, nil }, 0)) // want `lookups: the look-up returns a int, but the phase returns a string`
	return err
}

func (a *App) writes(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "paid", a.pay, idem.Sends("bank", 20),
		idem.LookUp(func(ctx context.Context, c idem.Call) (string, idem.Found, error) {
			return "", idem.NotMade, a.bank.Refund(ctx, c.Key) // want `lookups: Bank.Refund is called in a look-up`
		}, 0))
	return err
}

func (a *App) writesElsewhere(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "paid", a.pay, idem.Sends("bank", 20), idem.LookUp(a.mends, 0))
	return err
}

func (a *App) mends(ctx context.Context, c idem.Call) (string, idem.Found, error) {
	return "", idem.NotMade, a.bank.Refund(ctx, c.Key) // want `lookups: Bank.Refund is called in a look-up`
}
