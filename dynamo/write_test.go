package dynamo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
)

// count reads a counter; 0 if there is none.
func count(t testing.TB, tab *table, name, id string) int {
	t.Helper()
	strong := true
	out, err := tab.Direct.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &name, Key: map[string]types.AttributeValue{"id": tabletest.Str(id)}, ConsistentRead: &strong,
	})
	if err != nil {
		t.Fatal(err)
	}
	var c counter
	if err := attributevalue.UnmarshalMap(out.Item, &c); err != nil {
		t.Fatal(err)
	}
	return c.N
}

// Check writes nothing and lets the phase commit only if its condition holds.
func TestCheck(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	engine := tab.Engine()
	for name, tc := range map[string]struct {
		stock int
		write *dynamo.Write
		want  error
	}{
		"holds":        {5, dynamo.Check(app, tabletest.ID("holds"), "n >= :n", dynamo.Args{":n": 5}), nil},
		"doesn't hold": {4, dynamo.Check(app, tabletest.ID("doesn't hold"), "n >= :n", dynamo.Args{":n": 5}), idem.ErrCondition},
		"a second one": {5, dynamo.Check(app, tabletest.ID("a second one"), "n >= :n", dynamo.Args{":n": 5}).If("n < :most", dynamo.Args{":most": 5}), idem.ErrCondition},
		"no item":      {0, dynamo.Check(app, tabletest.ID("no item"), "attribute_exists(id)"), idem.ErrCondition},
		"no condition": {5, dynamo.Check(app, tabletest.ID("no condition"), ""), idem.ErrWrite},
		"no key":       {5, dynamo.Check(app, nil, "attribute_exists(id)"), idem.ErrWrite},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.stock > 0 {
				putItem(t, tab, app, counter{ID: name, N: tc.stock})
			}
			_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
				return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					tx.Write(tc.write, dynamo.Put(app, counter{ID: "order of " + name, N: 1}))
					return idem.Response{Status: 201}, nil
				})
			})
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if n := count(t, tab, app, name); n != tc.stock {
				t.Errorf("the item that was checked has %d, want %d", n, tc.stock)
			}
			if n := count(t, tab, app, "order of "+name); (n == 1) != (tc.want == nil) {
				t.Errorf("the phase's other write: %d, though the check says %v", n, tc.want)
			}
		})
	}
}

// Raw sends a write of the SDK as it is, of each kind, with its condition.
func TestRaw(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	engine := tab.Engine()
	key := func(id string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"id": tabletest.Str(id)}
	}
	item := func(id string, n int64) map[string]types.AttributeValue {
		it := key(id)
		it["n"] = tabletest.Num(n)
		return it
	}
	is := aws.String("n = :n")
	values := func(n int64) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{":n": tabletest.Num(n)}
	}
	for name, tc := range map[string]struct {
		raw   func(id string, n int64) types.TransactWriteItem // on condition that n is the item's
		after int
	}{
		"put": {func(id string, n int64) types.TransactWriteItem {
			return types.TransactWriteItem{Put: &types.Put{TableName: &app, Item: item(id, 7), ConditionExpression: is, ExpressionAttributeValues: values(n)}}
		}, 7},
		"update": {func(id string, n int64) types.TransactWriteItem {
			return types.TransactWriteItem{Update: &types.Update{
				TableName: &app, Key: key(id), UpdateExpression: aws.String("SET n = n + :n"), ConditionExpression: is, ExpressionAttributeValues: values(n),
			}}
		}, 6},
		"delete": {func(id string, n int64) types.TransactWriteItem {
			return types.TransactWriteItem{Delete: &types.Delete{TableName: &app, Key: key(id), ConditionExpression: is, ExpressionAttributeValues: values(n)}}
		}, 0},
		"check": {func(id string, n int64) types.TransactWriteItem {
			return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &app, Key: key(id), ConditionExpression: is, ExpressionAttributeValues: values(n)}}
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			putItem(t, tab, app, counter{ID: name, N: 3})
			commit := func(n int64) error {
				_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
					return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(dynamo.Raw(tc.raw(name, n)))
						return idem.Response{Status: 201}, nil
					})
				})
				return err
			}
			if err := commit(4); !errors.Is(err, idem.ErrCondition) || count(t, tab, app, name) != 3 {
				t.Errorf("its condition is false: %v", err)
			}
			if err := commit(3); err != nil || count(t, tab, app, name) != tc.after {
				t.Errorf("%v; %d, want %d", err, count(t, tab, app, name), tc.after)
			}
			if err := dynamo.Raw(tc.raw(name, 3)).If("n = :n").Err(); err == nil {
				t.Error("it takes a further condition")
			}
		})
	}
	if dynamo.Raw(types.TransactWriteItem{}).Err() == nil {
		t.Error("an empty write is no error")
	}
}
