package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// Through the runtime's door: each record once, however often it is delivered.
func TestInvokeEach(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct {
		records int64
		answer  string
	}{
		"sqs":            {2, `{"batchItemFailures":[]}`},
		"sqs_fifo":       {1, `{"batchItemFailures":[]}`},
		"sqs_sns":        {2, `{"batchItemFailures":[]}`},
		"kinesis":        {1, `{"batchItemFailures":[]}`},
		"kafka":          {3, `{"batchItemFailures":[]}`},
		"kafka_own":      {1, `{"batchItemFailures":[]}`},
		"dynamodbstream": {2, `{"batchItemFailures":[]}`},
		"sns":            {1, `{}`},
		"sns_key":        {1, `{}`},
		"s3":             {2, `{}`},
		"eventbridge":    {1, `{}`},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			h := goldenOf(t, file).counted(idem.New(&idem.MemoryStore{}, callertest.Anybody), &runs)
			for range 3 {
				out, err := h.Invoke(t.Context(), loadBatch(t, file))
				if string(out) != want.answer || err != nil {
					t.Errorf("got %s, %v, want %s", out, err, want.answer)
				}
			}
			if runs.Load() != want.records {
				t.Errorf("the handler ran %d times, want %d", runs.Load(), want.records)
			}
		})
	}
}

// A function wired to another source, or an event with a part missing that would
// have to be reported, fails as a whole: nothing is done.
func TestWrongKindOfBatch(t *testing.T) {
	t.Parallel()
	type payload struct{ name, json string }
	for _, file := range batchFiles {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			payloads := []payload{
				{"empty", `{}`},
				{"null", `null`},
				{"no records", `{"Records":[]}`},
				{"null records", `{"Records":null}`},
				{"one null record", `{"Records":[null]}`},
				{"not an object", `[]`},
				{"text", `"warm"`},
				{"cut off", `{"Records":[{`},
				{"nothing", ``},
				{"of another service", `{"Records":[{"eventSource":"aws:codecommit","eventSourceARN":"arn:x","messageId":"1","eventID":"1"}]}`},
				{"HTTP", string(load(t, "httpapi_jwt"))},
				{"what its type panics on", `{"Records":[{"dynamodb":{"Keys":{"id":{"BS":[null]}}},"kinesis":1,"messageId":1,"Sns":1,"s3":1}],"id":1}`},
			}
			source := goldenOf(t, file)
			for _, other := range batchFiles {
				if !slices.Contains(source.golden, other) {
					payloads = append(payloads, payload{other, string(loadBatch(t, other))})
				}
			}
			for _, required := range source.required {
				payloads = append(payloads, payload{"without " + strings.Join(required, "."), without(t, loadBatch(t, file), required...)})
			}
			for _, p := range payloads {
				for _, mode := range []idem.Mode{idem.ModeEnforce, idem.ModeOff} {
					store := &watched{}
					var runs atomic.Int64
					h := source.counted(idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Mode = mode }), &runs)
					out, err := h.Invoke(t.Context(), []byte(p.json))
					if !errors.Is(err, lambda.ErrEvent) || out != nil || runs.Load() != 0 {
						t.Errorf("%s: got %s, %v, %d runs, want ErrEvent", p.name, out, err, runs.Load())
					}
					if err != nil && !strings.Contains(err.Error(), "the payload is ") {
						t.Errorf("%s: the error does not say what came: %v", p.name, err)
					}
					store.untouched(t)
				}
			}
		})
	}
}

