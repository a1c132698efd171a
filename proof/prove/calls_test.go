package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A call costs what its input says, by the prices of its service.
func TestCostOf(t *testing.T) {
	t.Parallel()
	it := map[string]types.AttributeValue{"a": &types.AttributeValueMemberS{Value: strings.Repeat("x", 1500)}} // two units
	put := types.WriteRequest{PutRequest: &types.PutRequest{Item: it}}
	for _, test := range []struct {
		service string
		in      any
		want    Cost
	}{
		{"DynamoDB", &dynamodb.PutItemInput{Item: it}, Cost{Writes: 3}},
		{"DynamoDB", &dynamodb.UpdateItemInput{ExpressionAttributeValues: it}, Cost{Writes: 3}},
		{"DynamoDB", &dynamodb.DeleteItemInput{}, Cost{Writes: 2}},
		{"DynamoDB", &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{Item: it}}, {}}}, Cost{Writes: 12}},
		{"DynamoDB", &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"t": {put, put}}}, Cost{Writes: 4}},
		{"DynamoDB", &dynamodb.GetItemInput{}, Cost{Reads: 1}},
		{"DynamoDB", &dynamodb.QueryInput{}, Cost{Reads: 1}},
		{"DynamoDB", &dynamodb.ScanInput{}, Cost{Reads: 128}},
		{"DynamoDB", nil, Cost{}},
		{"CloudFormation", nil, Cost{}},
		{"STS", nil, Cost{}},
		{"Lambda", nil, Cost{Calls: invocation20}},
		{"DynamoDB Streams", nil, Cost{Reads: 1}},
		{"S3", nil, Cost{Calls: 1}},
	} {
		if got := costOf(test.service, test.in); got != test.want {
			t.Errorf("%s, %T: %+v", test.service, test.in, got)
		}
	}
}
