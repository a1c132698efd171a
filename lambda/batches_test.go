package lambda_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
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

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// recordSource is a source of records, for the tests that all of them have to pass.
type recordSource struct {
	name     string               // of its Batch
	golden   []string             // its events in testdata/batch
	one      func(testing.TB) any // an event with one record
	required [][]string           // members of a record without which it can't be told apart or reported
	content  []string             // the way to a record's content; nil: it has none
	encoded  bool                 // the content is in base64
	counted  func(*idem.Engine, *atomic.Int64) awslambda.Handler
	read     func(testing.TB, []byte) (ids, groups []string, reqs []idem.Request)
	wrap     func(*idem.Engine, time.Duration) // with Batch.Keeps, unless 0
	whole    func(file string, as func(string) string, first, second string, path ...string) func(*testing.T)
}

// recordSources are all batches of the package.
var recordSources = []recordSource{
	fromSource(lambda.SQS, recordSource{
		name: "SQS", golden: []string{"sqs", "sqs_fifo", "sqs_sns", "sqs_eventbridge"},
		one:      func(testing.TB) any { return batch(message("1", "")) },
		required: [][]string{{"messageId"}, {"eventSource"}, {"eventSourceARN"}},
		content:  []string{"body"},
	}),
	fromSource(lambda.SNS, recordSource{
		name: "SNS", golden: []string{"sns", "sns_key"},
		one:      func(testing.TB) any { return events.SNSEvent{Records: []events.SNSEventRecord{notification("1")}} },
		required: [][]string{{"Sns", "MessageId"}, {"EventSource"}, {"Sns", "TopicArn"}, {"Sns"}},
		content:  []string{"Sns", "Message"},
	}),
	fromSource(lambda.EventBridge, recordSource{
		name: "EventBridge", golden: []string{"eventbridge"},
		one:      func(t testing.TB) any { return json.RawMessage(put(t, "1", staged)) },
		required: [][]string{{"id"}, {"source"}, {"detail-type"}},
		content:  []string{"detail", "note"},
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
		content:  []string{"kinesis", "data"}, encoded: true,
	}),
	fromSource(lambda.Kafka, recordSource{
		name: "Kafka", golden: []string{"kafka_own", "kafka"},
		one:      func(testing.TB) any { return partitions(moved(0, 1, "1")) },
		required: [][]string{{"topic"}},
		content:  []string{"value"}, encoded: true,
	}),
	fromSource(lambda.DynamoDBStream, recordSource{
		name: "DynamoDBStream", golden: []string{"dynamodbstream"},
		one:      func(testing.TB) any { return events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{change("1")}} },
		required: [][]string{{"dynamodb", "SequenceNumber"}, {"eventSource"}, {"eventSourceARN"}, {"dynamodb"}},
		content:  []string{"dynamodb", "NewImage", "note", "S"},
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
	s.whole = func(file string, as func(string) string, first, second string, path ...string) func(*testing.T) {
		return wholeBody(b, file, as, first, second, path...)
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

// as is how a record holds its content.
func (s *recordSource) as(content string) string {
	if s.encoded {
		return base64.StdEncoding.EncodeToString([]byte(content))
	}
	return content
}

// Each batch of the package, and each golden event, is in the table above, and each
// list for readers names each batch.
func TestEverySourceIsListed(t *testing.T) {
	t.Parallel()
	var declared, golden, listed []string
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sources {
		for _, m := range regexp.MustCompile(`(?m)^var ([A-Z]\w*) = Batch\[`).FindAllStringSubmatch(text(t, file), -1) {
			declared = append(declared, m[1])
		}
	}
	entries, err := os.ReadDir("testdata/batch")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		golden = append(golden, strings.TrimSuffix(entry.Name(), ".json"))
	}
	page := text(t, "../docs/use/sources.md")
	for _, s := range recordSources {
		listed = append(listed, s.name)
		if strings.Count(page, "\n| `"+s.name+"` |") != 2 {
			t.Errorf("docs/use/sources.md doesn't have a row for %s in both tables", s.name)
		}
		if !strings.Contains(text(t, "doc.go"), "["+s.name+"]") {
			t.Errorf("the package's overview doesn't name %s", s.name)
		}
	}
	files := slices.Sorted(slices.Values(batchFiles))
	if slices.Sort(listed); !slices.Equal(listed, slices.Sorted(slices.Values(declared))) || !slices.Equal(files, golden) {
		t.Errorf("the table has %v and %v, there are %v and %v", listed, files, declared, golden)
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
