package lambda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const dynamoDBStreamKind = "a DynamoDB stream event"

// DynamoDBStream takes the records of a table's stream in their order. Don't change
// DynamoDBStream: change a copy, as [Batch] shows. The event source mapping's settings and the
// effects of failures are the same as for [Kinesis].
//
// The key of a record is the event id, which names one change of one item. The scope is the stream
// and the function. Records with the same key must have the same kind of change, item keys and
// images.
var DynamoDBStream = Batch[events.DynamoDBEvent, events.DynamoDBEventRecord, events.DynamoDBEventResponse]{
	Records: dynamoDBStreamRecords,
	ID:      func(r events.DynamoDBEventRecord) string { return r.Change.SequenceNumber },
	Key:     func(r events.DynamoDBEventRecord) (string, error) { return r.EventID, nil },
	Request: dynamoDBStreamRequest,
	Keeps:   keepsDynamoDB,
	shared:  true,
	Group:   func(events.DynamoDBEventRecord) string { return shard },
	Reply:   dynamoDBStreamReply,
}

// keepsDynamoDB: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
const keepsDynamoDB = day

func dynamoDBStreamRecords(ev events.DynamoDBEvent) ([]events.DynamoDBEventRecord, error) {
	return ev.Records, checkOrigins(dynamoDBStreamKind, "aws:dynamodb", len(ev.Records), func(i int) origin {
		r := &ev.Records[i]
		return origin{r.EventSource, r.Change.SequenceNumber, r.EventSourceArn}
	})
}

func dynamoDBStreamRequest(ctx context.Context, r events.DynamoDBEventRecord) (idem.Request, error) {
	body, err := json.Marshal(struct {
		Event          string
		Keys, New, Old map[string]any
	}{r.EventName, plainItem(r.Change.Keys), plainItem(r.Change.NewImage), plainItem(r.Change.OldImage)})
	return idem.Request{
		Source: consumerScope(ctx, r.EventSourceArn),
		Route:  "DynamoDBStream " + tableName(r.EventSourceArn),
		Body:   body,
	}, err
}

// tableName returns TABLE of arn:…:table/TABLE/stream/LABEL.
func tableName(streamARN string) string {
	_, rest, _ := strings.Cut(streamARN, "/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// plainItem returns an item in a form whose JSON doesn't depend on the order of the
// values in sets.
func plainItem(item map[string]events.DynamoDBAttributeValue) map[string]any {
	if item == nil {
		return nil
	}
	plain := make(map[string]any, len(item))
	for name, v := range item {
		plain[name] = plainValue(v)
	}
	return plain
}

func plainValue(v events.DynamoDBAttributeValue) any {
	switch v.DataType() {
	case events.DataTypeMap:
		return map[string]any{"M": plainItem(v.Map())}
	case events.DataTypeList:
		list := make([]any, 0, len(v.List()))
		for _, el := range v.List() {
			list = append(list, plainValue(el))
		}
		return map[string]any{"L": list}
	case events.DataTypeStringSet:
		return map[string]any{"SS": slices.Sorted(slices.Values(v.StringSet()))}
	case events.DataTypeNumberSet:
		return map[string]any{"NS": slices.Sorted(slices.Values(v.NumberSet()))}
	case events.DataTypeBinarySet:
		set := make([]string, 0, len(v.BinarySet()))
		for _, el := range v.BinarySet() {
			set = append(set, base64.StdEncoding.EncodeToString(el))
		}
		slices.Sort(set)
		return map[string]any{"BS": set}
	default:
		return v
	}
}

// dynamoDBStreamReply names only the first failure, because Lambda delivers again all
// records from the lowest reported sequence number on.
func dynamoDBStreamReply(failed []string) events.DynamoDBEventResponse {
	re := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	for _, id := range failed[:min(len(failed), 1)] {
		re.BatchItemFailures = append(re.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: id})
	}
	return re
}
