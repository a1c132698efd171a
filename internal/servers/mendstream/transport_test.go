package mendstream_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/servers/mendstream"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// newClient returns a client of the streams at an endpoint, mended.
func newClient(endpoint string, credentials aws.CredentialsProvider) *dynamodbstreams.Client {
	return dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1",
		HTTPClient:  &http.Client{Transport: mendstream.Transport(nil)},
		Credentials: credentials,
	})
}

func TestEmptyMapsOfDynamoDBLocalAreEmptyMaps(t *testing.T) {
	t.Parallel()
	db := dynamotest.Start(t)
	const table = "mendstream"
	if err := dynamo.CreateTable(t.Context(), db.Client(), table); err != nil {
		t.Fatal(err)
	}
	empty := &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
	_, err := db.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "a"}, "jobs": empty, "n": &types.AttributeValueMemberN{Value: "12345678901234567890"},
		"deep": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"M": empty, "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{empty}}}},
		"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{}}, "text": &types.AttributeValueMemberS{},
	}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := db.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(db.Endpoint, db.Client().Options().Credentials)
	stream, err := client.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: out.Table.LatestStreamArn})
	if err != nil {
		t.Fatal(err)
	}
	iterator, err := client.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: out.Table.LatestStreamArn, ShardId: stream.StreamDescription.Shards[0].ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	records, err := client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator.ShardIterator})
	if err != nil || len(records.Records) != 1 {
		t.Fatal(err, records)
	}
	none := &streamtypes.AttributeValueMemberM{Value: map[string]streamtypes.AttributeValue{}}
	want := map[string]streamtypes.AttributeValue{
		"pk": &streamtypes.AttributeValueMemberS{Value: "a"}, "jobs": none, "n": &streamtypes.AttributeValueMemberN{Value: "12345678901234567890"},
		"deep": &streamtypes.AttributeValueMemberM{Value: map[string]streamtypes.AttributeValue{"M": none, "l": &streamtypes.AttributeValueMemberL{Value: []streamtypes.AttributeValue{none}}}},
		"list": &streamtypes.AttributeValueMemberL{Value: []streamtypes.AttributeValue{}}, "text": &streamtypes.AttributeValueMemberS{},
	}
	ignore := cmpopts.IgnoreUnexported(
		streamtypes.AttributeValueMemberS{}, streamtypes.AttributeValueMemberN{}, streamtypes.AttributeValueMemberM{}, streamtypes.AttributeValueMemberL{})
	if diff := cmp.Diff(want, records.Records[0].Dynamodb.NewImage, ignore); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
}

func TestOtherAnswersPass(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ target, body, want string }{
		{"DynamoDBStreams_20120810.GetRecords", `{"Records":[{"dynamodb":{"NewImage":{"a":{}}}}]}`, `{"Records":[{"dynamodb":{"NewImage":{"a":{"M":{}}}}}]}`},
		{"DynamoDBStreams_20120810.GetRecords", `{"Records":[]}`, `{"Records":[]}`},
		{"DynamoDBStreams_20120810.GetRecords", `{}`, `{}`},
		{"DynamoDBStreams_20120810.GetRecords", `{}, no JSON`, `{}, no JSON`},
		{"DynamoDBStreams_20120810.DescribeStream", `{"Records":[{"dynamodb":{"NewImage":{"a":{}}}}]}`, `{"Records":[{"dynamodb":{"NewImage":{"a":{}}}}]}`},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.body) }))
		defer srv.Close()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Amz-Target", tt.target)
		resp, err := (&http.Client{Transport: mendstream.Transport(nil)}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != tt.want || resp.ContentLength != int64(len(tt.want)) {
			t.Errorf("%s %s: %s, %v", tt.target, tt.body, got, err)
		}
	}
}
