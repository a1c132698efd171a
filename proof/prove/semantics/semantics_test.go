package semantics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

const table = "table"

// keeper is a database that keeps each assumption: package fakedynamo, with tokens, limits, units and a stream.
type keeper struct {
	fault fault

	mu     sync.Mutex
	sent   []string
	db     fakedynamo.DB
	tokens map[string]string
	stream []streamtypes.Record
}

// fault changes a request or its answer, which answer makes.
type fault func(k *keeper, in any, answer fault) (any, error)

// place is a table in the database.
func (k *keeper) place() Place {
	k.tokens = map[string]string{}
	k.db.Changed = func(c fakedynamo.Change) {
		kind := streamtypes.OperationTypeModify
		if c.Old == nil {
			kind = streamtypes.OperationTypeInsert
		}
		k.stream = append(k.stream, streamtypes.Record{EventName: kind, Dynamodb: &streamtypes.StreamRecord{
			Keys: image(item{"pk": c.New["pk"]}), OldImage: image(c.Old), NewImage: image(c.New),
		}})
	}
	api := []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("keeper", func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.sent = append(k.sent, sent(in.Parameters))
			out.Result, err = k.fault(k, in.Parameters, kept)
			return out, meta, err
		}), middleware.Before)
	}}
	return Place{
		DB: dynamodb.New(dynamodb.Options{APIOptions: api}), Streams: dynamodbstreams.New(dynamodbstreams.Options{APIOptions: api}), Table: table,
	}
}

// image is an item in the stream.
func image(it item) map[string]streamtypes.AttributeValue {
	out := map[string]streamtypes.AttributeValue{}
	for name, v := range it {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			out[name] = &streamtypes.AttributeValueMemberS{Value: v.Value}
		case *types.AttributeValueMemberN:
			out[name] = &streamtypes.AttributeValueMemberN{Value: v.Value}
		}
	}
	return out
}

// kept answers by the assumptions.
func kept(k *keeper, in any, _ fault) (any, error) {
	ctx := context.Background()
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		out, err := k.db.PutItem(ctx, in)
		if err == nil && in.ReturnConsumedCapacity == types.ReturnConsumedCapacityTotal {
			out.ConsumedCapacity = &types.ConsumedCapacity{CapacityUnits: aws.Float64(unitsOf(in.Item))}
		}
		return out, err
	case *dynamodb.UpdateItemInput:
		return k.db.UpdateItem(ctx, in)
	case *dynamodb.GetItemInput:
		return k.db.GetItem(ctx, in)
	case *dynamodb.QueryInput:
		return k.db.Query(ctx, in)
	case *dynamodb.TransactWriteItemsInput:
		return k.transact(ctx, in)
	case *dynamodb.DescribeTableInput:
		return &dynamodb.DescribeTableOutput{Table: &types.TableDescription{LatestStreamArn: aws.String("arn of " + *in.TableName)}}, nil
	case *dynamodbstreams.DescribeStreamInput:
		shards := []streamtypes.Shard{{ShardId: aws.String("late"), ParentShardId: aws.String("early")}, {ShardId: aws.String("early"), ParentShardId: aws.String("gone")}}
		return &dynamodbstreams.DescribeStreamOutput{StreamDescription: &streamtypes.StreamDescription{Shards: shards}}, nil
	case *dynamodbstreams.GetShardIteratorInput:
		return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String(fmt.Sprint(*in.ShardId, " ", -1))}, nil
	case *dynamodbstreams.GetRecordsInput:
		return k.records(*in.ShardIterator)
	}
	return nil, fmt.Errorf("no assumption asks for %T", in)
}

// records are two records of a shard at a time, and none at first. The early shard ends with the third.
func (k *keeper) records(iterator string) (*dynamodbstreams.GetRecordsOutput, error) {
	var shard string
	var at int
	if _, err := fmt.Sscan(iterator, &shard, &at); err != nil {
		return nil, err
	}
	of := k.stream[min(3, len(k.stream)):]
	if shard == "early" {
		of = k.stream[:min(3, len(k.stream))]
	}
	out, end := &dynamodbstreams.GetRecordsOutput{}, 0
	if at >= 0 {
		end = min(at+2, len(of))
		out.Records = slices.Clone(of[at:end])
	}
	if shard != "early" || end < 3 {
		out.NextShardIterator = aws.String(fmt.Sprint(shard, " ", end))
	}
	return out, nil
}

