package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// published is what SNS puts into a queue without raw message delivery, in the form
// of its documentation. n tells two publications of one message apart.
func published(t testing.TB, n, message string, attributes map[string]string, change ...func(map[string]any)) string {
	t.Helper()
	env := map[string]any{
		"Type": "Notification", "MessageId": "63a3f6b6-d533-4a47-aef9-fcf5cf758c7" + n, "TopicArn": topicARN, "Message": message,
		"Timestamp": "2026-11-21T09:30:0" + n + ".123Z", "SignatureVersion": "1", "Signature": "EXAMPLEnTrFPa" + n,
		"SigningCertURL": "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-" + n + ".pem",
		"UnsubscribeURL": "https://sns.eu-central-1.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=" + topicARN + ":" + n,
	}
	if attributes != nil {
		all := make(map[string]any)
		for name, value := range attributes {
			all[name] = map[string]any{"Type": "String", "Value": value}
		}
		env["MessageAttributes"] = all
	}
	for _, c := range change {
		c(env)
	}
	return marshalled(t, env)
}

// put is an event of EventBridge as the body of a message.
func put(t testing.TB, n string, detail any, change ...func(map[string]any)) string {
	t.Helper()
	ev := map[string]any{
		"version": "0", "id": "6a7e8feb-b491-4cf7-a9f1-bf370346771" + n, "detail-type": "send_receipt", "source": "rides",
		"account": "123456789012", "time": "2026-11-21T09:30:0" + n + "Z", "region": "eu-central-1", "resources": []string{}, "detail": detail,
	}
	for _, c := range change {
		c(ev)
	}
	return marshalled(t, ev)
}

func marshalled(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// staged is a job as a Bus or a Function hands it on.
var staged = map[string]any{"idempotency_key": "OP.2.0", "operation": "OP", "kind": "send_receipt", "args": map[string]any{"ride": "ride-1"}}

func changing(name string, value any) func(map[string]any) {
	return func(m map[string]any) {
		if m[name] = value; value == nil {
			delete(m, name)
		}
	}
}

var jobAttributes = map[string]string{lambda.KeyAttribute: "OP.2.0", lambda.KindAttribute: "send_receipt"}

// arrivals are two deliveries of one job, each on a way of its own through AWS.
func arrivals(t testing.TB) map[string][2]string {
	t.Helper()
	twice := func(make func(n string) string) [2]string { return [2]string{make("1"), make("2")} }
	const args = `{"ride":"ride-1"}`
	return map[string][2]string{
		"SNS, not raw":           twice(func(n string) string { return published(t, n, args, jobAttributes) }),
		"bus":                    twice(func(n string) string { return put(t, n, staged) }),
		"bus, only the detail":   twice(func(string) string { return marshalled(t, staged) }),
		"bus, SNS":               twice(func(n string) string { return published(t, n, put(t, n, staged), nil) }),
		"bus, SNS, with trace":   twice(func(n string) string { return published(t, n, put(t, n, staged), map[string]string{"traceparent": n}) }),
		"bus, detail only, SNS":  twice(func(n string) string { return published(t, n, marshalled(t, staged), nil) }),
		"redelivered event":      twice(func(string) string { return put(t, "1", map[string]any{"ride": "ride-1"}) }),
		"redelivered event, SNS": twice(func(n string) string { return published(t, n, put(t, "1", map[string]any{"ride": "ride-1"}), nil) }),
		"republished by SNS":     twice(func(string) string { return published(t, "1", args, nil) }),
		"event without detail":   twice(func(string) string { return put(t, "1", nil, changing("detail", nil)) }),
		"replayed from archive":  {put(t, "1", staged), put(t, "1", staged, changing("replay-name", "again"))},
		"SNS, to a function's DLQ": twice(func(n string) string {
			return marshalled(t, map[string]any{"Records": []any{map[string]any{
				"EventSource": "aws:sns", "EventVersion": "1.0", "EventSubscriptionArn": topicARN + ":" + n,
				"Sns": json.RawMessage(published(t, n, args, jobAttributes)),
			}}})
		}),
	}
}

// The id of a job is read wherever a service has put it: a job that is handed on
// twice is done once.
func TestJobInAnEnvelopeIsDoneOnce(t *testing.T) {
	t.Parallel()
	for name, bodies := range arrivals(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &worker{}
			h := lambda.WrapEach(anEngine(), quiet(lambda.SQS), w.message)
			for i, body := range bodies {
				m := message([]string{"first", "second"}[i], body)
				if name == "bus" { // as EventBridge's own dead-letter queue has it
					note := "attempt " + m.MessageId
					m.MessageAttributes = map[string]events.SQSMessageAttribute{"ERROR_MESSAGE": {DataType: "String", StringValue: &note}}
				}
				re, err := h.Handle(t.Context(), batch(m))
				reported(t, re, err)
			}
			w.ran(t, "first")
		})
	}
}

