package fakedynamo

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/base/itemsize"
)

const allOld = types.ReturnValuesOnConditionCheckFailureAllOld

// GetItem implements dynamo.API. Every read is strongly consistent.
func (db *DB) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	t := db.table(aws.ToString(in.TableName))
	pk, ok := in.Key[keyName].(*types.AttributeValueMemberS)
	if !ok {
		return nil, invalid("The provided key element does not match the schema")
	}
	it, err := projected(t.items[pk.Value], in.ProjectionExpression, in.ExpressionAttributeNames)
	return &dynamodb.GetItemOutput{Item: it}, err
}

// PutItem implements dynamo.API.
func (db *DB) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	_, err := db.one(write{
		table: in.TableName, item: in.Item, cond: in.ConditionExpression, names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		allOld: in.ReturnValuesOnConditionCheckFailure == allOld,
	})
	if err != nil {
		return nil, err
	}
	return &dynamodb.PutItemOutput{}, nil
}

// UpdateItem implements dynamo.API.
func (db *DB) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	next, err := db.one(write{
		table: in.TableName, key: in.Key, update: in.UpdateExpression, cond: in.ConditionExpression,
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, allOld: in.ReturnValuesOnConditionCheckFailure == allOld,
	})
	if err != nil {
		return nil, err
	}
	out := &dynamodb.UpdateItemOutput{}
	switch in.ReturnValues {
	case types.ReturnValueAllNew:
		out.Attributes = next
	case types.ReturnValueUpdatedNew:
		out.Attributes = updated(next, aws.ToString(in.UpdateExpression), in.ExpressionAttributeNames)
	case types.ReturnValueNone, types.ReturnValueAllOld, types.ReturnValueUpdatedOld: // nothing to return: this package has no values from before the update
	}
	return out, nil
}

// The function updated returns the attributes that an update has set, with their new values.
func updated(next Item, update string, names map[string]string) Item {
	out, s := make(Item), &scope{names: names}
	for _, a := range parseUpdate(update).upd.set {
		name := s.name(a.path[0])
		out[name] = next[name]
	}
	return out
}

// TransactWriteItems implements dynamo.API. It ignores request tokens, so a repeated transaction is
// applied again.
func (db *DB) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	writes := make([]write, len(in.TransactItems))
	for i, it := range in.TransactItems {
		switch {
		case it.Put != nil:
			p := it.Put
			writes[i] = write{
				table: p.TableName, item: p.Item, cond: p.ConditionExpression, names: p.ExpressionAttributeNames, values: p.ExpressionAttributeValues,
				allOld: p.ReturnValuesOnConditionCheckFailure == allOld,
			}
		case it.Update != nil:
			u := it.Update
			writes[i] = write{
				table: u.TableName, key: u.Key, update: u.UpdateExpression, cond: u.ConditionExpression, names: u.ExpressionAttributeNames,
				values: u.ExpressionAttributeValues, allOld: u.ReturnValuesOnConditionCheckFailure == allOld,
			}
		case it.Delete != nil:
			d := it.Delete
			writes[i] = write{
				table: d.TableName, key: d.Key, remove: true, cond: d.ConditionExpression, names: d.ExpressionAttributeNames,
				values: d.ExpressionAttributeValues, allOld: d.ReturnValuesOnConditionCheckFailure == allOld,
			}
		case it.ConditionCheck != nil:
			c := it.ConditionCheck
			writes[i] = write{
				table: c.TableName, key: c.Key, cond: c.ConditionExpression, names: c.ExpressionAttributeNames,
				values: c.ExpressionAttributeValues, allOld: c.ReturnValuesOnConditionCheckFailure == allOld,
			}
		default:
			return nil, invalid("an empty item of a transaction")
		}
	}
	if err := db.all(writes); err != nil {
		return nil, err
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// BatchGetItem implements dynamo.API.
func (db *DB) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{Responses: make(map[string][]Item)}
	for name, keys := range in.RequestItems {
		t := db.table(name)
		for _, key := range keys.Keys {
			pk, ok := key[keyName].(*types.AttributeValueMemberS)
			if !ok {
				return nil, invalid("The provided key element does not match the schema")
			}
			if it := t.items[pk.Value]; it != nil {
				out.Responses[name] = append(out.Responses[name], it)
			}
		}
	}
	return out, nil
}

// BatchWriteItem implements dynamo.API.
func (db *DB) BatchWriteItem(_ context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		for _, r := range in.RequestItems[name] {
			w := write{table: &name}
			if r.PutRequest != nil {
				w.item = r.PutRequest.Item
			} else {
				w.key, w.remove = r.DeleteRequest.Key, true
			}
			if _, err := db.one(w); err != nil {
				return nil, err
			}
		}
	}
	return &dynamodb.BatchWriteItemOutput{}, nil
}

