package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/envelope"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/trace"
	"github.com/samekey/samekey/lambda"
)

// recordSource is a source of records, for the tests that all of them have to pass.
type recordSource struct {
	name     string               // of its Batch
	golden   []string             // its events in testdata/batch
	one      func(testing.TB) any // an event with one record
	required [][]string           // members of a record without which it can't be told apart or reported
	counted  func(*idem.Engine, *atomic.Int64) awslambda.Handler
	read     func(testing.TB, []byte) (ids, groups []string, reqs []idem.Request)
	wrap     func(*idem.Engine, time.Duration) // with Batch.Keeps, unless 0
}

// recordSources are all batches of the package.
var recordSources = []recordSource{
	fromSource(lambda.SQS, recordSource{
		name: "SQS", golden: []string{"sqs", "sqs_fifo", "sqs_sns", "sqs_eventbridge"},
		one:      func(testing.TB) any { return batch(message("1", "")) },
		required: [][]string{{"messageId"}, {"eventSource"}, {"eventSourceARN"}},
	}),
	fromSource(lambda.SNS, recordSource{
		name: "SNS", golden: []string{"sns", "sns_key"},
		one:      func(testing.TB) any { return events.SNSEvent{Records: []events.SNSEventRecord{notification("1")}} },
		required: [][]string{{"Sns", "MessageId"}, {"EventSource"}, {"Sns", "TopicArn"}, {"Sns"}},
	}),
	fromSource(lambda.EventBridge, recordSource{
		name: "EventBridge", golden: []string{"eventbridge"},
		one:      func(t testing.TB) any { return json.RawMessage(put(t, "1", staged)) },
		required: [][]string{{"id"}, {"source"}, {"detail-type"}},
	}),
	fromSource(lambda.S3, recordSource{
		name: "S3", golden: []string{"s3"},
		one:      func(testing.TB) any { return events.S3Event{Records: []events.S3EventRecord{upload("a")}} },
		required: [][]string{{"s3", "object", "key"}, {"eventSource"}, {"s3", "bucket", "name"}, {"s3"}},
	}),
	fromSource(lambda.Kinesis, recordSource{
		name: "Kinesis", golden: []string{"kinesis"},
		one:      func(testing.TB) any { return events.KinesisEvent{Records: []events.KinesisEventRecord{position("1")}} },
		required: [][]string{{"kinesis", "sequenceNumber"}, {"eventSource"}, {"eventSourceARN"}, {"kinesis"}},
	}),
	fromSource(lambda.Kafka, recordSource{
		name: "Kafka", golden: []string{"kafka_own", "kafka"},
		one:      func(testing.TB) any { return partitions(moved(0, 1, "1")) },
		required: [][]string{{"topic"}},
	}),
	fromSource(lambda.DynamoDBStream, recordSource{
		name: "DynamoDBStream", golden: []string{"dynamodbstream"},
		one:      func(testing.TB) any { return events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{change("1")}} },
		required: [][]string{{"dynamodb", "SequenceNumber"}, {"eventSource"}, {"eventSourceARN"}, {"dynamodb"}},
	}),
}

// fromSource adds what a source does by its batch, whatever the batch's types are.
func fromSource[Ev, Rec, Re any](b lambda.Batch[Ev, Rec, Re], s recordSource) recordSource {
	s.counted = func(e *idem.Engine, runs *atomic.Int64) awslambda.Handler { return countedBatch(e, b, runs) }
	s.read = func(t testing.TB, payload []byte) (ids, groups []string, reqs []idem.Request) {
		t.Helper()
		return readBatch(t, b, payload)
	}
	s.wrap = func(e *idem.Engine, keeps time.Duration) {
		b := b
		if keeps != 0 {
			b.Keeps = keeps
		}
		lambda.WrapEach(e, b, func(context.Context, Rec) error { return nil })
	}
	return s
}

// countedBatch wraps a handler that counts.
func countedBatch[Ev, Rec, Re any](e *idem.Engine, b lambda.Batch[Ev, Rec, Re], runs *atomic.Int64) awslambda.Handler {
	return lambda.WrapEach(e, quiet(b), func(context.Context, Rec) error {
		runs.Add(1)
		return nil
	})
}

// sourceOf returns the source with this name.
func sourceOf(t testing.TB, name string) recordSource {
	t.Helper()
	i := slices.IndexFunc(recordSources, func(s recordSource) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("no source %s", name)
	}
	return recordSources[i]
}