// What is the same under one key is what the producer has said, with what stands in an envelope
// beside the members that its service writes. A message of one's own that looks like an event, with
// the id of a customer, would else be done once for all amounts.
func TestOtherWorkInAnEnvelopeIsRefused(t *testing.T) {
	t.Parallel()
	first := published(t, "1", "pay 20", jobAttributes)
	event := put(t, "1", map[string]any{"amount": 20})
	more := maps.Clone(jobAttributes)
	more["currency"] = "EUR"
	amount := func(n int) func(map[string]any) { return changing("amount", n) }
	own := func(n int) string {
		return marshalled(t, map[string]any{"id": "customer-7", "source": "web", "detail-type": "charge", "amount": n})
	}
	records := func(change, record, sns func(map[string]any)) string { // an event of SNS
		r := map[string]any{"EventSource": "aws:sns", "Sns": json.RawMessage(published(t, "1", "m", jobAttributes, sns))}
		record(r)
		m := map[string]any{"Records": []any{r}}
		change(m)
		return marshalled(t, m)
	}
	nothing := func(map[string]any) {}
	for name, tc := range map[string]struct{ first, second string }{
		"another message":         {first, published(t, "2", "pay 30", jobAttributes)},
		"another attribute":       {first, published(t, "2", "pay 20", more)},
		"another subject":         {first, published(t, "2", "pay 20", jobAttributes, changing("Subject", "now"))},
		"another topic":           {first, published(t, "2", "pay 20", jobAttributes, changing("TopicArn", topicARN+"-of-others"))},
		"another detail":          {event, put(t, "1", map[string]any{"amount": 30})},
		"another type":            {event, put(t, "1", map[string]any{"amount": 20}, changing("detail-type", "refund"))},
		"another source":          {event, put(t, "1", map[string]any{"amount": 20}, changing("source", "others"))},
		"another resource":        {event, put(t, "1", map[string]any{"amount": 20}, changing("resources", []string{"arn:x"}))},
		"beside a message":        {published(t, "1", "m", jobAttributes, amount(20)), published(t, "1", "m", jobAttributes, amount(30))},
		"beside an event":         {put(t, "1", staged, amount(20)), put(t, "1", staged, amount(30))},
		"beside an event, in SNS": {published(t, "1", put(t, "1", staged, amount(20)), nil), published(t, "1", put(t, "1", staged, amount(30)), nil)},
		"around an event":         {published(t, "1", put(t, "1", staged), nil, amount(20)), published(t, "1", put(t, "1", staged), nil, amount(30))},
		"in an event of SNS":      {records(nothing, nothing, amount(20)), records(nothing, nothing, amount(30))},
		"in its record":           {records(nothing, amount(20), nothing), records(nothing, amount(30), nothing)},
		"beside its record":       {records(amount(20), nothing, nothing), records(amount(30), nothing, nothing)},
		"own, like an event":      {own(20), own(30)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &worker{}
			h := lambda.WrapEach(anEngine(), quiet(lambda.SQS), w.message)
			for _, id := range []string{"first", "again"} {
				re, err := h.Handle(t.Context(), batch(message(id, tc.first)))
				reported(t, re, err)
			}
			if _, err := h.Handle(t.Context(), batch(message("second", tc.second))); !errors.Is(err, idem.ErrMismatch) {
				t.Errorf("got %v, want ErrMismatch", err)
			}
			w.ran(t, "first")
		})
	}
}