// without is an event whose last record lacks a member.
func without(t testing.TB, payload []byte, path ...string) string {
	t.Helper()
	var ev map[string]any
	if err := json.Unmarshal(payload, &ev); err != nil {
		t.Fatal(err)
	}
	at := lastRecord(ev)
	for _, name := range path[:len(path)-1] {
		at = at[name].(map[string]any)
	}
	if _, ok := at[path[len(path)-1]]; !ok {
		t.Fatalf("%v isn't there anyway", path)
	}
	delete(at, path[len(path)-1])
	out, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// lastRecord returns an event's last record, which Kafka has in a map of partitions.
func lastRecord(ev map[string]any) map[string]any {
	records, _ := ev["Records"].([]any)
	partitions, _ := ev["records"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(partitions)) {
		records, _ = partitions[name].([]any)
	}
	if len(records) == 0 {
		return ev // EventBridge has one record, which is the event
	}
	last, _ := records[len(records)-1].(map[string]any)
	return last
}

// Producers copy the names of HTTP headers, which have any case. Two keys are a failure:
// either may be the job's.
func TestKeyAttributeInAnyCase(t *testing.T) {
	t.Parallel()
	sqs := func(id string, keys map[string]string) (string, error) {
		m := message(id, "pay 20")
		m.MessageAttributes = make(map[string]events.SQSMessageAttribute)
		for name, key := range keys {
			m.MessageAttributes[name] = events.SQSMessageAttribute{StringValue: &key, DataType: "String"}
		}
		return lambda.SQS.Key(m)
	}
	sns := func(id string, keys map[string]string) (string, error) {
		r := notification(id)
		r.SNS.MessageAttributes = make(map[string]any)
		for name, key := range keys {
			r.SNS.MessageAttributes[name] = map[string]any{"Type": "String", "Value": key}
		}
		return lambda.SNS.Key(r)
	}
	envelope := func(id string, keys map[string]string) (string, error) {
		return lambda.SQS.Key(message(id, published(t, id, "pay 20", keys)))
	}
	for source, keyOf := range map[string]func(string, map[string]string) (string, error){"SQS": sqs, "SNS": sns, "SNS in SQS": envelope} {
		for _, name := range []string{"idempotency-key", "Idempotency-Key", "IDEMPOTENCY-KEY"} {
			if key, err := keyOf("1", map[string]string{name: "order-7"}); key != "order-7" || err != nil {
				t.Errorf("%s, %s: the key is %q, %v", source, name, key, err)
			}
		}
		_, err := keyOf("1", map[string]string{"Idempotency-Key": "order-7", "idempotency-key": "order-7"})
		if err == nil || !strings.Contains(err.Error(), "2 attributes "+lambda.KeyAttribute) {
			t.Errorf("%s, two keys: %v", source, err)
		}
	}
}

// A key that is there and can't be used is a failure: the message's id in its
// place would do one job twice.
func TestUnusableKeyOfAMessage(t *testing.T) {
	t.Parallel()
	sqs := func(a events.SQSMessageAttribute) error {
		m := message("1", "")
		m.MessageAttributes = map[string]events.SQSMessageAttribute{lambda.KeyAttribute: a}
		_, err := lambda.WrapEach(idem.New(&watched{}, callertest.Anybody), quiet(lambda.SQS), (&worker{}).message).Handle(t.Context(), batch(m))
		return err
	}
	sns := func(a any) error {
		r := notification("1")
		r.SNS.MessageAttributes = map[string]any{lambda.KeyAttribute: a}
		h := lambda.WrapEach(idem.New(&watched{}, callertest.Anybody), quiet(lambda.SNS), func(context.Context, events.SNSEventRecord) error { return nil })
		_, err := h.Handle(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{r}})
		return err
	}
	text := func(s string) events.SQSMessageAttribute {
		return events.SQSMessageAttribute{StringValue: &s, DataType: "String"}
	}
	for name, err := range map[string]error{
		"SQS, binary":       sqs(events.SQSMessageAttribute{BinaryValue: []byte("key"), DataType: "Binary"}),
		"SQS, empty":        sqs(text("")),
		"SQS, not ASCII":    sqs(text("schlüssel")),
		"SQS, too long":     sqs(text(strings.Repeat("k", 256))),
		"SQS, line breaks":  sqs(text("a\nb")),
		"SNS, null":         sns(nil),
		"SNS, text":         sns("key"),
		"SNS, no value":     sns(map[string]any{"Type": "String"}),
		"SNS, spaces":       sns(map[string]any{"Type": "String", "Value": " "}),
		"S3, no sequencer":  unsequenced(t),
		"SNS, a list's key": sns(map[string]any{"Type": "String.Array", "Value": []any{"a b"}}),
	} {
		if !errors.Is(err, idem.ErrKeyInvalid) {
			t.Errorf("%s: got %v, want ErrKeyInvalid", name, err)
		}
	}
	if err := unidentified(t); !errors.Is(err, idem.ErrKeyMissing) {
		t.Errorf("Kinesis, no id: got %v, want ErrKeyMissing", err)
	}
}

func unsequenced(t *testing.T) error {
	t.Helper()
	r := upload("a")
	r.S3.Object.Sequencer = ""
	h := lambda.WrapEach(idem.New(&watched{}, callertest.Anybody), quiet(lambda.S3), func(context.Context, events.S3EventRecord) error { return nil })
	_, err := h.Handle(t.Context(), events.S3Event{Records: []events.S3EventRecord{r}})
	return err
}

func unidentified(t *testing.T) error {
	t.Helper()
	r := position("1")
	r.EventID = ""
	h := lambda.WrapEach(idem.New(&watched{}, callertest.Anybody), quiet(lambda.Kinesis), func(context.Context, events.KinesisEventRecord) error { return nil })
	_, err := h.Handle(t.Context(), events.KinesisEvent{Records: []events.KinesisEventRecord{r}})
	return err
}

// What makes two notifications, and what one.
func TestNotificationsOfAnObject(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*events.S3EventRecord)
		runs int64
	}{
		"again":                     {func(*events.S3EventRecord) {}, 1},
		"later, of another request": {func(r *events.S3EventRecord) { r.ResponseElements = map[string]string{"x-amz-request-id": "2"} }, 1},
		"written again":             {func(r *events.S3EventRecord) { r.S3.Object.Sequencer = "02" }, 2},
		"another version":           {func(r *events.S3EventRecord) { r.S3.Object.VersionID = "v" }, 2},
		"removed":                   {func(r *events.S3EventRecord) { r.EventName = "ObjectRemoved:Delete" }, 2},
		"another object":            {func(r *events.S3EventRecord) { r.S3.Object.Key = "b" }, 2},
		"another bucket":            {func(r *events.S3EventRecord) { r.S3.Bucket.Name = "b" }, 2},
	} {
		var runs atomic.Int64
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.S3, func(context.Context, events.S3EventRecord) error {
			runs.Add(1)
			return nil
		})
		first, second := upload("a"), upload("a")
		tc.edit(&second)
		if _, err := h.Handle(t.Context(), events.S3Event{Records: []events.S3EventRecord{first, second}}); err != nil || runs.Load() != tc.runs {
			t.Errorf("%s: %d runs, %v, want %d", name, runs.Load(), err, tc.runs)
		}
	}
}
