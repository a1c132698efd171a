package eventsource_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/eventsource"
)

var update = flag.Bool("update", false, "write the golden files")

// wantGolden compares byte by byte; the files are indented, which is undone.
func wantGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		var b bytes.Buffer
		if err := json.Indent(&b, got, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, golden); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestStreamEventIsLambdas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where it is the year 2000
		api, f := newFakeStream("a"), &function{}
		key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "v1#<jane>&\u2028é"}}
		image := map[string]types.AttributeValue{
			"pk":    key["pk"],
			"n":     &types.AttributeValueMemberN{Value: "-12345678901234567890.123456789"},
			"b":     &types.AttributeValueMemberB{Value: []byte{0, 1, 0xfb, 0xff}},
			"yes":   &types.AttributeValueMemberBOOL{Value: true},
			"no":    &types.AttributeValueMemberBOOL{Value: false},
			"null":  &types.AttributeValueMemberNULL{Value: true},
			"ss":    &types.AttributeValueMemberSS{Value: []string{"x", "y"}},
			"ns":    &types.AttributeValueMemberNS{Value: []string{"1", "2.50"}},
			"bs":    &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}},
			"list":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: ""}, &types.AttributeValueMemberL{}}},
			"map":   &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"inner": &types.AttributeValueMemberM{}}},
			"empty": &types.AttributeValueMemberB{Value: []byte{}},
		}
		api.write("a", func(r *types.Record) {
			r.Dynamodb.Keys, r.Dynamodb.NewImage = key, image
			r.Dynamodb.SequenceNumber = aws.String("100000000000000000001")
			r.Dynamodb.SizeBytes = aws.Int64(120)
		})
		api.write("a", func(r *types.Record) {
			r.EventName = types.OperationTypeModify
			r.Dynamodb.Keys, r.Dynamodb.NewImage, r.Dynamodb.OldImage = key, key, image
			r.Dynamodb.StreamViewType = types.StreamViewTypeNewAndOldImages
		})
		api.write("a", func(r *types.Record) { // by TTL
			r.EventName = types.OperationTypeRemove
			r.UserIdentity = &types.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")}
			r.Dynamodb.Keys, r.Dynamodb.OldImage = key, key
			r.Dynamodb.StreamViewType = types.StreamViewTypeKeysOnly
		})
		startStream(t, api, f, eventsource.Stream{})
		synctest.Wait()
		payload := f.payload(0)
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			t.Fatal(err)
		}
		first, removed := event.Records[0], event.Records[2]
		if got := first.Change.ApproximateCreationDateTime.Time; !got.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("creation time: got %s", got)
		}
		want := map[string]events.DynamoDBAttributeValue{
			"pk":    events.NewStringAttribute("v1#<jane>&\u2028é"),
			"n":     events.NewNumberAttribute("-12345678901234567890.123456789"),
			"b":     events.NewBinaryAttribute([]byte{0, 1, 0xfb, 0xff}),
			"yes":   events.NewBooleanAttribute(true),
			"no":    events.NewBooleanAttribute(false),
			"null":  events.NewNullAttribute(),
			"ss":    events.NewStringSetAttribute([]string{"x", "y"}),
			"ns":    events.NewNumberSetAttribute([]string{"1", "2.50"}),
			"bs":    events.NewBinarySetAttribute([][]byte{{1}, {2, 3}}),
			"list":  events.NewListAttribute([]events.DynamoDBAttributeValue{events.NewStringAttribute(""), events.NewListAttribute([]events.DynamoDBAttributeValue{})}),
			"map":   events.NewMapAttribute(map[string]events.DynamoDBAttributeValue{"inner": events.NewMapAttribute(map[string]events.DynamoDBAttributeValue{})}),
			"empty": events.NewBinaryAttribute([]byte{}),
		}
		if diff := cmp.Diff(want, first.Change.NewImage, cmp.AllowUnexported(events.DynamoDBAttributeValue{})); diff != "" {
			t.Errorf("image as aws-lambda-go reads it (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(&events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}, removed.UserIdentity); diff != "" {
			t.Errorf("user identity (-want +got):\n%s", diff)
		}
		if first.UserIdentity != nil || removed.Change.NewImage != nil || first.EventSourceArn != streamARN || first.AWSRegion != "eu-west-1" {
			t.Errorf("got %s", payload)
		}
	})
}

func TestQueueEventIsLambdas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		api.add(sqstypes.Message{
			MessageId:              aws.String("059f36b4-87a3-44ab-83d2-661975830a7d"),
			ReceiptHandle:          aws.String("AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a"),
			Body:                   aws.String(`{"ride":"<1>&"}`),
			MD5OfBody:              aws.String("e4e68fb7bd0e697a0ae8f1bb342846b3"),
			MD5OfMessageAttributes: aws.String("b51fb21666798a04bb45833ff6dbad93"),
			Attributes: map[string]string{
				"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183", "SenderId": "AIDAIENQZJOLO23YVJ4VO",
				"ApproximateFirstReceiveTimestamp": "1545082649185",
			},
			MessageAttributes: map[string]sqstypes.MessageAttributeValue{
				"kind":  {DataType: aws.String("String"), StringValue: aws.String("receipt")},
				"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 0xfb, 0xff}},
			},
		})
		api.send("plain")
		startQueue(t, api, f, eventsource.Queue{})
		after(time.Second)
		payload := f.payload(0)
		var event events.SQSEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			t.Fatal(err)
		}
		want := map[string]events.SQSMessageAttribute{
			"kind":  {DataType: "String", StringValue: aws.String("receipt"), StringListValues: []string{}, BinaryListValues: [][]byte{}},
			"bytes": {DataType: "Binary", BinaryValue: []byte{0, 1, 0xfb, 0xff}, StringListValues: []string{}, BinaryListValues: [][]byte{}},
		}
		if diff := cmp.Diff(want, event.Records[0].MessageAttributes); diff != "" {
			t.Errorf("message attributes as aws-lambda-go reads them (-want +got):\n%s", diff)
		}
		if m := event.Records[0]; m.Body != `{"ride":"<1>&"}` || m.EventSourceARN != queueARN || m.AWSRegion != "eu-west-1" || m.Attributes["SentTimestamp"] != "1545082649183" {
			t.Errorf("got %+v", m)
		}
	})
}

// steady puts fixed values in place of ids.
func steady(document []byte) []byte {
	return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`).
		ReplaceAll(document, []byte("00000000-0000-4000-8000-000000000000"))
}