// An envelope that can't be read is not run under the message's id: the job in it
// might be one that is done already. The error says what to do.
func TestUnreadableEnvelope(t *testing.T) {
	t.Parallel()
	sns := func(change ...func(map[string]any)) string { return published(t, "1", "m", jobAttributes, change...) }
	attribute := func(a any) string {
		return sns(changing("MessageAttributes", map[string]any{lambda.KeyAttribute: a}))
	}
	job := func(name string, value any) string {
		j := maps.Clone(staged)
		j[name] = value
		return put(t, "1", j)
	}
	for name, body := range map[string]string{
		"SNS, cut off":                 sns()[:len(sns())-2],
		"SNS, a member twice":          strings.Replace(sns(), `{`, `{"MessageId":"other",`, 1),
		"SNS, no message":              sns(changing("Message", nil)),
		"SNS, the message is no text":  sns(changing("Message", 7)),
		"SNS, no id":                   sns(changing("MessageId", nil)),
		"SNS, an empty id":             sns(changing("MessageId", "")),
		"SNS, the id is a number":      sns(changing("MessageId", 7)),
		"SNS, of no topic":             sns(changing("TopicArn", "rides")),
		"SNS, the topic is a queue":    sns(changing("TopicArn", queueARN)),
		"SNS, a list of attributes":    sns(changing("MessageAttributes", []string{"a"})),
		"SNS, the subject is a number": sns(changing("Subject", 7)),
		"SNS, the key is plain":        attribute("OP.2.0"),
		"SNS, the key is null":         attribute(nil),
		"SNS, the key is empty":        attribute(map[string]any{"Type": "String", "Value": ""}),
		"SNS, the key is a number":     attribute(map[string]any{"Type": "String", "Value": 7}),
		"SNS, the key is bytes":        attribute(map[string]any{"Type": "Binary", "Value": "AAH/"}),
		"event of SNS, no topic":       `{"Records":[{"EventSource":"aws:sns","Sns":` + sns(changing("TopicArn", 7)) + `}]}`,
		"event of SNS, a list":         `{"Records":[{"EventSource":"aws:sns","Sns":[` + sns() + `]}]}`,
		"event, cut off":               strings.TrimSuffix(put(t, "1", staged), "}"),
		"event, and more":              put(t, "1", staged) + "]",
		"event, no id":                 put(t, "1", staged, changing("id", nil)),
		"event, an empty id":           put(t, "1", staged, changing("id", "")),
		"event of SNS, a member twice": `{"Records":[{"EventSource":"aws:sns","Sns":{},"Sns":` + sns() + `}]}`,
		"event, the id is a number":    put(t, "1", staged, changing("id", 7)),
		"event, the type is a number":  put(t, "1", staged, changing("detail-type", 7)),
		"event, resources are a text":  put(t, "1", staged, changing("resources", "a")),
		"SNS, the topic has no ARN":    sns(changing("TopicArn", "rides:sns:1")),
		"SNS, a number beside it":      sns(changing("MessageAttributes", map[string]any{"color": map[string]any{"Type": "Number", "Value": 7}})),
		"SNS, no type beside it":       sns(changing("MessageAttributes", map[string]any{"color": map[string]any{"Value": "red"}})),
		"SNS, no value beside it":      sns(changing("MessageAttributes", map[string]any{"color": map[string]any{"Type": "String"}})),
		"SNS, the id is null":          sns(changing("MessageId", json.RawMessage("null"))),
		"event, the type is null":      put(t, "1", staged, changing("detail-type", json.RawMessage("null"))),
		"event, the source is null":    put(t, "1", staged, changing("source", json.RawMessage("null"))),
		"bare job, no key":             `{"idempotency_key":"","operation":"o","kind":"k","args":{}}`,
		"job, no key":                  job("idempotency_key", ""),
		"job, the key is a number":     job("idempotency_key", 7),
		"event in SNS, no id":          published(t, "1", put(t, "1", staged, changing("id", nil)), nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &worker{}
			store := &watched{}
			_, err := lambda.WrapEach(idem.New(store, callertest.Anybody), quiet(lambda.SQS), w.message).Handle(t.Context(), batch(message("1", body)))
			if !errors.Is(err, idem.ErrKeyInvalid) || !strings.Contains(err.Error(), "WithKey") {
				t.Errorf("got %v, want ErrKeyInvalid and what to do", err)
			}
			w.ran(t)
			store.untouched(t)

			mine := func(events.SQSMessage) (string, error) { return "k", nil } // the way out
			re, err := lambda.WrapEach(anEngine(), quiet(lambda.SQS.WithKey(mine)), w.message).Handle(t.Context(), batch(message("1", body)))
			reported(t, re, err)
			w.ran(t, "1")
		})
	}
}

