package lambda_test

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/lambda"
)

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
