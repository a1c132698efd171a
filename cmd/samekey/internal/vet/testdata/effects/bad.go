package effects

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/smtp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stripe/stripe-go/v85"

	"github.com/samekey/samekey/idem"
)

// want +9 `effects: Mails.SendMessage runs outside the phases`

func (a *App) order(ctx context.Context, req request) (response, error) {
	order, err := idem.Atomic(ctx, "order_created", func(_ context.Context, tx *idem.Tx) (Order, error) {
		return Order{ID: req.ID}, nil
	})
	if err != nil {
		return response{}, err
	}
	if _, err := a.mails.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &order.ID}); err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) {
		return response{Status: 201}, nil
	})
}

func (a *App) beforeAndAfter(ctx context.Context, req request) (response, error) {
	a.items.PutItem(ctx, &dynamodb.PutItemInput{}) // want `effects: dynamodb.Client.PutItem runs outside the phases, so every retry runs it again: call it in an idem.Foreign with tx.Key, write to DynamoDB by tx.Write in an idem.Atomic, or stage a job`
	order, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (Order, error) { return Order{}, nil })
	if err != nil {
		a.db.ExecContext(ctx, "DELETE FROM orders WHERE id = ?", req.ID) // want `effects: sql.DB.ExecContext`
		return response{}, err
	}
	http.Post("http://127.0.0.1/"+order.ID, "text/plain", strings.NewReader("")) // want `effects: http.Post runs`
	return response{Status: 201}, nil
}

func (a *App) byRequest(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1", nil)
	if err != nil {
		return err
	}
	if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
		return err
	}
	_, err = a.http.Do(req) // want `effects: http.Client.Do \(POST\) runs`
	return err
}

// A function of the package is followed, and so is a literal that runs where it
// stands.
func (a *App) byHelper(ctx context.Context, req request) error {
	a.announce(ctx)                                  // want `effects: App.announce calls Mails.SendMessage runs outside`
	retried(func() error { return a.announce(ctx) }) // want `effects: App.announce calls`
	defer func() {
		a.announce(ctx) // want `effects: App.announce calls`
	}()
	_, err := a.reserve(ctx)
	return err
}

func (a *App) announce(ctx context.Context) error { return a.tell(ctx) }

func (a *App) tell(ctx context.Context) error {
	_, err := a.mails.SendMessage(ctx, &sqs.SendMessageInput{})
	return err
}

func retried(f func() error) { f() }

// App.reserve has phases, and so has every function that calls it.
func (a *App) reserve(ctx context.Context) (int, error) {
	return idem.Atomic(ctx, "reserved", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
}

// An Atomic may run many times.
func (a *App) inAtomic(ctx context.Context) (response, error) {
	_, err := idem.Atomic(ctx, "order", func(ctx context.Context, tx *idem.Tx) (Order, error) {
		_, err := a.items.PutItem(ctx, &dynamodb.PutItemInput{}) // want `effects: dynamodb.Client.PutItem runs in an idem.Atomic, which may run many times and doesn't commit this effect: call it in an idem.Foreign with tx.Key, write to DynamoDB by tx.Write, or stage a job`
		return Order{}, err
	})
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, a.finish)
}

func (a *App) finish(ctx context.Context, tx *idem.Tx) (response, error) {
	return response{Status: 201}, a.announce(ctx) // want `effects: App.announce calls Mails.SendMessage runs in an idem.Finish`
}

