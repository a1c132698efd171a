package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// A producer that puts the time of sending into each message: the key says which order
// it is, and Fingerprint.Func what of the message must be the same under it. Without
// that a message that is sent again fails with a mismatch.
func ExampleBatch_WithKey_varyingBody() {
	type order struct {
		ID     string
		Amount int
		SentAt string // another one each time it is sent
	}
	orderID := func(m events.SQSMessage) (string, error) {
		var o order
		err := json.Unmarshal([]byte(m.Body), &o)
		return o.ID, err
	}
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.Fingerprint.Func = func(r *idem.Request) ([]byte, error) { // for every handler on this engine
			var o order
			err := json.Unmarshal(r.Body, &o)
			return fmt.Append(nil, o.Amount), err
		}
		o.Fingerprint.FuncName = "amount" // records keep it: another function needs another name
	})
	queue := lambda.SQS.WithKey(orderID)
	queue.Failed = func(_ context.Context, m events.SQSMessage, err error) {
		fmt.Println("refused", m.MessageId, errors.Is(err, idem.ErrMismatch))
	}
	h := lambda.WrapEach(engine, queue, func(_ context.Context, m events.SQSMessage) error {
		fmt.Println("charged", m.Body)
		return nil
	})

	var ev events.SQSEvent
	for i, body := range []string{
		`{"ID":"order-1","Amount":20,"SentAt":"09:30"}`,
		`{"ID":"order-1","Amount":20,"SentAt":"09:31"}`,
		`{"ID":"order-1","Amount":30,"SentAt":"09:32"}`,
	} {
		ev.Records = append(ev.Records, events.SQSMessage{
			MessageId: fmt.Sprint(i), Body: body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders",
		})
	}
	_, _ = h.Handle(context.Background(), ev)
	// Output:
	// charged {"ID":"order-1","Amount":20,"SentAt":"09:30"}
	// refused 2 true
}

// The same for one batch, without a function for the engine.
func ExampleBodyKey_Comparing() {
	orders := lambda.SQS.WithBodyKey(lambda.JSONKey("/id").Comparing("/id", "/amount"))
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}), orders, func(_ context.Context, m events.SQSMessage) error {
		fmt.Println("charged", m.Body)
		return nil
	})
	var ev events.SQSEvent
	for i, body := range []string{`{"id":"order-1","amount":20,"sent":"09:30"}`, `{"id":"order-1","amount":20,"sent":"09:31"}`} {
		ev.Records = append(ev.Records, events.SQSMessage{
			MessageId: fmt.Sprint(i), Body: body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders",
		})
	}
	re, err := h.Handle(context.Background(), ev)
	fmt.Println(re.BatchItemFailures, err)
	// Output:
	// charged {"id":"order-1","amount":20,"sent":"09:30"}
	// [] <nil>
}

// A field of an event's detail. Whoever puts the event on the bus twice asks for one
// invoice; an event that says nothing of it is refused.
func ExampleJSONKey() {
	events := lambda.EventBridge.WithBodyKey(lambda.JSONKey("/order/id"))
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}), events, invoice)

	for i, detail := range []string{`{"order":{"id":"o-1"}}`, `{"order":{"id":"o-1"}}`, `{"order":{}}`} {
		ev := fmt.Appendf(nil, `{"id":"event-%d","source":"shop","detail-type":"Order Placed","account":"1","region":"r","detail":%s}`, i, detail)
		if _, err := h.Invoke(context.Background(), ev); err != nil {
			fmt.Println(refusal(err).ErrorMessage)
		}
	}
	// Output:
	// invoiced {"order":{"id":"o-1"}}
	// idem: key: idempotency key is invalid: /order/id: it is missing
}

func invoice(_ context.Context, ev events.EventBridgeEvent) error {
	fmt.Println("invoiced", string(ev.Detail))
	return nil
}

