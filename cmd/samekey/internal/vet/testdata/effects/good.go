package effects

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/smtp"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stripe/stripe-go/v85"

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

// No run of this function makes the call and runs a phase.
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

// The rule ignores a function without phases.
func (a *App) plain(ctx context.Context) (response, error) {
	a.pay.Refund(ctx, "1")
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

// Calls at the program's start belong to no handler.
func start(ctx context.Context, a *App, handle func(func(context.Context, request) (response, error))) {
	a.items.CreateTable(ctx, &dynamodb.CreateTableInput{})
	handle(func(ctx context.Context, req request) (response, error) {
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) { return response{Status: 201}, nil })
	})
}

// Other functions have such names or parameters, too.
func (a *App) others(ctx context.Context, sc *stripe.Client, cw *cloudwatch.Client) error {
	_, err := idem.Atomic(ctx, "one", one)
	if err != nil {
		_ = err.Error()
	}
	smtp.PlainAuth("", "", "", "")
	sc.V1Charges.Retrieve(ctx, "1", &stripe.ChargeRetrieveParams{})
	cw.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{})
	a.pay.Publish(ctx)
	a.pay.Submit("form", "text")
	a.pay.Mail(ctx, &sqs.SendMessageInput{})
	a.pay.SendMessageOutput(ctx, &sqs.SendMessageOutput{})
	a.pay.Create(&CreateInput{})
	a.pay.Update(&UpdateParams{})
	a.pay.Cancel(&stripe.Charge{})
	return a.Refund(ctx, "1")
}

func (a *App) Refund(context.Context, string) error { return nil }

// The methods of these requests are unknown.
func (a *App) requests(ctx context.Context, given *http.Request, makes func() *http.Request) {
	idem.Atomic(ctx, "one", one)
	a.http.Do(given)
	a.http.Do(makes())
	a.http.Do(request1("POST"))
	other := given
	a.http.Do(other)
	changed, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1", nil)
	changed, _ = http.NewRequest(http.MethodGet, "http://127.0.0.1", nil)
	a.http.Do(changed)
	get, _ := http.NewRequestWithContext(requestParts())
	a.http.Do(get)
}

func request1(method string) *http.Request { return nil }

func requestParts() (context.Context, string, string, io.Reader) { return nil, "POST", "", nil }

// A run that ends here reaches no phase.
func (a *App) ends(ctx context.Context, how int) {
	switch how {
	case 1:
		a.pay.Refund(ctx, "1")
		panic("1")
	case 2:
		a.pay.Refund(ctx, "1")
		os.Exit(1)
	case 3:
		a.pay.Refund(ctx, "1")
		log.Fatal("1")
	case 4:
		a.pay.Refund(ctx, "1")
		log.Fatalf("1")
	case 5:
		a.pay.Refund(ctx, "1")
		log.Fatalln("1")
	}
	idem.Atomic(ctx, "one", one)
}

// The wrapper derives the key.
func keyed(ctx context.Context, fn func(ctx context.Context, key string) (string, error)) (string, error) {
	return idem.Foreign(ctx, "keyed", func(ctx context.Context, tx *idem.Tx) (string, error) { return fn(ctx, tx.Key("payments")) })
}

func (a *App) byKeyed(ctx context.Context) (string, error) {
	return keyed(ctx, func(ctx context.Context, key string) (string, error) { return a.pay.Charge(ctx, 20, key) })
}

// Two functions that call each other come to an end; what a literal does when it is
// called is not done here.
func (a *App) ping(ctx context.Context, n int) { a.pong(ctx, n) }

func (a *App) pong(ctx context.Context, n int) { a.ping(ctx, n-1) }

func (a *App) later(ctx context.Context) func() {
	idem.Atomic(ctx, "one", one)
	a.ping(ctx, 1)
	a.byRequest(ctx) // the called function has phases, and is judged separately
	idem.Atomic(ctx, "two", func(ctx context.Context, tx *idem.Tx) (int, error) {
		a.ping(ctx, 1)
		return one(ctx, tx)
	})
	return func() { a.announce(ctx) }
}