// maxPage is the size of a scan's page, in bytes. A page ends as soon as its items reach this size.
const maxPage = 1 << 20

// Scan implements stream.ScanAPI.
func (db *DB) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	t := db.table(aws.ToString(in.TableName))
	total := max(aws.ToInt32(in.TotalSegments), 1)
	out := &dynamodb.ScanOutput{}
	begin, last, size := 0, "", 0
	if start, ok := in.ExclusiveStartKey[keyName].(*types.AttributeValueMemberS); ok {
		begin = t.place[start.Value] + 1
	}
	only := &filter{expr: in.FilterExpression, scope: scope{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues}}
	for i, pk := range t.order[begin:] {
		if int32(begin+i)%total != aws.ToInt32(in.Segment) || t.items[pk] == nil {
			continue
		}
		if in.Limit != nil && out.ScannedCount == *in.Limit || size >= maxPage {
			out.LastEvaluatedKey = Item{keyName: &types.AttributeValueMemberS{Value: last}}
			break
		}
		last = pk
		out.ScannedCount++
		size += itemsize.Of(t.items[pk])
		if ok, err := only.lets(t.items[pk]); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		it, err := projected(t.items[pk], in.ProjectionExpression, in.ExpressionAttributeNames)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, it)
	}
	out.Count = int32(len(out.Items))
	return out, nil
}

// Each table has one index, for Query. The index has these key attributes. An item is in the
// index if it has both attributes.
const (
	indexKey  = "waits"
	indexSort = "wait_ms"
)

// Query implements stream.QueryAPI, for the index "waiting".
func (db *DB) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	t := db.table(aws.ToString(in.TableName))
	if aws.ToString(in.IndexName) == "" {
		return nil, invalid("this package queries an index only")
	}
	var found []string
	for pk := range t.index {
		it := t.items[pk]
		ok, err := matches(it, in.KeyConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, pk)
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		n, _ := order(t.items[a][indexSort], t.items[b][indexSort])
		return cmp.Or(n, cmp.Compare(t.place[a], t.place[b]))
	})
	if start, ok := in.ExclusiveStartKey[keyName].(*types.AttributeValueMemberS); ok {
		found = found[slices.Index(found, start.Value)+1:]
	}
	out := &dynamodb.QueryOutput{}
	for _, pk := range found {
		if in.Limit != nil && out.ScannedCount == *in.Limit {
			break
		}
		out.ScannedCount++
		out.LastEvaluatedKey = Item{keyName: t.items[pk][keyName], indexKey: t.items[pk][indexKey], indexSort: t.items[pk][indexSort]}
		ok, err := matches(t.items[pk], in.FilterExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
		if err != nil {
			return nil, err
		}
		if ok {
			out.Items = append(out.Items, t.items[pk])
		}
	}
	if int(out.ScannedCount) == len(found) {
		out.LastEvaluatedKey = nil
	}
	out.Count = int32(len(out.Items))
	if in.Select == types.SelectCount {
		out.Items = nil
	}
	return out, nil
}

func matches(it Item, expr *string, names map[string]string, values Item) (bool, error) {
	return (&filter{expr: expr, scope: scope{names: names, values: values}}).lets(it)
}

// filter is a condition that is parsed once and then evaluated for many items.
type filter struct {
	expr  *string
	cond  *condition
	scope scope
}

func (f *filter) lets(it Item) (bool, error) {
	if f.expr == nil {
		return true, nil
	}
	if f.cond == nil {
		p := parseCondition(*f.expr)
		if p.err != nil {
			return false, p.err
		}
		f.cond = p.cond
	}
	f.scope.it = it
	ok := f.scope.holds(f.cond)
	return ok, f.scope.err
}

// projected returns an item with only the attributes that a projection names.
func projected(it Item, expr *string, names map[string]string) (Item, error) {
	if expr == nil || it == nil {
		return it, nil
	}
	out := make(Item)
	s := &scope{it: it, names: names}
	for text := range strings.SplitSeq(*expr, ",") {
		path := strings.Split(strings.TrimSpace(text), ".")
		v, in := s.at(path), out
		if v == nil {
			continue
		}
		for _, part := range path[:len(path)-1] {
			m, ok := in[s.name(part)].(*types.AttributeValueMemberM)
			if !ok {
				m = &types.AttributeValueMemberM{Value: make(Item)}
				in[s.name(part)] = m
			}
			in = m.Value
		}
		in[s.name(path[len(path)-1])] = v
	}
	return out, s.err
}
