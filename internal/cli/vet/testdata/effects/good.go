package effects

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
)

func (a *App) orderWithJob(ctx context.Context, req request) (response, error) {
	order, err := idem.Atomic(ctx, "order_created", func(_ context.Context, tx *idem.Tx) (Order, error) {
		order := Order{ID: req.ID}
		tx.Write(dynamo.Put("orders", order))
		return order, nil
	})
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Stage(idem.NewJob("mail", order))
		return response{Status: 201}, nil
	})
}

// Reads run again without harm.
func (a *App) reads(ctx context.Context, req request) (response, error) {
	if _, err := a.items.GetItem(ctx, &dynamodb.GetItemInput{}); err != nil {
		return response{}, err
	}
	if _, err := a.items.Query(ctx, &dynamodb.QueryInput{}); err != nil {
		return response{}, err
	}
	if _, err := a.mails.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{}); err != nil {
		return response{}, err
	}
	if _, err := http.Get("http://127.0.0.1/" + req.ID); err != nil {
		return response{}, err
	}
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1", nil)
	if err != nil {
		return response{}, err
	}
	if _, err := a.http.Do(get); err != nil {
		return response{}, err
	}
	if _, err := a.db.QueryContext(ctx, "SELECT 1"); err != nil {
		return response{}, err
	}
	if _, err := a.pay.Order(ctx, req.ID); err != nil {
		return response{}, err
	}
	if _, err := a.pay.OrderByID(ctx, req.ID, "total", "lines"); err != nil {
		return response{}, err
	}
	if _, err := a.pay.ChargeStatus(ctx, req.ID); err != nil {
		return response{}, err
	}
	a.pay.Send("to a channel, perhaps")
	slog.Info("read")
	return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (response, error) {
		_, err := a.items.GetItem(ctx, &dynamodb.GetItemInput{})
		return response{Status: 201}, err
	})
}

// No run of this function comes to the call and to a phase.
func (a *App) route(ctx context.Context, req request) (response, error) {
	switch req.Body {
	case "order":
		return a.orderWithJob(ctx, req)
	case "forget":
		_, err := a.items.DeleteItem(ctx, &dynamodb.DeleteItemInput{})
		return response{Status: 204}, err
	}
	if req.ID == "" {
		a.mails.SendMessage(ctx, &sqs.SendMessageInput{})
		return response{Status: 404}, nil
	}
	return a.reads(ctx, req)
}

// A function without phases is none of our business.
func (a *App) plain(ctx context.Context) (response, error) {
	_, err := a.mails.SendMessage(ctx, &sqs.SendMessageInput{})
	return response{Status: 201}, err
}

// A Foreign is for calls, by whatever function.
func (a *App) foreign(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "queued", func(ctx context.Context, tx *idem.Tx) (string, error) {
		return "", a.put(ctx, tx.Key("mails"))
	})
	return err
}

func (a *App) put(ctx context.Context, key string) error {
	_, err := a.mails.SendMessage(ctx, &sqs.SendMessageInput{MessageDeduplicationId: &key})
	return err
}

// What is done when the program starts is not a handler's.
func start(ctx context.Context, a *App, handle func(func(context.Context, request) (response, error))) {
	a.items.CreateTable(ctx, &dynamodb.CreateTableInput{})
	handle(func(ctx context.Context, req request) (response, error) {
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) { return response{Status: 201}, nil })
	})
}
