package eventsource_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// patience ends a test that fails; no figure depends on it.
const patience = 10 * time.Minute

// streamedTable is a table of DynamoDB Local with a stream.
type streamedTable struct {
	db        *dynamodb.Client
	streams   *dynamodbstreams.Client
	name, arn string
}

func newStreamedTable(t *testing.T) *streamedTable {
	t.Helper()
	db := dynamotest.Start(t)
	client := db.Client()
	name := strings.NewReplacer("/", ".").Replace(t.Name())
	out, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	options := client.Options()
	return &streamedTable{
		db: client,
		streams: dynamodbstreams.New(dynamodbstreams.Options{
			BaseEndpoint: aws.String(db.Endpoint), Region: options.Region, Credentials: options.Credentials,
			HTTPClient: options.HTTPClient, Retryer: aws.NopRetryer{},
		}),
		name: name, arn: *out.TableDescription.LatestStreamArn,
	}
}

func (s *streamedTable) put(t *testing.T, item map[string]types.AttributeValue) {
	t.Helper()
	if _, err := s.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(s.name), Item: item}); err != nil {
		t.Fatal(err)
	}
}

func item(pk, st string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}, "st": &types.AttributeValueMemberS{Value: st}}
}

// drain is a real handler of stream events, and what it saw.
type drain chan events.DynamoDBEventRecord

func newDrain() drain { return make(drain, 1000) }

func (d drain) handle(_ context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	for _, r := range ev.Records {
		d <- r
	}
	return events.DynamoDBEventResponse{}, nil
}

// next returns the next n records as name of the event and key.
func (d drain) next(t *testing.T, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for len(got) < n {
		select {
		case r := <-d:
			got = append(got, r.EventName+" "+r.Change.Keys["pk"].String())
		case <-ctx.Done():
			t.Fatalf("got %v, want %d records", got, n)
		}
	}
	return got
}

func (d drain) start(t *testing.T, table *streamedTable, change func(*eventsource.Stream)) *eventsource.Mapping {
	t.Helper()
	fn := lambdarun.InProcess(awslambda.NewHandler(d.handle), time.Minute)
	t.Cleanup(func() { _ = fn.Close() })
	s := eventsource.Stream{
		Function: fn, API: table.streams, ARN: table.arn, ReportBatchItemFailures: true,
		Hooks: eventsource.Hooks{Error: func(err error) { t.Errorf("told %v", err) }},
	}
	if change != nil {
		change(&s)
	}
	m, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestStreamOnDynamoDBLocal(t *testing.T) {
	t.Parallel()
	table, d := newStreamedTable(t), newDrain()
	table.put(t, item("before", "open"))
	d.start(t, table, nil)
	table.put(t, map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "a<b>&"}, "st": &types.AttributeValueMemberS{Value: "open"},
		"bytes": &types.AttributeValueMemberB{Value: []byte{0, 1, 0xff}}, "n": &types.AttributeValueMemberN{Value: "12345678901234567890.5"},
		"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberNULL{Value: true}}},
	})
	if got, want := d.next(t, 1), []string{"INSERT before"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var record events.DynamoDBEventRecord
	select {
	case record = <-d:
	case <-time.After(patience):
		t.Fatal("no second record")
	}
	image := record.Change.NewImage
	if image["pk"].String() != "a<b>&" || !slices.Equal(image["bytes"].Binary(), []byte{0, 1, 0xff}) || image["n"].Number() != "12345678901234567890.5" || !image["list"].List()[0].IsNull() {
		t.Errorf("image %+v", image)
	}
	if record.EventSourceArn != table.arn || record.EventSource != "aws:dynamodb" || record.AWSRegion == "" || record.EventID == "" || record.EventVersion != "1.1" ||
		record.Change.StreamViewType != "NEW_AND_OLD_IMAGES" || record.Change.SizeBytes == 0 || time.Since(record.Change.ApproximateCreationDateTime.Time) > time.Hour {
		t.Errorf("record %+v", record)
	}

	// A change, a deletion, and many in order; a change that is none makes no record.
	table.put(t, item("a<b>&", "done"))
	table.put(t, item("a<b>&", "done"))
	if _, err := table.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table.name), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "before"}}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"MODIFY a<b>&", "REMOVE before"}
	for i := range 50 {
		table.put(t, item(strconv.Itoa(i), "open"))
		want = append(want, "INSERT "+strconv.Itoa(i))
	}
	if diff := cmp.Diff(want, d.next(t, len(want))); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// Where a second table has a stream, DynamoDB Local refuses an iterator taken
// before the first record.
func TestStreamOnDynamoDBLocalStartsBeforeTheFirstRecord(t *testing.T) {
	t.Parallel()
	for _, position := range []string{eventsource.TrimHorizon, eventsource.Latest} {
		t.Run(position, func(t *testing.T) {
			t.Parallel()
			table, d := newStreamedTable(t), newDrain()
			d.start(t, table, func(s *eventsource.Stream) { s.StartingPosition = position })
			table.put(t, item("first", "open"))
			if got, want := d.next(t, 1), []string{"INSERT first"}; !cmp.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			table.put(t, item("second", "open"))
			if got, want := d.next(t, 1), []string{"INSERT second"}; !cmp.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