// A message of one's own is none of AWS's envelopes because of a name or two.
func TestOwnMessageIsNoEnvelope(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a type":                      `{"Type":"Notification","Message":"hello","MessageId":"m-1"}`,
		"a type, in small letters":    `{"type":"Notification","topicArn":"` + topicARN + `","TopicArn2":"x","message":"hello"}`,
		"another type, with a topic":  `{"Type":"SubscriptionConfirmation","TopicArn":"` + topicARN + `","MessageId":"m-1","Message":"You have chosen…","Token":"t"}`,
		"a topic to use":              `{"TopicArn":"` + topicARN + `","Kind":"Notification"}`,
		"further in":                  `{"order":` + published(t, "1", "m", jobAttributes) + `}`,
		"in a list":                   `[` + published(t, "1", "m", jobAttributes) + `]`,
		"in a text":                   `see ` + published(t, "1", "m", jobAttributes),
		"a source and a detail":       `{"source":"web","detail":{"id":1}}`,
		"a detail type":               `{"detail-type":"x","detail":{}}`,
		"a job and more":              `{"idempotency_key":"k","operation":"o","kind":"k","args":{},"priority":1}`,
		"a job and less":              `{"idempotency_key":"k","kind":"k","args":{}}`,
		"records of two":              `{"Records":[{"EventSource":"aws:sns","Sns":{}},{"EventSource":"aws:sns","Sns":{}}]}`,
		"records of texts":            `{"Records":["Notification","TopicArn"],"a":["Notification","TopicArn"]}`,
		"records of another service":  `{"Records":[{"EventSource":"aws:s3","Sns":` + published(t, "1", "m", nil) + `}]}`,
		"a failure's record":          `{"version":"1.0","requestContext":{"requestId":"r"},"requestPayload":` + marshalled(t, staged) + `}`,
		"no JSON":                     `{pay`,
		"no JSON, with a mark":        `{"Type":"Notification"`,
		"a type, and a word":          `{"Type":"Notification","want":"TopicArn"}`,
		"a detail type, and a source": `{"detail-type":"x","source":"web"}`,
		"a source, and a word":        `{"source":"web","id":"1","want":"detail-type"}`,
		"a detail type, and a word":   `{"detail-type":"x","id":"1","want":"source"}`,
		"records of two topics":       `{"Records":[{"EventSource":"aws:sns","Sns":` + published(t, "1", "m", nil) + `},{"EventSource":"aws:sns","Sns":` + published(t, "2", "m", nil) + `}]}`,
		"a record that is a text":     `{"Records":["Notification"],"a":"TopicArn"}`,
		"a record about a topic":      `{"Records":[{"EventSource":"aws:s3","about":"aws:sns","Sns":` + published(t, "1", "m", nil) + `}]}`,
		"words of a job":              `{"idempotency_key":"k","a":["operation","kind","args"]}`,
		"plain text":                  `pay "Notification" of "TopicArn"`,
		"nothing":                     ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, reqs := readBatch(t, lambda.SQS, []byte(marshalled(t, batch(message("1", body)))))
			want := []idem.Request{{Key: "1", Source: queueARN, Route: "SQS receipts", DeliveryKey: true, Body: []byte(body)}}
			if diff := cmp.Diff(want, reqs); diff != "" {
				t.Errorf("idem.Request (-want +got):\n%s", diff)
			}
		})
	}
}

