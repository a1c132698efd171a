package guides_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/failtest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

// order is an item of the table orders.
type order struct {
	ID     string `json:"id" dynamodbav:"id"`
	Item   string `json:"item" dynamodbav:"item"`
	Amount int    `json:"amount" dynamodbav:"amount"`
}

type orderKey struct {
	ID string `dynamodbav:"id"`
}

// mail is what a job of the kind send_mail has to know.
type mail struct {
	Order string `json:"order"`
	Item  string `json:"item"`
}

var errDeclined = errors.New("declined")

// payments is the provider, as the shop sees it.
type payments interface {
	Charge(ctx context.Context, o order, key string) (id string, err error)
}

type shop struct{ payments payments }

// plain is the handler without phases.
func (s shop) plain(ctx context.Context, ev request) (response, error) {
	o := order{ID: rand.Text(), Item: ev.Body, Amount: 2000}
	if _, err := s.payments.Charge(ctx, o, ""); err != nil {
		return response{}, err
	}
	return response{StatusCode: 201, Body: o.ID}, nil
}

// buy is the handler with phases.
func (s shop) buy(ctx context.Context, ev request) (response, error) {
	if ev.Body == "" { // no effect: code between phases may run again
		return response{StatusCode: 422, Body: "which item?"}, nil
	}
	o, err := idem.Atomic(ctx, "ordered", func(_ context.Context, tx *idem.Tx) (order, error) {
		o := order{ID: rand.Text(), Item: ev.Body, Amount: 2000}
		tx.Write(dynamo.Put("orders", o))
		return o, nil
	})
	if err != nil {
		return response{}, err
	}
	charge, err := idem.Foreign(ctx, "paid", func(ctx context.Context, tx *idem.Tx) (string, error) {
		id, err := s.payments.Charge(ctx, o, tx.Key("payments"))
		if errors.Is(err, errDeclined) {
			return "", idem.Respond(response{StatusCode: 402, Body: "declined"})
		}
		return id, err
	})
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Write(dynamo.Update("orders", orderKey{o.ID}, "SET charge = :c", dynamo.Args{":c": charge}))
		tx.Stage(idem.NewJob("send_mail", mail{Order: o.ID, Item: o.Item}))
		return response{StatusCode: 201, Body: o.ID}, nil
	})
}

// bank is the provider in tests.
type bank struct{ world *idemtest.World }

func (b bank) Charge(ctx context.Context, o order, key string) (string, error) {
	e, err := b.world.Call(ctx, "charge", key, o)
	if refused, ok := errors.AsType[*idemtest.Refusal](err); ok && refused.Status == 402 {
		err = errDeclined
	}
	return e.ID, err
}

// post is an order as the gateway hands it on.
func post(item string) request {
	ev := request{RawPath: "/orders", Body: item, Headers: map[string]string{"idempotency-key": "7f0c"}}
	ev.RequestContext.HTTP.Method = "POST"
	ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"sub": "jane"}}
	return ev
}

// Wherever the process dies, there is one charge, one order and one mail.
func TestBuyCrashes(t *testing.T) {
	t.Parallel()
	lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Handler[request, response] {
		return lambda.Wrap(w.Engine(), lambda.HTTPAPI, shop{bank{w}}.buy, func(o *lambda.HandlerOptions) { o.Name = "orders" })
	}, post("pizza"), func(t testing.TB, w *idemtest.World, answer response) {
		t.Helper()
		if n := len(w.Provider.Effects()); answer.StatusCode != 201 || n != 1 {
			t.Errorf("%d charges, status %d", n, answer.StatusCode)
		}
	})
}

// The guide shows this failure of the plain handler.
func TestPlainCrashes(t *testing.T) {
	t.Parallel()
	const shown = `
		crash after call 2 (charge), then the client's retry: effects of charge: 2
	`
	failures := failtest.Run(func(t testing.TB) {
		t.Helper()
		lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Handler[request, response] {
			return lambda.Wrap(w.Engine(), lambda.HTTPAPI, shop{bank{w}}.plain, func(o *lambda.HandlerOptions) { o.Name = "orders" })
		}, post("pizza"), nil)
	})
	if len(failures) == 0 || !strings.HasPrefix(failures[0], strings.TrimSpace(shown)) {
		t.Errorf("the plain handler fails by %q", failures)
	}
}

// A declined card is an answer: a retry gets it again, without a second charge.
func TestBuyDeclined(t *testing.T) {
	t.Parallel()
	lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Handler[request, response] {
		return lambda.Wrap(w.Engine(), lambda.HTTPAPI, shop{bank{w}}.buy, func(o *lambda.HandlerOptions) { o.Name = "orders" })
	}, post("pizza"), func(t testing.TB, w *idemtest.World, answer response) {
		t.Helper()
		if n := len(w.Provider.Effects()); answer.StatusCode != 402 || n != 0 {
			t.Errorf("%d charges, status %d", n, answer.StatusCode)
		}
	}, func(o *idemtest.CrashOptions) {
		o.Begin = func(w *idemtest.World) { w.Provider.Next(idemtest.Fate{Refuse: 402}, idemtest.Fate{Refuse: 402}) }
	})
}

// Input that is refused before any phase doesn't use up its key.
func TestBuyCorrected(t *testing.T) {
	t.Parallel()
	store := new(idem.MemoryStore)
	h := lambda.Wrap(idem.New(store, func(o *idem.Options) { o.Logger = slog.New(slog.DiscardHandler) }), lambda.HTTPAPI, shop{free{}}.buy)
	if re, err := h.Handle(t.Context(), post("")); err != nil || re.StatusCode != 422 {
		t.Errorf("%+v, %v", re, err)
	}
	if re, err := h.Handle(t.Context(), post("pizza")); err != nil || re.StatusCode != 201 {
		t.Errorf("%+v, %v", re, err)
	}
}

type free struct{}

func (free) Charge(context.Context, order, string) (string, error) { return "ch_1", nil }

// The phases, their writes and the job, by name.
func TestBuyCommits(t *testing.T) {
	t.Parallel()
	store := idemtest.Watch(new(idem.MemoryStore))
	h := lambda.Wrap(idem.New(store), lambda.HTTPAPI, shop{free{}}.buy)
	if _, err := h.Handle(t.Context(), post("pizza")); err != nil {
		t.Fatal(err)
	}
	ordered := idemtest.Committed[order](t, store, "ordered")
	sent := idemtest.Staged[mail](t, store, "send_mail")
	if sent.Order != ordered.Result.ID || sent.Item != "pizza" || len(ordered.Writes) != 1 {
		t.Errorf("%+v, %+v", ordered, sent)
	}
}
