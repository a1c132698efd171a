package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// The messages of a queue: each is done once, however often it is delivered, and
// only what has failed comes again. The event source mapping must have
// ReportBatchItemFailures.
func ExampleWrapEach() {
	bankIsDown := true
	pay := func(_ context.Context, m events.SQSMessage) error {
		if m.MessageId == "2" && bankIsDown {
			return errors.New("bank is down")
		}
		fmt.Println("paid", m.Body)
		return nil
	}
	queue := lambda.SQS
	queue.Concurrency = 1 // one after the other; by default ten at once
	queue.Failed = func(_ context.Context, m events.SQSMessage, err error) { fmt.Println("failed:", m.MessageId, err) }
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.Retention = 30 * 24 * time.Hour // the queue keeps a message for up to 14 days, its dead-letter queue for as long
	})
	h := lambda.WrapEach(engine, queue, pay)

	message := func(id, body string) events.SQSMessage {
		return events.SQSMessage{
			MessageId: id, Body: body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:payments",
		}
	}
	ev := events.SQSEvent{Records: []events.SQSMessage{message("1", "rent"), message("2", "wages"), message("3", "taxes")}}
	for range 2 { // the second time as if none of the messages had been deleted
		re, err := h.Handle(context.Background(), ev)
		fmt.Println("reported:", re.BatchItemFailures, err)
		bankIsDown = false
	}
	// Output:
	// paid rent
	// failed: 2 bank is down
	// paid taxes
	// reported: [{2}] <nil>
	// paid wages
	// reported: [] <nil>
}

// Messages that say themselves what they ask for: one order is one operation,
// whichever producer sends it and however often.
func ExampleBatch_WithKey() {
	orderID := func(m events.SQSMessage) (string, error) {
		var order struct{ ID string }
		err := json.Unmarshal([]byte(m.Body), &order)
		return order.ID, err
	}
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Retention = 30 * 24 * time.Hour })
	h := lambda.WrapEach(engine, lambda.SQS.WithKey(orderID), func(_ context.Context, m events.SQSMessage) error {
		fmt.Println("shipped", m.Body)
		return nil
	})

	var ev events.SQSEvent
	for i, body := range []string{`{"ID":"order-1"}`, `{"ID":"order-1"}`, `{"ID":"order-2"}`} {
		ev.Records = append(ev.Records, events.SQSMessage{
			MessageId: fmt.Sprint(i), Body: body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders",
		})
	}
	re, err := h.Handle(context.Background(), ev)
	fmt.Println(re.BatchItemFailures, err)
	// Unordered output:
	// shipped {"ID":"order-1"}
	// shipped {"ID":"order-2"}
	// [] <nil>
}

// A charge for each order that a topic puts into a queue. The order is the key, so
// one that is moved back from the dead-letter queue is charged with the key that an
// earlier attempt has sent.
func ExampleWrapEach_charge() {
	type order struct {
		ID     string
		Amount int
	}
	bankIsDown, keys := true, map[string]int{}
	charge := func(_ context.Context, o order, key string) (string, error) {
		keys[key]++
		fmt.Printf("charging %d: call %d with this key\n", o.Amount, keys[key])
		if bankIsDown {
			return "", errors.New("bank is down")
		}
		return "charge of " + o.ID, nil
	}
	pay := func(ctx context.Context, m events.SQSMessage) error {
		body, err := lambda.Inner(m) // what was published, in the topic's envelope or not
		if err != nil {
			return err
		}
		var o order
		if err := json.Unmarshal([]byte(body), &o); err != nil {
			return err
		}
		_, err = idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
			return charge(ctx, o, tx.Key("payments"))
		})
		return err
	}
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Retention = 30 * 24 * time.Hour })
	queue := lambda.SQS.WithBodyKey(lambda.JSONKey("/ID")) // reads the envelope by itself
	queue.Failed = func(_ context.Context, m events.SQSMessage, err error) { fmt.Println("failed:", m.MessageId, err) }
	h := lambda.WrapEach(engine, queue, pay)

	for _, id := range []string{"1", "2", "2"} { // SQS gives another id to what is moved back
		ev := events.SQSEvent{Records: []events.SQSMessage{{
			MessageId: id, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders",
			Body: `{"Type":"Notification","MessageId":"n-1","TopicArn":"arn:aws:sns:eu-central-1:123456789012:orders","Message":"{\"ID\":\"o-1\",\"Amount\":20}"}`,
		}}}
		_, _ = h.Handle(context.Background(), ev) // its failure is printed
		bankIsDown = false
	}
	// Output:
	// charging 20: call 1 with this key
	// failed: 1 bank is down
	// charging 20: call 2 with this key
}

// A function that is invoked by its name: the result is stored and given again.
func ExampleDirect() {
	type order struct {
		ID     string
		Amount int
	}
	type receipt struct{ Number int }
	number := 0
	charge := func(_ context.Context, o order) (receipt, error) {
		number++
		fmt.Println("charged", o.Amount)
		return receipt{number}, nil
	}
	byID := func(o order) (string, error) { return o.ID, nil }
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.Direct[order, receipt](byID), charge)

	for _, payload := range []string{
		`{"ID":"order-1","Amount":20}`,
		`{"ID":"order-1","Amount":20}`, // Lambda, or the caller, makes the invocation again
		`{"ID":"order-1","Amount":30}`, // a mistake
		`{"ID":"order-2","Amount":30}`,
	} {
		result, err := h.Invoke(context.Background(), []byte(payload))
		if err != nil {
			var refusal struct{ ErrorType string }
			b, _ := json.Marshal(err) // as the runtime reports it
			_ = json.Unmarshal(b, &refusal)
			fmt.Println("refused:", refusal.ErrorType)
			continue
		}
		fmt.Println(string(result))
	}
	// Output:
	// charged 20
	// {"Number":1}
	// {"Number":1}
	// refused: IdempotencyKeyMismatch
	// charged 30
	// {"Number":2}
}

// In Handle a refusal is a Go error.
func ExampleDirect_errors() {
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.Direct[string, string](func(key string) (string, error) { return key, nil }),
		func(context.Context, string) (string, error) { return "done", nil })
	_, err := h.Handle(context.Background(), "")
	fmt.Println(errors.Is(err, idem.ErrKeyMissing))
	// Output:
	// true
}
