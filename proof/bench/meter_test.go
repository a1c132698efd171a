package bench

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/samekey/samekey/internal/base/itemsize"
)

type item = map[string]types.AttributeValue

// meter counts the calls of a client and their units. It looks at each item before and
// after the call, since DynamoDB Local miscounts transactions. A meter is for calls that
// come one after another; a call that waits for another may run beside it.
type meter struct {
	direct  *dynamodb.Client
	records string                                // the table of the records; all others are the user's
	keys    map[string]string                     // the key's attribute, by table
	indexes map[string]types.GlobalSecondaryIndex // by table, at most one each

	mu   sync.Mutex
	sum  cost
	seen func(op string, nth int) // after each call; may be nil
}

// cost is what some calls took.
type cost struct {
	Calls  map[string]int
	Write  float64 // units of the records
	Read   float64
	Theirs float64 // write units of the user's own items
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum, m.seen = cost{Calls: map[string]int{}}, nil
}

func (m *meter) total() cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.sum
	c.Calls = maps.Clone(c.Calls)
	return c
}

// set replaces the sum.
func (m *meter) set(c cost) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum = c
}

// watch has seen called after each call until the next reset.
func (m *meter) watch(seen func(op string, nth int)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = seen
}

// meterCalls makes a client's calls count.
func (m *meter) meterCalls(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("meter", m.handle), middleware.After)
	})
}

// target is an item that a call reads or writes.
type target struct {
	table  string
	key    item
	write  bool
	factor float64 // of a unit: 2 in a transaction, a half for an eventually consistent read
}

func (m *meter) handle(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	op := strings.TrimSuffix(reflect.TypeOf(in.Parameters).Elem().Name(), "Input")
	targets := m.targets(in.Parameters)
	before, lookErr := m.look(ctx, targets)
	out, meta, err := next.HandleInitialize(ctx, in)
	after, lookErr2 := m.look(context.WithoutCancel(ctx), targets)
	scanned, lookErr3 := m.scanned(ctx, in.Parameters)
	if looked := errors.Join(lookErr, lookErr2, lookErr3); looked != nil {
		return out, meta, errors.Join(err, looked)
	}
	_, refused := errors.AsType[*types.ConditionalCheckFailedException](err)
	_, canceled := errors.AsType[*types.TransactionCanceledException](err)
	if canceled || refused {
		after = before // a refused write costs by the item that is there
	} else if err != nil {
		return out, meta, err // the caller's run fails
	}
	m.mu.Lock()
	m.sum.Calls[op]++
	m.sum.Read += scanned
	for i, t := range targets {
		switch {
		case !t.write:
			m.sum.Read += t.factor * units(itemsize.Of(after[i]), 4096)
		case t.table == m.records:
			m.sum.Write += t.factor*max(units(itemsize.Of(before[i]), 1024), units(itemsize.Of(after[i]), 1024)) + m.indexed(t.table, before[i], after[i])
		default:
			m.sum.Theirs += t.factor * max(units(itemsize.Of(before[i]), 1024), units(itemsize.Of(after[i]), 1024))
		}
	}
	seen, nth := m.seen, m.sum.Calls[op]
	m.mu.Unlock()
	if seen != nil {
		seen(op, nth)
	}
	return out, meta, err
}

// units is the number of begun blocks, at least one.
func units(size, block int) float64 { return float64(max(1, (size+block-1)/block)) }

func (m *meter) targets(params any) (all []target) {
	write := func(table *string, key item, factor float64) {
		all = append(all, target{*table, m.key(*table, key), true, factor})
	}
	read := func(table *string, key item, consistent *bool) {
		factor := 0.5
		if aws.ToBool(consistent) {
			factor = 1
		}
		all = append(all, target{*table, m.key(*table, key), false, factor})
	}
	switch in := params.(type) {
	case *dynamodb.PutItemInput:
		write(in.TableName, in.Item, 1)
	case *dynamodb.UpdateItemInput:
		write(in.TableName, in.Key, 1)
	case *dynamodb.DeleteItemInput:
		write(in.TableName, in.Key, 1)
	case *dynamodb.GetItemInput:
		read(in.TableName, in.Key, in.ConsistentRead)
	case *dynamodb.BatchGetItemInput:
		for table, keys := range in.RequestItems {
			for _, key := range keys.Keys {
				read(&table, key, keys.ConsistentRead)
			}
		}
	case *dynamodb.BatchWriteItemInput:
		for table, writes := range in.RequestItems {
			for _, w := range writes {
				if w.PutRequest != nil {
					write(&table, w.PutRequest.Item, 1)
				} else {
					write(&table, w.DeleteRequest.Key, 1)
				}
			}
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, w := range in.TransactItems {
			switch {
			case w.Put != nil:
				write(w.Put.TableName, w.Put.Item, 2)
			case w.Update != nil:
				write(w.Update.TableName, w.Update.Key, 2)
			case w.Delete != nil:
				write(w.Delete.TableName, w.Delete.Key, 2)
			case w.ConditionCheck != nil:
				write(w.ConditionCheck.TableName, w.ConditionCheck.Key, 2)
			}
		}
	}
	return all
}

func (m *meter) key(table string, it item) item {
	name := m.keys[table]
	return item{name: it[name]}
}

func (m *meter) look(ctx context.Context, targets []target) ([]item, error) {
	found := make([]item, len(targets))
	for i, t := range targets {
		out, err := m.direct.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.table, Key: t.key, ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		found[i] = out.Item
	}
	return found, nil
}

// scanned is what a page of a scan takes: all that it looked at, before its filter.
func (m *meter) scanned(ctx context.Context, params any) (float64, error) {
	in, ok := params.(*dynamodb.ScanInput)
	if !ok {
		return 0, nil
	}
	out, err := m.direct.Scan(ctx, &dynamodb.ScanInput{
		TableName: in.TableName, Limit: in.Limit, Segment: in.Segment, TotalSegments: in.TotalSegments,
		ExclusiveStartKey: in.ExclusiveStartKey, ConsistentRead: in.ConsistentRead,
	})
	if err != nil {
		return 0, err
	}
	size, factor := 0, 0.5
	for _, it := range out.Items {
		size += itemsize.Of(it)
	}
	if aws.ToBool(in.ConsistentRead) {
		factor = 1
	}
	return factor * units(size, 4096), nil
}

// indexed is what a write takes in the table's index: one unit for an entry that comes,
// goes or changes, two for one whose key changes. An entry has less than 1 KB.
func (m *meter) indexed(table string, before, after item) float64 {
	index, ok := m.indexes[table]
	if !ok {
		return 0
	}
	was, is := entry(index, before), entry(index, after)
	sameKey := func() bool {
		for _, k := range index.KeySchema {
			if !reflect.DeepEqual(was[*k.AttributeName], is[*k.AttributeName]) {
				return false
			}
		}
		return true
	}
	switch {
	case reflect.DeepEqual(was, is):
		return 0
	case was != nil && is != nil && !sameKey():
		return 2
	default:
		return 1
	}
}

// entry is the part of an item that is in the index; nil if there is none.
func entry(index types.GlobalSecondaryIndex, it item) item {
	part := item{}
	for _, k := range index.KeySchema {
		v, ok := it[*k.AttributeName]
		if !ok {
			return nil
		}
		part[*k.AttributeName] = v
	}
	for _, name := range index.Projection.NonKeyAttributes {
		if v, ok := it[name]; ok {
			part[name] = v
		}
	}
	return part
}
