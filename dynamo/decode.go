package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

// Decode reads an item of the table as a record, for tools that scan the table or read
// its stream. It returns nil for an item that is no record: the part of a large body, the
// place of a sweep, or one that isn't of this package. An item that is not understood, as
// one of another layout, is an error that wraps [store.ErrCorrupt]. No body is read,
// in the record or outside, and sealed contents stay closed. The record keeps no part of it.
func Decode(it map[string]types.AttributeValue) (*store.Record, error) {
	_, versioned := it[item.AttrVersion]
	_, stated := it[item.AttrState]
	if item.PK(it) == "" || !versioned || !stated {
		return nil, nil
	}
	return item.Glance(it)
}
