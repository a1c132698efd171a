package semantics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// probe is an examination under way. Its keys begin with run.
type probe struct {
	Place
	run string
}

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int) types.AttributeValue    { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }

func record(m item) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: m}
}

// of is the item with the key name and more attributes, as name, value, name, value.
func (p *probe) of(name string, more ...any) item {
	it := item{"pk": str(p.run + "#" + name)}
	for pair := range slices.Chunk(more, 2) {
		it[pair[0].(string)] = pair[1].(types.AttributeValue)
	}
	return it
}

// sized is an attribute that makes the item of that name n bytes large.
func (p *probe) sized(name string, n int) types.AttributeValue {
	return str(strings.Repeat("x", n-len("pk")-len(p.run)-len("#")-len(name)-len("body")))
}

func (p *probe) put(ctx context.Context, it item, condition string) (*dynamodb.PutItemOutput, error) {
	return p.DB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &p.Table, Item: it, ConditionExpression: text(condition),
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
}

func (p *probe) update(ctx context.Context, name, set, condition string, args item) (*dynamodb.UpdateItemOutput, error) {
	return p.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &p.Table, Key: p.of(name), UpdateExpression: &set, ConditionExpression: text(condition), ExpressionAttributeValues: args,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
}

func (p *probe) get(ctx context.Context, name string) (item, error) {
	out, err := p.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.Table, Key: p.of(name), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

func (p *probe) transact(ctx context.Context, token string, items ...types.TransactWriteItem) (*dynamodb.TransactWriteItemsOutput, error) {
	return p.DB.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: items, ClientRequestToken: text(token), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
}

func (p *probe) putIn(it item, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &p.Table, Item: it, ConditionExpression: text(condition),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func (p *probe) updateIn(name, set string, args item) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{TableName: &p.Table, Key: p.of(name), UpdateExpression: &set, ExpressionAttributeValues: args}}
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// refused returns the item that a refusal by a condition has.
func refused(err error) (item, error) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return failed.Item, nil
	}
	if err == nil {
		return nil, differs("the write was made")
	}
	return nil, err
}

// cancelled returns the reasons of a cancelled transaction.
func cancelled(err error) ([]types.CancellationReason, error) {
	if failed, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return failed.CancellationReasons, nil
	}
	if err == nil {
		return nil, differs("the transaction was made")
	}
	return nil, err
}

// invalid fails unless DynamoDB refuses a request as invalid.
func invalid(err error) error {
	if err == nil {
		return differs("it was accepted")
	}
	if refusal, ok := errors.AsType[smithy.APIError](err); ok && refusal.ErrorCode() == "ValidationException" {
		return nil
	}
	reasons, _ := cancelled(err)
	for _, r := range reasons {
		if aws.ToString(r.Code) == "ValidationError" {
			return nil
		}
	}
	return err
}

func textOf(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberM:
		texts := map[string]string{}
		for name, one := range v.Value {
			texts[name] = textOf(one)
		}
		return fmt.Sprint(texts)
	case nil:
		return "nothing"
	}
	return fmt.Sprintf("%T", v)
}

// same fails unless an item is another, whole.
func same(got, expected item) error {
	if a, b := textOf(record(got)), textOf(record(expected)); a != b {
		return differs("the item is %s, not %s", a, b)
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// want fails unless an attribute has a value.
func want(it item, name, value string) error {
	if got := textOf(it[name]); got != value {
		return differs("%s is %s, not %s", name, got, value)
	}
	return nil
}
