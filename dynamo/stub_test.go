package dynamo_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
)

// stubAPI takes every write, or refuses every claim.
type stubAPI struct {
	dynamo.API
	refusal error
}

func (s stubAPI) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return nil, s.refusal
}

func (s stubAPI) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, nil
}

// recordingAPI remembers what it was sent.
type recordingAPI struct {
	dynamo.API
	put    *dynamodb.PutItemInput
	update *dynamodb.UpdateItemInput
}

func (r *recordingAPI) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	r.put = in
	return &dynamodb.PutItemOutput{}, nil
}

func (r *recordingAPI) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.update = in
	return &dynamodb.UpdateItemOutput{}, nil
}

// finished is the item as the two writes leave it.
func (r *recordingAPI) finished(b testing.TB) map[string]types.AttributeValue {
	b.Helper()
	item := maps.Clone(r.put.Item)
	set, remove, _ := strings.Cut(strings.TrimPrefix(*r.update.UpdateExpression, "SET "), " REMOVE ")
	for assignment := range strings.SplitSeq(set, ", ") {
		name, placeholder, ok := strings.Cut(assignment, " = ")
		if !ok {
			b.Fatalf("can't read %q", assignment)
		}
		item[name] = r.update.ExpressionAttributeValues[placeholder]
	}
	for name := range strings.SplitSeq(remove, ", ") {
		delete(item, name)
	}
	return item
}