func refuse(format string, args ...any) error {
	return &smithy.GenericAPIError{Code: "ValidationException", Message: fmt.Sprintf(format, args...)}
}

func (k *keeper) transact(ctx context.Context, in *dynamodb.TransactWriteItemsInput) (any, error) {
	size, used := 0, 0.0
	for _, t := range in.TransactItems {
		if t.Put != nil {
			size += itemsize.Of(t.Put.Item)
			used += 2 * unitsOf(t.Put.Item)
		}
	}
	if size > 4<<20 || len(in.TransactItems) > 100 {
		return nil, refuse("%d items of %d bytes", len(in.TransactItems), size)
	}
	out := &dynamodb.TransactWriteItemsOutput{}
	if in.ReturnConsumedCapacity == types.ReturnConsumedCapacityTotal {
		out.ConsumedCapacity = []types.ConsumedCapacity{{CapacityUnits: &used}}
	}
	token := aws.ToString(in.ClientRequestToken)
	if earlier := k.tokens[token]; earlier == sent(in) {
		return out, nil
	} else if earlier != "" {
		return nil, &types.IdempotentParameterMismatchException{}
	}
	if _, err := k.db.TransactWriteItems(ctx, in); err != nil {
		return nil, err
	}
	if token != "" {
		k.tokens[token] = sent(in)
	}
	return out, nil
}

func unitsOf(it item) float64 { return math.Ceil(float64(itemsize.Of(it)) / 1024) }

var run = regexp.MustCompile(`[A-Z2-7]{26}#?`)

// sent is a request in a line, without the run's key.
func sent(in any) string { return run.ReplaceAllString(sentBy(in), "") }

func sentBy(in any) string {
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		return write("put", in.Item, nil, in.ConditionExpression, nil)
	case *dynamodb.UpdateItemInput:
		return write("update", in.Key, in.UpdateExpression, in.ConditionExpression, in.ExpressionAttributeValues)
	case *dynamodb.TransactWriteItemsInput:
		var all []string
		for _, t := range in.TransactItems {
			if t.Put != nil {
				all = append(all, write("put", t.Put.Item, nil, t.Put.ConditionExpression, nil))
			} else {
				all = append(all, write("update", t.Update.Key, t.Update.UpdateExpression, nil, t.Update.ExpressionAttributeValues))
			}
		}
		return "transact " + strings.Join(all, ", ")
	case *dynamodb.GetItemInput:
		return fmt.Sprint(map[bool]string{true: "get ", false: "look for "}[aws.ToBool(in.ConsistentRead)], textOf(in.Key["pk"]))
	case *dynamodb.QueryInput:
		return fmt.Sprint("query ", *in.IndexName)
	case *dynamodbstreams.DescribeStreamInput:
		return "shards of the " + *in.StreamArn
	case *dynamodbstreams.GetShardIteratorInput:
		return fmt.Sprintf("%s of %s of the %s", in.ShardIteratorType, *in.ShardId, *in.StreamArn)
	case *dynamodbstreams.GetRecordsInput:
		return "records " + *in.ShardIterator
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", in), "*dynamodb.")
}

// write is a write in words: the item or its key, the update, the condition and the values. A body is told by the item's size.
func write(kind string, it item, set, condition *string, values item) string {
	it = maps.Clone(it)
	words := []string{kind, textOf(it["pk"])}
	if size := itemsize.Of(it); it["body"] != nil {
		it["body"] = num(size)
	}
	delete(it, "pk")
	for _, more := range []item{it, values} {
		if len(more) > 0 {
			words = append(words, strings.TrimPrefix(textOf(record(more)), "map"))
		}
	}
	if set != nil {
		words = append(words, *set)
	}
	if condition != nil {
		words = append(words, "if", *condition)
	}
	return strings.Join(words, " ")
}

// outcome is what an examination says, in a line.
func outcome(figure string, err error) string {
	switch {
	case err == nil:
		return strings.TrimSpace("holds " + figure)
	case IsDifference(err):
		return run.ReplaceAllString("differs: "+err.Error(), "")
	}
	if failed, ok := errors.AsType[*smithy.OperationError](err); ok {
		err = failed.Err
	}
	return "shows nothing: " + err.Error()
}