// A bus in front of a topic that invokes a function: EventBridge may publish twice.
func TestEventThroughSNSIsDoneOnce(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]func(n string) string{
		"event":           func(string) string { return put(t, "1", map[string]any{"ride": "ride-1"}) },
		"job in an event": func(n string) string { return put(t, n, staged) },
		"job":             func(string) string { return marshalled(t, staged) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			h := lambda.WrapEach(anEngine(), lambda.SNS, func(context.Context, events.SNSEventRecord) error {
				runs++
				return nil
			})
			for _, n := range []string{"1", "2"} {
				r := notification("message-" + n)
				r.SNS.Message = message(n)
				if _, err := h.Handle(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{r}}); err != nil {
					t.Error(err)
				}
			}
			if runs != 1 {
				t.Errorf("%d runs, want 1", runs)
			}
		})
	}
}

func TestInner(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, want string }{
		"plain":      {"pay", "pay"},
		"SNS":        {published(t, "1", "pay", nil), "pay"},
		"event":      {put(t, "1", map[string]any{"a": 1}), `{"a":1}`},
		"bus to SNS": {published(t, "1", put(t, "1", map[string]any{"a": 1}), nil), `{"a":1}`},
		"job":        {published(t, "1", put(t, "1", staged), nil), marshalled(t, staged)},
	} {
		if got, err := lambda.Inner(message("1", tc.body)); got != tc.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, tc.want)
		}
	}
	if got, err := lambda.Inner(message("1", published(t, "1", "m", nil, changing("MessageId", nil)))); got != "" || err == nil {
		t.Errorf("not readable: got %q, %v", got, err)
	}
}

// Whatever a producer sends: through SNS or a bus it has the key that it would have
// had without, and what another delivery changes makes no difference. And whatever
// is in a body: no panic.
func FuzzInner(f *testing.F) {
	for _, bodies := range arrivals(f) {
		f.Add(bodies[0], "k", "1")
	}
	f.Add(`{"Type":"Notification","TopicArn":"arn:aws:sns:r:1:t","MessageId":"m","Message":"{}","MessageAttributes":{"a":null}}`, "", "\u2028")
	f.Add(`{"detail-type":"","source":"","id":"i","detail":{"idempotency_key":null,"operation":1,"kind":2,"args":3}}`, "k", "v")
	f.Add(`{"Records":[{"EventSource":"aws:sns","Sns":{"Type":"Notification","TopicArn":""}}],"x":"\"Notification\""}`, "k", "v")
	f.Fuzz(func(t *testing.T, body, key, value string) {
		plain, err := lambda.Inner(message("1", body))
		if _, e := lambda.SQS.Key(message("1", body)); (e == nil) != (err == nil) {
			t.Errorf("Inner says %v, Key %v", err, e)
		}
		valid := strings.ToValidUTF8(body, "")
		if valid != body || key == "" || strings.ToValidUTF8(key+value, "") != key+value {
			return // SNS takes valid text only
		}
		attributes := map[string]string{lambda.KeyAttribute: key, "a": value}
		var first idem.Request
		for i, n := range []string{"1", "2"} {
			m := message(n, published(t, n, body, attributes))
			if got, err := lambda.SQS.Key(m); got != key || err != nil {
				t.Fatalf("the key is %q, %v, want %q", got, err, key)
			}
			req, err := lambda.SQS.Request(t.Context(), m)
			if string(req.Body) != body || err != nil {
				t.Fatalf("the body is %q, %v, want %q", req.Body, err, body)
			}
			if i == 0 {
				first = req
			} else if diff := cmp.Diff(first, req); diff != "" {
				t.Fatalf("another delivery (-first +second):\n%s", diff)
			}
		}
		if err == nil { // without a key of its own it is known by what is further in
			again, err2 := lambda.Inner(message("1", published(t, "1", body, nil)))
			if again != plain || err2 != nil {
				t.Fatalf("in another envelope: got %q, %v, want %q", again, err2, plain)
			}
		}
	})
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
				h := lambda.WrapEach(anEngine(), quiet(lambda.SQS), w.message)
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