// A JSON-RPC client sends its request again, with the id it had.
func ExampleJSONRPCKey() {
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Stored = lambda.JSONRPCStored })
	h := lambda.Wrap(engine, lambda.Direct[request, string](lambda.JSONRPCKey(), oneUser), serve, charges)
	play(h, `{"jsonrpc":"2.0","method":"charge","params":{"amount":20},"id":"5b3f6a"}`,
		`{"jsonrpc":"2.0","method":"charge","params":{"amount":20},"id":"5b3f6a"}`,
		`{"jsonrpc":"2.0","method":"charge","params":{"amount":20},"id":"77c0de"}`,
		`{"jsonrpc":"2.0","method":"charge","params":{"amount":20}}`)
	// Output:
	// "answer 1 to charge"
	// "answer 1 to charge"
	// "answer 2 to charge"
	// IdempotencyKeyInvalid
}

// oneUser is a scope for a function that only one user's client invokes.
func oneUser(o *lambda.DirectOptions[request]) {
	o.Scope = func(context.Context, request) (string, error) { return "ann", nil }
}

func charges(o *lambda.HandlerOptions) { o.Name = "charges" }

// An agent calls a tool again, since it has seen no answer: with another id and
// another progress token.
func ExampleMCPToolKey() {
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Stored = lambda.MCPToolStored })
	h := lambda.Wrap(engine, lambda.Direct[request, string](lambda.MCPToolKey("/arguments/order_id"), oneUser), serve, charges)
	play(h, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"refund","arguments":{"order_id":"o-1","amount":20},"_meta":{"progressToken":"a"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"refund","arguments":{"amount":20,"order_id":"o-1"},"_meta":{"progressToken":"b"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"refund","arguments":{"order_id":"o-1","amount":30}}}`)
	// Output:
	// "answer 1 to tools/call"
	// "answer 1 to tools/call"
	// IdempotencyKeyMismatch
}

// A mutation whose client says what is one charge, as with Shopify's @idempotent.
func ExampleAppSyncKey() {
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.Direct[request, string](lambda.AppSyncKey("/key")), serve)
	const charge = `{"arguments":{"key":"k-1","amount":20},"identity":{"sub":"%s","issuer":"pool"},"request":{"headers":{"x-amzn-trace-id":"%s"}},` +
		`"info":{"parentTypeName":"Mutation","fieldName":"charge"}}`
	play(h, fmt.Sprintf(charge, "alice", "1"), fmt.Sprintf(charge, "alice", "2"), fmt.Sprintf(charge, "bob", "3"))
	// Output:
	// "answer 1 to "
	// "answer 1 to "
	// "answer 2 to "
}

// A task of a state machine is tried again.
func ExampleStateKey() {
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.Direct[request, string](lambda.StateKey("/context")), serve)
	const task = `{"input":{"amount":20},"context":{"Execution":{"Id":"arn:aws:states:eu-central-1:1:execution:orders:7"},"State":{"Name":"%s","RetryCount":%d}}}`
	play(h, fmt.Sprintf(task, "Charge", 0), fmt.Sprintf(task, "Charge", 1), fmt.Sprintf(task, "Refund", 0))
	// Output:
	// "answer 1 to "
	// "answer 1 to "
	// "answer 2 to "
}

type request struct{ Method string }

var answers int

func serve(_ context.Context, r request) (string, error) {
	answers++
	return fmt.Sprintf("answer %d to %s", answers, r.Method), nil
}

// play sends payloads one after the other.
func play(h *lambda.Handler[request, string], payloads ...string) {
	answers = 0
	for _, p := range payloads {
		if result, err := h.Invoke(context.Background(), []byte(p)); err != nil {
			fmt.Println(refusal(err).ErrorType)
		} else {
			fmt.Println(string(result))
		}
	}
}

// refusal is an error as the runtime reports it.
func refusal(err error) (re struct{ ErrorType, ErrorMessage string }) {
	b, _ := json.Marshal(err)
	_ = json.Unmarshal(b, &re)
	return re
}