// goldenOf returns the source that a golden event is of.
func goldenOf(t testing.TB, file string) recordSource {
	t.Helper()
	i := slices.IndexFunc(recordSources, func(s recordSource) bool { return slices.Contains(s.golden, file) })
	if i < 0 {
		t.Fatalf("no source has the event %s", file)
	}
	return recordSources[i]
}

// batchFiles are the golden events of all sources.
var batchFiles = func() (files []string) {
	for _, s := range recordSources {
		files = append(files, s.golden...)
	}
	return files
}()

const (
	functionARN = "arn:aws:lambda:eu-central-1:123456789012:function:receipts"

	queueARN = "arn:aws:sqs:eu-central-1:123456789012:receipts"
	topicARN = "arn:aws:sns:eu-central-1:123456789012:rides"
)

// invoked is the context of an invocation of the function arn.
func invoked(ctx context.Context, arn string) context.Context {
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{InvokedFunctionArn: arn})
}

func loadBatch(t testing.TB, file string) []byte {
	t.Helper()
	payload, err := os.ReadFile(filepath.Join("testdata", "batch", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// readBatch is what b makes of the records of an event.
func readBatch[Ev, Rec, Re any](t testing.TB, b lambda.Batch[Ev, Rec, Re], payload []byte) (ids, groups []string, reqs []idem.Request) {
	t.Helper()
	var ev Ev
	if err := json.Unmarshal(payload, &ev); err != nil {
		t.Fatal(err)
	}
	recs, err := b.Records(ev)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		req, err := b.Request(invoked(t.Context(), functionARN+":42"), rec)
		if err != nil {
			t.Fatal(err)
		}
		if req.Key, err = b.Key(rec); err != nil {
			t.Fatal(err)
		}
		req.Header = nil
		reqs = append(reqs, req)
		ids = append(ids, b.ID(rec))
		if b.Group != nil {
			groups = append(groups, b.Group(rec))
		}
	}
	return ids, groups, reqs
}

// Each batch of the package has its row in recordSources, its events in testdata, and its
// place where readers look for it.
func TestEverySourceIsListed(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	var declared, listed, golden []string
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)^var ([A-Z]\w*) = Batch\[`).FindAllStringSubmatch(read(file), -1) {
			declared = append(declared, m[1])
		}
	}
	page, overview := read("../docs/use/sources.md"), read("doc.go")
	for _, s := range recordSources {
		listed = append(listed, s.name)
		if !strings.Contains(page, "\n| `"+s.name+"` |") || !strings.Contains(overview, "["+s.name+"]") {
			t.Errorf("docs/use/sources.md has no row for %s, or the package's comment doesn't name it", s.name)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(declared)), slices.Sorted(slices.Values(listed))); diff != "" {
		t.Error("the batches that recordSources has (-want +got):", diff)
	}
	entries, err := os.ReadDir("testdata/batch")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		golden = append(golden, strings.TrimSuffix(entry.Name(), ".json"))
	}
	if diff := cmp.Diff(golden, slices.Sorted(slices.Values(batchFiles))); diff != "" {
		t.Error("the events of testdata/batch that recordSources has (-want +got):", diff)
	}
}

func TestGoldenBatches(t *testing.T) {
	t.Parallel()
	query := func(pairs ...string) string {
		values := make(url.Values)
		for i := 0; i < len(pairs); i += 2 {
			values.Add(pairs[i], pairs[i+1])
		}
		return values.Encode()
	}
	const (
		bySQS  = "arn:aws:sqs:eu-central-1:123456789012:"
		bucket = "arn:aws:s3:::statements|" + functionARN
		stream = "arn:aws:dynamodb:eu-central-1:123456789012:table/rides/stream/2026-11-21T00:48:05.899|" + functionARN
	)
	traced := trace.Context{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	const job = `{"idempotency_key":"01JD7W5Z3QH6M8.2.0","operation":"01JD7W5Z3QH6M8","kind":"send_ride_receipt","args":{"ride":"ride-2"}}`
	golden := map[string]struct {
		ids, groups []string
		reqs        []idem.Request
	}{
		"sqs": {
			ids:    []string{"059f36b4-87a3-44ab-83d2-661975830a7d", "2e1424d4-f796-459a-8184-9c92662be6da"},
			groups: []string{"", ""},
			reqs: []idem.Request{
				{
					Key: "059f36b4-87a3-44ab-83d2-661975830a7d", Source: bySQS + "receipts", Route: "SQS receipts", DeliveryKey: true,
					Body: []byte(`{"ride":"ride-1","kind":"receipt"}`),
				},
				{
					Key: "01JD7W5Z3QH6M8.2.0", Source: bySQS + "receipts", Route: "SQS receipts", DeliveryKey: true, ReadFirst: true,
					Query: query("kind", "String:send_ride_receipt", "retries", "Number:3", "seal", "Binary:AAH/", "@group", "tenant-7"),
					Body:  []byte(`{"ride":"ride-2","kind":"receipt"}`),
					Trace: traced,
				},
			},
		},
		"sqs_fifo": {
			ids:    []string{"11d6ee51-4cc7-4302-9e22-7cd8afdaadf5"},
			groups: []string{"group account-1"},
			reqs: []idem.Request{{
				Key: "11d6ee51-4cc7-4302-9e22-7cd8afdaadf5", Source: bySQS + "ledger.fifo", Route: "SQS ledger.fifo", DeliveryKey: true,
				Query: query("@group", "account-1"), Body: []byte("Test message."),
			}},
		},
		"sqs_sns": {
			ids:    []string{"b6b95dcd-0000-4ca9-8df5-e7812a6f6f4a", "0d5c3b0e-1111-4a6c-a6f2-6f2a4d1f8a11"},
			groups: []string{"", ""},
			reqs: []idem.Request{
				{
					Key: "dc1e94d9-56c5-5e96-808d-cc7f68faa162", Source: bySQS + "receipts", Route: "SQS receipts", DeliveryKey: true,
					Query: query("@subject", "Ride created", "@topic", topicARN), Body: []byte(`{"ride":"ride-1"}`),
				},
				{
					Key: "01JD7W5Z3QH6M8.2.0", Source: bySQS + "receipts", Route: "SQS receipts", DeliveryKey: true,
					Query: query("kind", "String:send_ride_receipt", "seal", "Binary:AAH/", "@topic", topicARN), Body: []byte(`{"ride":"ride-2"}`),
					Trace: traced,
				},
			},
		},
		"sqs_eventbridge": {
			ids: []string{
				"4a1c0f52-2222-4d0c-9d3d-0c6f0b0b1a22", "7d0e1c9b-3333-4f5e-8b7a-5a1e2d3c4b33", "9c8b7a6f-4444-4e3d-9a2b-1f0e9d8c7b44",
			},
			groups: []string{"", "", ""},
			reqs: []idem.Request{
				{
					Key: "6a7e8feb-b491-4cf7-a9f1-bf3703467718", Source: bySQS + "receipts", Route: "SQS receipts", DeliveryKey: true,
					Query: query("@type", "Ride Completed", "@source", "rides", "@resource", "arn:aws:rides:eu-central-1:123456789012:ride/ride-1"),
					Body:  []byte(`{"ride":"ride-1","fare":2000}`),
				},
				{
					Key: "01JD7W5Z3QH6M8.2.0", Source: bySQS + "receipts", Route: "SQS receipts", DeliveryKey: true,
					Query: query("@type", "send_ride_receipt", "@source", "rides"), Body: []byte(job),
				},
				{
					Key: "01JD7W5Z3QH6M8.2.0", Source: bySQS + "receipts", Route: "SQS receipts", DeliveryKey: true,
					Query: query("@type", "send_ride_receipt", "@source", "rides", "@topic", topicARN), Body: []byte(job),
				},
			},
		},
		"sns": {
			ids: []string{"95df01b4-ee98-5cb9-9903-4c221d41eb5e"},
			reqs: []idem.Request{{
				Key: "95df01b4-ee98-5cb9-9903-4c221d41eb5e", Source: topicARN + "|" + functionARN, Route: "SNS rides", DeliveryKey: true, Asynchronous: true,
				Query: query("kind", "String:ride_created", "seal", "Binary:AAH/", "@subject", "Ride created"),
				Body:  []byte(`{"ride":"ride-1"}`),
				Trace: traced,
			}},
		},
		"sns_key": {
			ids: []string{"95df01b4-ee98-5cb9-9903-4c221d41eb5e"},
			reqs: []idem.Request{{
				Key: "01JD7W5Z3QH6M8.2.0", Source: topicARN + "|" + functionARN, Route: "SNS rides", DeliveryKey: true, Asynchronous: true,
				Query: query("kind", "String:ride_created"), Body: []byte(`{"ride":"ride-1"}`),
			}},
		},
		"s3": {
			ids: []string{"2026/11/B%C3%BCro+1.csv", "2019/01.csv"},
			reqs: []idem.Request{
				{
					Key: "Agqz_ryE6TTgYPhoA-1dcahQcIctbfyZ0NzUZfpFnaU", Source: bucket, Route: "S3 statements ObjectCreated:Put", Asynchronous: true,
					Body: []byte(`{"Event":"ObjectCreated:Put","Bucket":"statements","Object":"2026/11/B%C3%BCro+1.csv",` +
						`"ETag":"b21b84d653bb07b05b1e6b33684dc11b","Size":1305107}`),
				},
				{
					Key: "mbuw68A6VZUkrhvbvZYi0s0eDXFfZWY0jVMq21BppIE", Source: bucket, Route: "S3 statements ObjectRestore:Completed", Asynchronous: true,
					Body: []byte(`{"Event":"ObjectRestore:Completed","Bucket":"statements","Object":"2019/01.csv",` +
						`"ETag":"d41d8cd98f00b204e9800998ecf8427e","Size":10}`),
				},
			},
		},
		"kinesis": {
			ids:    []string{"49590338271490256608559692538361571095921575989136588898"},
			groups: []string{"shard"},
			reqs: []idem.Request{{
				Key:    "shardId-000000000006:49590338271490256608559692538361571095921575989136588898",
				Source: "arn:aws:kinesis:eu-central-1:123456789012:stream/positions|" + functionARN, Route: "Kinesis positions",
				Query: query("@partition", "ride-1"), Body: []byte("Hello, this is a test."),
			}},
		},
		"kafka": {
			ids:    []string{"positions-0:15", "positions-0:16", "positions-1:7"},
			groups: []string{"positions-0", "positions-0", "positions-1"},
			reqs: []idem.Request{
				{
					Key: "positions-0:15@1795253400987", Source: clusterARN + "/positions|" + functionARN, Route: "Kafka positions",
					Query: query("@key", "cmlkZS0x", "header kind", "moved", "header kind", "again", "header seal", "base64:dtwAf4A="),
					Body:  []byte("Hello, this is a test."), Trace: traced,
				},
				{
					Key: "move-9", Source: clusterARN + "/positions|" + functionARN, Route: "Kafka positions",
					Query: query("@key", "cmlkZS0x"), Body: []byte("here"),
				},
				{
					Key: "positions-1:7@1795253400987", Source: clusterARN + "/positions|" + functionARN, Route: "Kafka positions",
					Query: query("@key", ""), Body: []byte{},
				},
			},
		},
		"kafka_own": {
			ids:    []string{"positions-0:15"},
			groups: []string{"positions-0"},
			reqs: []idem.Request{{
				Key:    "positions-0:15@1795253400987",
				Source: "kafka-1.example.com:9092,kafka-2.example.com:9092/positions|" + functionARN, Route: "Kafka positions",
				Query: query("@key", "cmlkZS0x"), Body: []byte("Hello, this is a test."),
			}},
		},
		"dynamodbstream": {
			ids:    []string{"4421584500000000017450439091", "4421584500000000017450439092"},
			groups: []string{"shard", "shard"},
			reqs: []idem.Request{
				{
					Key: "c4ca4238a0b923820dcc509a6f75849b", Source: stream, Route: "DynamoDBStream rides",
					Body: []byte(`{"Event":"MODIFY","Keys":{"id":{"S":"ride-1"}},"New":{"fares":{"NS":["20","3.5"]},"id":{"S":"ride-1"},` +
						`"paid":{"BOOL":true},"seals":{"BS":["AAE=","QQ=="]},` +
						`"stops":{"L":[{"M":{"lat":{"N":"37.77"},"via":{"SS":["x","y"]}}},{"NULL":true}]},"tags":{"SS":["a","b"]}},` +
						`"Old":{"id":{"S":"ride-1"}}}`),
				},
				{
					Key: "c81e728d9d4c2f636f067f89cc14862c", Source: stream, Route: "DynamoDBStream rides",
					Body: []byte(`{"Event":"REMOVE","Keys":{"id":{"S":"ride-2"}},"New":null,"Old":{"id":{"S":"ride-2"}}}`),
				},
			},
		},
		"eventbridge": {
			ids: []string{"6a7e8feb-b491-4cf7-a9f1-bf3703467718"},
			reqs: []idem.Request{{
				Key: "6a7e8feb-b491-4cf7-a9f1-bf3703467718", Source: "events:123456789012:eu-central-1:rides|" + functionARN,
				Route: "EventBridge rides Ride Completed", Asynchronous: true,
				Query: query("@type", "Ride Completed", "@resource", "arn:aws:rides:eu-central-1:123456789012:ride/ride-1",
					"@resource", "arn:aws:rides:eu-central-1:123456789012:driver/7"),
				Body: []byte(`{"ride": "ride-1", "fare": 2000}`),
			}},
		},
	}
	for _, file := range batchFiles {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			want := golden[file]
			ids, groups, reqs := goldenOf(t, file).read(t, loadBatch(t, file))
			if diff := cmp.Diff(want.ids, ids); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.groups, groups); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.reqs, reqs); diff != "" {
				t.Errorf("idem.Request (-want +got):\n%s", diff)
			}
		})
	}
}

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
			h := goldenOf(t, file).counted(anEngine(), &runs)
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
	for source, keyOf := range map[string]func(names ...string) (string, error){
		"SQS": func(names ...string) (string, error) {
			m, key := message("1", "pay 20"), "order-7"
			m.MessageAttributes = make(map[string]events.SQSMessageAttribute)
			for _, name := range names {
				m.MessageAttributes[name] = events.SQSMessageAttribute{StringValue: &key, DataType: "String"}
			}
			return lambda.SQS.Key(m)
		},
		"SNS": func(names ...string) (string, error) {
			r := notification("1")
			r.SNS.MessageAttributes = make(map[string]any)
			for _, name := range names {
				r.SNS.MessageAttributes[name] = map[string]any{"Type": "String", "Value": "order-7"}
			}
			return lambda.SNS.Key(r)
		},
		"SNS in SQS": func(names ...string) (string, error) {
			keys := make(map[string]string)
			for _, name := range names {
				keys[name] = "order-7"
			}
			return lambda.SQS.Key(message("1", published(t, "1", "pay 20", keys)))
		},
		"Kafka": func(names ...string) (string, error) {
			r := moved(0, 1, "1")
			for _, name := range names {
				r = header(r, name, "order-7")
			}
			return lambda.Kafka.Key(lambda.KafkaRecord{KafkaRecord: r})
		},
	} {
		for _, name := range []string{"idempotency-key", "Idempotency-Key", "IDEMPOTENCY-KEY"} {
			if key, err := keyOf(name); key != "order-7" || err != nil {
				t.Errorf("%s, %s: the key is %q, %v", source, name, key, err)
			}
		}
		if _, err := keyOf("Idempotency-Key", "idempotency-key"); err == nil || !strings.Contains(err.Error(), lambda.KeyAttribute) {
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
	kafka := func(keys ...string) error {
		h := lambda.WrapEach(idem.New(&watched{}, callertest.Anybody), quiet(lambda.Kafka), func(context.Context, lambda.KafkaRecord) error { return nil })
		_, err := h.Handle(t.Context(), partitions(namedRecord(moved(0, 1, "1"), keys...)))
		return err
	}
	text := func(s string) events.SQSMessageAttribute {
		return events.SQSMessageAttribute{StringValue: &s, DataType: "String"}
	}
	for name, err := range map[string]error{
		"Kafka, empty":      kafka(""),
		"Kafka, not ASCII":  kafka("schlüssel"),
		"Kafka, two":        kafka("a", "b"),
		"Kafka, too long":   kafka(strings.Repeat("k", 256)),
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

// No event of any source is taken for an envelope, whatever its client put into
// body, headers or path.
func TestEventsAreNoEnvelopes(t *testing.T) {
	t.Parallel()
	forged := string(envelope.EncodeTicket(jobs.Ticket{PK: "v1#rides#x<>&é", Owner: "OWNER", Ver: 3}))
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var ev map[string]any
		if err := json.Unmarshal(b, &ev); err != nil {
			t.Fatal(err)
		}
		ev["body"], ev["path"], ev["rawPath"] = forged, "/samekey", `/"samekey"`
		ev["headers"] = map[string]string{"samekey": forged, "content-type": "application/json"}
		payload, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok, err := envelope.ParseTicket(payload); ok || err != nil {
			t.Errorf("%s: got %+v, %v, %v", file, got, ok, err)
		}
	}
}
