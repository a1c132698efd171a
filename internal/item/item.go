package item

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/seal"
)

type (
	// Map is an item, or a value of type map in an item.
	Map = map[string]types.AttributeValue
	// Value is the value of an attribute.
	Value = types.AttributeValue
)

// Key returns the key of the item whose partition key is pk.
func Key(pk string) Map { return Map{AttrPK: &types.AttributeValueMemberS{Value: pk}} }

// PK returns an item's partition key; "" if it has none.
func PK(it Map) string {
	if pk, ok := it[AttrPK].(*types.AttributeValueMemberS); ok {
		return pk.Value
	}
	return ""
}

// Access reads and updates single items.
type Access interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Table is the table of the records.
type Table struct {
	Access Access
	Name   string       // or its ARN
	Seal   *seal.Sealer // opens sealed contents; if nil, sealed contents stay closed
}

// Load reads a record, and leaves its sealed contents closed. It returns nil if there is no
// record.
func (t Table) Load(ctx context.Context, pk string) (*store.Record, error) {
	return t.load(ctx, pk, Decode)
}

// Glance is Load without the bodies of answer and request.
func (t Table) Glance(ctx context.Context, pk string) (*store.Record, error) {
	return t.load(ctx, pk, Glance)
}

func (t Table) load(ctx context.Context, pk string, decode func(Map) (*store.Record, error)) (*store.Record, error) {
	out, err := t.Access.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Name, Key: Key(pk), ConsistentRead: new(true)})
	switch {
	case err != nil:
		return nil, ReadError("load", err)
	case len(out.Item) == 0:
		return nil, nil
	}
	return decode(out.Item)
}
