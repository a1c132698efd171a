// Package safe has handlers for the rule safe.
package safe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/samekey/samekey/idem"
)

type Payments interface {
	Charge(ctx context.Context, amount int, key string) (string, error)
}

type App struct{ payments Payments }

var errDeclined = errors.New("declined")

// want +6 `safe: idem.SafeToRetry marks every error of Payments.Charge, even a timeout after which the call may have had its effect: the operation then continues as if the call was not made. Mark only errors that prove that nothing was done`

func (a *App) bad(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
		id, err := a.payments.Charge(ctx, 20, tx.Key("payments"))
		if err != nil {
			return "", idem.SafeToRetry(err)
		}
		return id, nil
	})
	return err
}

func (a *App) good(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
		id, err := a.payments.Charge(ctx, 20, tx.Key("payments"))
		if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" { // no byte was sent
			return "", idem.SafeToRetry(err)
		}
		return id, err
	})
	return err
}

func (a *App) charge(ctx context.Context, key string) (string, error) {
	return a.payments.Charge(ctx, 20, key)
}

func (a *App) wrapped(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
		id, err := a.charge(ctx, tx.Key("payments"))
		return id, idem.SafeToRetry(fmt.Errorf("charge: %w", err)) // want `safe: idem.SafeToRetry marks every error of Payments.Charge`
	})
	return err
}

// These errors are tested, or come from a call without an effect.
func (a *App) asked(ctx context.Context, order any) error {
	_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
		if _, err := json.Marshal(order); err != nil {
			return "", idem.SafeToRetry(err)
		}
		if order == nil {
			return "", idem.SafeToRetry(errors.New("no order"))
		}
		id, err := a.payments.Charge(ctx, 20, tx.Key("payments"))
		switch {
		case errors.Is(err, errDeclined):
			return "", idem.SafeToRetry(err)
		case err != nil && id == "":
			return "", idem.SafeToRetry(err)
		}
		return id, err
	})
	return err
}