// step is a wrapper of phases.
func step[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (T, error) {
	return idem.Atomic(ctx, "step/"+name, func(ctx context.Context, _ *idem.Tx) (T, error) { return fn(ctx) })
}

func (a *App) byWrapper(ctx context.Context) error {
	_, err := step(ctx, "one", func(ctx context.Context) (Order, error) {
		return Order{}, a.announce(ctx) // want `effects: App.announce calls Mails.SendMessage runs in an idem.Atomic`
	})
	a.announce(ctx) // want `effects: App.announce calls Mails.SendMessage runs outside`
	return err
}

func charge(ctx context.Context, sc *stripe.Client) error {
	_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
	sc.V1Charges.Create(ctx, &stripe.ChargeCreateParams{}) // want `effects: stripe.v1ChargeService.Create runs outside`
	return err
}

// A charge behind an interface is an effect.
func (a *App) byInterface(ctx context.Context, req request) (response, error) {
	_, err := idem.Atomic(ctx, "order", func(ctx context.Context, tx *idem.Tx) (string, error) {
		return a.pay.Charge(ctx, 20, tx.Key("payments")) // want `effects: Payments.Charge runs in an idem.Atomic, which may run many times`
	})
	if err != nil {
		return response{}, a.pay.Refund(ctx, req.ID) // want `effects: Payments.Refund runs outside the phases`
	}
	if _, err := a.pay.Charge(ctx, 20, req.ID); err != nil { // want `effects: Payments.Charge runs outside the phases`
		return response{}, err
	}
	return response{Status: 201}, a.again(ctx) // want `effects: App.again calls Payments.Charge runs outside`
}

func (a *App) again(ctx context.Context) error {
	_, err := a.pay.Charge(ctx, 20, "2")
	return err
}

func one(context.Context, *idem.Tx) (int, error) { return 1, nil }

func (a *App) more(ctx context.Context, sc *stripe.Client, own interface {
	Charge(ctx context.Context, amount int) error
}) {
	idem.Atomic(ctx, "one", one)
	smtp.SendMail("127.0.0.1:25", nil, "", nil, nil)                          // want `effects: smtp.SendMail runs`
	a.db.Exec("DELETE FROM orders")                                           // want `effects: sql.DB.Exec runs`
	sc.V1Charges.Update(ctx, "1", &stripe.ChargeUpdateParams{})               // want `effects: stripe.v1ChargeService.Update runs`
	sc.V1PaymentIntents.Cancel(ctx, "1", &stripe.PaymentIntentCancelParams{}) // want `effects: stripe.v1PaymentIntentService.Cancel runs`
	a.pay.Notify(ctx, errors.ErrUnsupported)                                  // want `effects: Payments.Notify runs`
	a.pay.Transfer(ctx, "1", "2")                                             // want `effects: Payments.Transfer runs`
	own.Charge(ctx, 1)                                                        // want `effects: Charge runs`
	twice(ctx, a, 1)                                                          // want `effects: twice calls Mails.SendMessage runs`
}

func twice[T any](ctx context.Context, a *App, _ T) {
	a.mails.SendMessage(ctx, &sqs.SendMessageInput{})
}

func (a *App) byMethods(ctx context.Context) {
	idem.Atomic(ctx, "one", one)
	patch, _ := http.NewRequest(http.MethodPatch, "http://127.0.0.1", nil)
	put, _ := http.NewRequest(http.MethodPut, "http://127.0.0.1", nil)
	del, _ := http.NewRequest(http.MethodDelete, "http://127.0.0.1", nil)
	http.PostForm("http://127.0.0.1", nil)   // want `effects: http.PostForm runs`
	a.http.Post("http://127.0.0.1", "", nil) // want `effects: http.Client.Post runs`
	a.http.Do(put)                           // want `effects: http.Client.Do \(PUT\) runs`
	a.http.Do(del)                           // want `effects: http.Client.Do \(DELETE\) runs`
	a.http.Do(patch.WithContext(ctx))        // want `effects: http.Client.Do \(PATCH\) runs`
	http.DefaultTransport.RoundTrip(patch)   // want `effects: http.RoundTripper.RoundTrip \(PATCH\) runs`
}

// A Foreign needs a key for a call whose repeat has a second effect.
func (a *App) inForeign(ctx context.Context, sc *stripe.Client) {
	idem.Foreign(ctx, "mailed", func(context.Context, *idem.Tx) (int, error) {
		return 1, smtp.SendMail("127.0.0.1:25", nil, "", nil, nil) // want `keys: smtp.SendMail is called`
	})
	idem.Foreign(ctx, "canceled", func(context.Context, *idem.Tx) (int, error) {
		_, err := sc.V1PaymentIntents.Cancel(ctx, "1", &stripe.PaymentIntentCancelParams{}) // want `keys: stripe.v1PaymentIntentService.Cancel is called`
		return 1, err
	})
	idem.Foreign(ctx, "patched", func(context.Context, *idem.Tx) (int, error) {
		patch, _ := http.NewRequest(http.MethodPatch, "http://127.0.0.1", nil)
		_, err := a.http.Do(patch) // want `keys: http.Client.Do \(PATCH\) is called`
		return 1, err
	})
	idem.Foreign(ctx, "others", func(context.Context, *idem.Tx) (int, error) {
		takes(Tx{})
		takes(idem.Response{})
		return 1, smtp.SendMail("127.0.0.1:25", nil, "", nil, nil) // want `keys: smtp.SendMail is called`
	}, NotIdempotent())
	idem.Foreign(ctx, "same", func(context.Context, *idem.Tx) (int, error) {
		put, _ := http.NewRequest(http.MethodPut, "http://127.0.0.1", nil)
		a.http.Do(put)
		a.db.Exec("DELETE FROM orders")
		sc.V1Charges.Update(ctx, "1", &stripe.ChargeUpdateParams{})
		_, err := sc.V1Customers.Delete(ctx, "1", &stripe.CustomerDeleteParams{})
		return 1, err
	})
}

// The function of a phase is a literal, a variable that holds a literal, or a known function.
func (a *App) functions(ctx context.Context, given func(context.Context, *idem.Tx) (int, error)) {
	idem.Atomic(ctx, "braced", (func(context.Context, *idem.Tx) (int, error) {
		return 1, a.tell(ctx) // want `effects: App.tell calls Mails.SendMessage runs in an idem.Atomic`
	}))
	held := func(context.Context, *idem.Tx) (int, error) {
		return 1, a.tell(ctx) // want `effects: App.tell calls Mails.SendMessage runs in an idem.Atomic`
	}
	idem.Atomic(ctx, "held", held)
	alias := one
	idem.Atomic(ctx, "an alias", alias)
	changed := held
	changed = given
	idem.Atomic(ctx, "changed", changed)
	idem.Atomic(ctx, "given", given)
	idem.Atomic(ctx, "an interface's", a.pay.Phase)
	handed(func(context.Context, *idem.Tx) (int, error) {
		return 1, a.tell(ctx) // want `effects: App.tell calls Mails.SendMessage runs in an idem.Atomic`
	}, ctx)
	called(func() error {
		return a.tell(ctx) // want `effects: App.tell calls Mails.SendMessage runs in an idem.Atomic`
	}, ctx)
}

func outOfSight() {
	handed(parts())
	idem.Atomic(threeParts())
	idem.Finish(parts2())
}

func handed(fn func(context.Context, *idem.Tx) (int, error), ctx context.Context) {
	idem.Atomic(ctx, "handed", fn)
}

func called(fn func() error, ctx context.Context) {
	idem.Atomic(ctx, "called", func(context.Context, *idem.Tx) (int, error) {
		err := fn()
		slog.Info("called")
		return 1, err
	})
}

func parts() (func(context.Context, *idem.Tx) (int, error), context.Context) { return one, nil }

func parts2() (context.Context, func(context.Context, *idem.Tx) (int, error)) { return nil, one }

func threeParts() (context.Context, string, func(context.Context, *idem.Tx) (int, error)) {
	return nil, "one", one
}

// These Tx and NotIdempotent are not idem's.
type Tx struct{}

func NotIdempotent() idem.PhaseOption { return idem.Remembers(0) }

func takes(any) {}

// pages and page call each other. Both have the effect of pages.
func (a *App) byRecursion(ctx context.Context) error {
	if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
		return err
	}
	a.pages(ctx, 3) // want `effects: App.pages calls http.Post runs`
	a.page(ctx, 3)  // want `effects: App.page calls http.Post runs`
	return nil
}

func (a *App) pages(ctx context.Context, n int) {
	if n > 0 {
		a.page(ctx, n)
	}
	http.Post("http://127.0.0.1/", "text/plain", strings.NewReader(""))
}

func (a *App) page(ctx context.Context, n int) { a.pages(ctx, n-1) }
