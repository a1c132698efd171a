// Command night is a program of the night of trouble. By NIGHT_ROLE it is the ready worker, the
// function that mails, or the API. Their clock is the file NIGHT_CLOCK, which has the
// milliseconds since 1970.
//
// More settings: IDEM_TABLE, PROVIDER_URL; NIGHT_FORMER, the former name of the only
// function that the worker completes by.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/readyworker"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/metrics"
)

func main() {
	switch os.Getenv("NIGHT_ROLE") {
	case "worker":
		readyworker.Main(nil, atNight)
	case "mails":
		lambda.Start(lambda.WrapEach(engine("mails", metrics.New(io.Discard, "shop")), lambda.SQS, mail))
	default:
		counts := metrics.New(os.Stdout, "shop")
		lambda.Start(counts.Wrap(lambda.Wrap(engine("orders", counts), lambda.HTTPAPI, order, func(o *lambda.HandlerOptions) {
			o.Name, o.Accepts = "order", []store.HandlerID{{Function: "orders", Name: "order"}}
		})))
	}
}

// now is the time in the test.
func now() time.Time {
	text, err := os.ReadFile(os.Getenv("NIGHT_CLOCK")) //nolint:gosec // the test that started it says where
	ms, wrong := strconv.ParseInt(string(text), 10, 64)
	if err := errors.Join(err, wrong); err != nil {
		log.Fatal(err)
	}
	return time.UnixMilli(ms)
}

// atNight gives the worker the test's clock, and its function its former name, as
// docs/operate/background.md has it.
func atNight(o *worker.Options) {
	sweep := o.Sweep
	o.Sweep = func(o *stream.SweepOptions) {
		sweep(o)
		o.Now = now
	}
	o.Completer = func(o *stream.CompleterOptions) { o.Now = now }
	o.Tickets = func(o *completer.Options) { o.Now = now }
	if former := os.Getenv("NIGHT_FORMER"); former != "" {
		all, ok := o.Functions.(completer.Functions)
		if !ok {
			log.Fatalf("the functions are %T", o.Functions)
		}
		all[former] = all[os.Getenv("SAMEKEY_FUNCTIONS")]
	}
}

func engine(namespace string, counts *metrics.Metrics) *idem.Engine {
	client, err1 := dynamo.NewClient()
	records, err2 := dynamo.New(client, os.Getenv("IDEM_TABLE"), func(o *dynamo.Options) { o.Hooks = counts.StoreHooks() })
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	return idem.New(records, func(o *idem.Options) {
		idem.OneScope(o)
		o.CallerFromOp = true
		o.Namespace, o.MinKey, o.Now, o.Resumable, o.Hooks = namespace, 1, now, namespace == "orders", counts.Hooks()
		o.Logger = slog.New(slog.DiscardHandler)
	})
}

// charge is the provider's answer.
type charge struct {
	ID string `json:"id"`
}

type response = events.APIGatewayV2HTTPResponse

// order charges, and has a mail sent. The provider remembers a key for three hours.
func order(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (response, error) {
	made, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (made charge, err error) {
		err = post(ctx, "/charges", tx.Key("provider"), ev.Body, &made)
		return made, err
	}, idem.Remembers(3*time.Hour))
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Stage(idem.NewJob("mail", ev.Body))
		return response{StatusCode: http.StatusCreated, Body: made.ID}, nil
	})
}

// mail mails, once for each job: its id is the provider's key.
func mail(ctx context.Context, m events.SQSMessage) error {
	job := m.MessageAttributes[lambda.KeyAttribute].StringValue
	if job == nil {
		return errors.New("a message without a job's id")
	}
	var sent charge
	return post(ctx, "/mails", *job, m.Body, &sent) //samekey:ignore effects the job's id is the provider's key
}

func post(ctx context.Context, path, key, body string, out *charge) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("PROVIDER_URL")+path, strings.NewReader(body)) //nolint:gosec // the test that started it says where
	if err != nil {
		return err
	}
	req.GetBody = nil // net/http doesn't repeat it then
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // as above
	if err != nil {
		return err
	}
	err = json.NewDecoder(resp.Body).Decode(out)
	if err = cmp.Or(err, resp.Body.Close()); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the provider answers %s", resp.Status)
	}
	return err
}
