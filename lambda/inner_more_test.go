package lambda_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// What stands in an envelope beside the members that its service writes is part of
// what is asked for. A message of one's own that looks like an event, with the id of
// a customer, would else be done once for all amounts.
func TestMembersBesideAnEnvelopesAreCompared(t *testing.T) {
	t.Parallel()
	notification := func(change ...func(map[string]any)) map[string]any {
		return map[string]any{"EventSource": "aws:sns", "Sns": json.RawMessage(published(t, "1", "m", jobAttributes, change...))}
	}
	records := func(r map[string]any, change ...func(map[string]any)) string {
		m := map[string]any{"Records": []any{r}}
		for _, c := range change {
			c(m)
		}
		return marshalled(t, m)
	}
	amount := func(n int) func(map[string]any) { return changing("amount", n) }
	for name, body := range map[string]func(n int) string{
		"SNS": func(n int) string { return published(t, "1", "m", jobAttributes, amount(n)) },
		"own, like an event": func(n int) string {
			return marshalled(t, map[string]any{"id": "customer-7", "source": "web", "detail-type": "charge", "amount": n})
		},
		"event":        func(n int) string { return put(t, "1", staged, amount(n)) },
		"event in SNS": func(n int) string { return published(t, "1", put(t, "1", staged, amount(n)), nil) },
		"SNS around an event": func(n int) string {
			return published(t, "1", put(t, "1", staged), nil, amount(n))
		},
		"event of SNS":                    func(n int) string { return records(notification(amount(n))) },
		"event of SNS, beside its record": func(n int) string { return records(notification(), amount(n)) },
		"event of SNS, in its record": func(n int) string {
			r := notification()
			r["amount"] = n
			return records(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &worker{}
			h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), w.message)
			for _, id := range []string{"first", "again"} {
				re, err := h.Handle(t.Context(), batch(message(id, body(20))))
				reported(t, re, err)
			}
			if _, err := h.Handle(t.Context(), batch(message("other", body(30)))); !errors.Is(err, idem.ErrMismatch) {
				t.Errorf("another amount: got %v, want ErrMismatch", err)
			}
			w.ran(t, "first")
		})
	}
}

// A body can be made to look like an envelope with any id: it isn't taken for the work
// of a message that has that key, in neither order, and an attribute goes before it.
func TestForgedEnvelopeIsOtherWork(t *testing.T) {
	t.Parallel()
	own := keyed(message("own", "pay 20"), "order-7")
	for name, body := range map[string]string{
		"SNS, by its id": published(t, "1", "pay 20", nil, changing("MessageId", "order-7")),
		"SNS, by a key":  published(t, "1", "pay 20", map[string]string{lambda.KeyAttribute: "order-7"}),
		"event":          put(t, "1", "pay 20", changing("id", "order-7")),
		"job":            `{"idempotency_key":"order-7","operation":"","kind":"","args":"pay 20"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forged := message("forged", body)
			for _, order := range [][2]events.SQSMessage{{own, forged}, {forged, own}} {
				w := &worker{}
				h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), w.message)
				re, err := h.Handle(t.Context(), batch(order[0]))
				reported(t, re, err)
				if _, err := h.Handle(t.Context(), batch(order[1])); !errors.Is(err, idem.ErrMismatch) {
					t.Errorf("%s after %s: got %v, want ErrMismatch", order[1].MessageId, order[0].MessageId, err)
				}
				w.ran(t, order[0].MessageId)
				re, err = h.Handle(t.Context(), batch(keyed(forged, "its-own")))
				reported(t, re, err)
			}
		})
	}
}

// An envelope that can't be read is told by what is wrong with it.
func TestUnreadableEnvelopeIsTold(t *testing.T) {
	t.Parallel()
	if _, err := lambda.Inner(message("1", put(t, "1", staged, changing("resources", "a")))); err == nil || !strings.Contains(err.Error(), "resources isn't a list of texts") {
		t.Errorf("got %v", err)
	}
}

// A message that comes again is looked for before it is claimed.
func TestMessageThatComesAgain(t *testing.T) {
	t.Parallel()
	for count, want := range map[string]bool{"1": false, "2": true, "": false} {
		m := message("1", "")
		m.Attributes = map[string]string{"ApproximateReceiveCount": count}
		if req, err := lambda.SQS.Request(t.Context(), m); err != nil || req.ReadFirst != want {
			t.Errorf("received %q times: looked for %v, %v", count, req.ReadFirst, err)
		}
	}
}
