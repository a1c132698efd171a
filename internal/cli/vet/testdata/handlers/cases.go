// Package handlers has handlers for the lock file, which is beside it.
package handlers

import (
	"context"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem"
)

type response = idem.Response

type Payments interface {
	Charge(ctx context.Context, amount int, key string) (Charge, error)
}

type (
	Charge struct {
		ID string `json:"id"`
	}
	base struct {
		At   time.Time
		Name string
	}
	Order struct {
		base
		ID     string `json:"id,omitempty"`
		Total  float64
		Count  int `json:",string"`
		Lines  []Line
		By     map[string]*Line
		Data   []byte
		Any    any
		Parent *Order
	}
	Line struct{ Price int }
	App  struct{ payments Payments }
)

const ordered = "ordered"

func one(context.Context, *idem.Tx) (int, error) { return 1, nil }

// book is a handler, and pay is a part of it.
func (a *App) book(ctx context.Context, lines []Line) (response, error) {
	_, err := idem.Atomic(ctx, ordered, func(context.Context, *idem.Tx) (o Order, err error) {
		return o, nil
	})
	if err != nil {
		return response{}, err
	}
	if err := a.pay(ctx); err != nil {
		return response{}, err
	}
	for i := range lines {
		if err := a.reserve(ctx, fmt.Sprintf("line/%d", i)); err != nil {
			return response{}, err
		}
	}
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) { return response{Status: 201}, nil })
}

func (a *App) pay(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (Charge, error) {
		if _, err := a.payments.Charge(ctx, 3, tx.Key("payments", "tip")); err != nil {
			return Charge{}, err
		}
		return a.charge(ctx, tx)
	}, idem.Remembers(48*time.Hour))
	return err
}

func (a *App) charge(ctx context.Context, tx *idem.Tx) (Charge, error) {
	return a.payments.Charge(ctx, 20, tx.Key("payments"))
}

// reserve is a wrapper: the phase is its caller's.
func (a *App) reserve(ctx context.Context, name string) error {
	_, err := idem.Atomic(ctx, name, one)
	return err
}

// refund is a handler of functions that have phases.
func (a *App) refund(ctx context.Context) error {
	if err := a.look(ctx); err != nil {
		return err
	}
	return a.pay(ctx)
}

func (a *App) look(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "looked_up", one, idem.NotIdempotent())
	return err
}

// route is no handler: its branches are.
func (a *App) route(ctx context.Context, path string) (response, error) {
	if path == "/refunds" {
		return response{}, a.refund(ctx)
	}
	return a.book(ctx, nil)
}

// start has two handlers, in the order of one another.
func start(handle func(string, func(context.Context) error)) {
	handle("POST /a", func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "a", one)
		return err
	})
	handle("POST /b", func(ctx context.Context) error {
		version, err := idem.Atomic(ctx, "version", func(context.Context, *idem.Tx) (int, error) { return 2, nil })
		if err != nil {
			return err
		}
		if version >= 2 {
			_, err = idem.Atomic(ctx, "new", one)
			return err
		}
		_, err = idem.Atomic(ctx, "old", one)
		return err
	})
}
