package main

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/shop/provider"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// cancel cancels a paid order: it gives back the stock and the payment.
func (a *app) cancel(ctx context.Context, _ request) (response, error) {
	o, err := idem.Atomic(ctx, "cancelled", func(ctx context.Context, tx *idem.Tx) (Order, error) {
		var o Order
		found, err := dynamo.Get(ctx, tx, a.db, a.orders, orderKey{lambda.PathValue(ctx, "id")}, &o)
		switch {
		case err != nil:
			return o, err
		case !found:
			return o, idem.Respond(problem(http.StatusNotFound, "no such order"))
		case o.State != paid:
			return o, idem.Respond(problem(http.StatusConflict, "the order is "+o.State))
		}
		tx.Write(a.move(o.ID, paid, cancelled, o.Charge), a.takeStock(o.SKU, -o.Quantity))
		o.State = cancelled
		return o, nil
	})
	if err != nil {
		return response{}, err
	}
	_, err = idem.Foreign(ctx, "refunded", func(ctx context.Context, tx *idem.Tx) (string, error) {
		return a.payments.Post(ctx, "/refunds", tx.Key("payments"), map[string]any{"charge": o.Charge})
	})
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Stage(idem.NewJob("send_mail", provider.Mail{To: o.Mail, Text: "We have refunded order " + o.ID}))
		return answer(http.StatusOK, o), nil
	})
}

// show shows an order. It changes nothing, and needs no key.
func (a *app) show(ctx context.Context, _ request) (response, error) {
	key, err := attributevalue.MarshalMap(orderKey{lambda.PathValue(ctx, "id")})
	if err != nil {
		return response{}, err
	}
	out, err := a.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &a.orders, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return response{}, err
	}
	var o Order
	if err := attributevalue.UnmarshalMap(out.Item, &o); err != nil {
		return response{}, err
	}
	if o.ID == "" {
		return problem(http.StatusNotFound, "no such order"), nil
	}
	return answer(http.StatusOK, o), nil
}
