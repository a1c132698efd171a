package queues_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/lambda"
)

// order is the body of a message under load.
type order struct {
	ID    string `json:"id"`
	Group int    `json:"group"`
	Seq   int    `json:"seq"` // within its group
	Sick  bool   `json:"sick,omitempty"`
}

// What becomes of one try of an order, as the world says when it begins.
const (
	works        = "works"
	failsBefore  = "fails before its charge"
	failsAfter   = "fails after its charge"
	hangsBefore  = "hangs before its charge"
	hangsWithin  = "hangs when its charge is made"
	ignores      = "ignores its context before its charge"
	ignoresAfter = "ignores its context when its charge is made"
)

// recordTimeout is far more than an order needs, and far less than the function has.
const recordTimeout = 2 * time.Second

// orders is the function: it charges once for each order. All that it does to the
// world it does over HTTP, outside of its process.
func orders() {
	w := world{url: os.Getenv("WORLD")}
	queue := lambda.SQS.WithScope("orders").WithKey(func(m events.SQSMessage) (string, error) {
		o, err := orderOf(m)
		return o.ID, err
	})
	queue.RecordTimeout = recordTimeout
	again := visibility()
	var late sync.Map // groups of which a message stays hidden, and so its successors, too
	queue.Failed = func(ctx context.Context, m events.SQSMessage, err error) {
		w.report(ctx, "/failed", m, err.Error())
		if errors.Is(err, lambda.ErrOverdue) { // it has its key still
			late.Store(m.Attributes["MessageGroupId"], true)
			return
		}
		again(ctx, m)
	}
	queue.NotRun = func(ctx context.Context, m events.SQSMessage, err error) {
		why := "held back"
		if errors.Is(err, idem.ErrNoTime) {
			why = "no time"
		}
		w.report(ctx, "/untried", m, why)
		if _, hidden := late.Load(m.Attributes["MessageGroupId"]); !hidden {
			again(ctx, m)
		}
	}
	engine := mustEngine(func(o *idem.Options) { o.Retention, o.LeaseMargin = 30*24*time.Hour, defaults.MinLeaseMargin })
	lambda.Start(lambda.WrapEach(engine, queue, w.charge))
}

func orderOf(m events.SQSMessage) (o order, err error) {
	err = json.Unmarshal([]byte(m.Body), &o)
	return o, err
}

// charge does an order, as far as the world lets it.
func (w world) charge(ctx context.Context, m events.SQSMessage) error {
	fate, err := w.tell(ctx, "/begin", m, "")
	if err != nil {
		return err
	}
	if err := endure(ctx, fate, hangsBefore, ignores); err != nil {
		return err
	}
	if fate == failsBefore {
		return errors.New(fate)
	}
	_, err = idem.Foreign(ctx, "charge", func(ctx context.Context, tx *idem.Tx) (string, error) {
		if _, err := w.tell(ctx, "/charge", m, tx.Key("world")); err != nil {
			return "", err
		}
		return fate, endure(ctx, fate, hangsWithin, ignoresAfter)
	})
	if err == nil && fate == failsAfter {
		return errors.New(fate)
	}
	return err
}

// endure hangs, if that is what becomes of the try. What ignores its context tells the
// world if it wakes up at last: by then it could do anything, and nothing would fence it.
func endure(ctx context.Context, fate, hangs, ignores string) error {
	switch fate {
	case hangs:
		<-ctx.Done()
		return context.Cause(ctx)
	case ignores:
		time.Sleep(2 * timeout) //nolint:forbidigo // a handler that ignores its context
		_, _ = http.Post(os.Getenv("WORLD")+"/woke", "", nil)
	}
	return nil
}

// world is everything outside of the function.
type world struct{ url string }

func (w world) tell(ctx context.Context, path string, m events.SQSMessage, detail string) (string, error) {
	q := url.Values{"message": {m.MessageId}, "receive": {m.Attributes["ApproximateReceiveCount"]}, "order": {m.Body}, "detail": {detail}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path+"?"+q.Encode(), nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the world says %d: %s", resp.StatusCode, body)
	}
	return string(body), err
}

// report tells the world something that can be done without.
func (w world) report(ctx context.Context, path string, m events.SQSMessage, detail string) {
	if _, err := w.tell(ctx, path, m, detail); err != nil {
		fmt.Fprintln(os.Stderr, "not reported:", err)
	}
}

// visibility brings a message back at once instead of after its visibility timeout.
// It has been counted all the same.
func visibility() func(context.Context, events.SQSMessage) {
	client := sqs.New(sqs.Options{
		Region: os.Getenv("AWS_REGION"), BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_SQS")),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
	return func(ctx context.Context, m events.SQSMessage) {
		if m.EventSourceARN != os.Getenv("QUEUE_ARN") {
			return
		}
		if _, err := client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
			QueueUrl: aws.String(os.Getenv("QUEUE_URL")), ReceiptHandle: aws.String(m.ReceiptHandle),
		}); err != nil {
			fmt.Fprintln(os.Stderr, "not visible again:", err)
		}
	}
}
