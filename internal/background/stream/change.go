package stream

import (
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/item"
)

// change is a stream record that shows a change to an operation's record.
type change struct {
	at   int // the index of the stream record in the batch
	time time.Time
	// old is the record before the change. It is nil if the change created the record,
	// or if the old image is unreadable. new is the record after the change. It is nil
	// if the record was deleted.
	old, new *store.Record
}

// change.replaced reports whether the old record is gone: deleted, or replaced by a new
// claim.
func (c *change) replaced() bool { return c.old != nil && (c.new == nil || c.new.ID != c.old.ID) }

// change.before returns the operation's record before the change. It returns nil if the operation
// is new, or if the record was deleted.
func (c *change) before() *store.Record {
	if c.replaced() {
		return nil
	}
	return c.old
}

// leaseEnded reports whether a person has ended the lease of an attempt. An attempt
// that releases its record also ends the lease. But only a person's write adds a
// decision to the record, so leaseEnded demands a new decision.
func (c *change) leaseEnded() bool {
	before := c.before()
	if before == nil || before.Lease.IsZero() || !c.new.Lease.IsZero() || len(c.new.Settled) == 0 {
		return false
	}
	last := c.new.Settled[len(c.new.Settled)-1]
	return !slices.ContainsFunc(before.Settled, last.Equal)
}

func readChange(rec *events.DynamoDBStreamRecord, event string) (c change, why Skip, err error) {
	c.time = rec.ApproximateCreationDateTime.Time
	removed := event == string(events.DynamoDBOperationTypeRemove)
	if !removed {
		if c.new, why, err = readImage(rec.NewImage); why != "" {
			return c, why, err
		}
		// If the old image is unreadable, c.old stays nil, so that all jobs in the new
		// image count as new. Some jobs may be delivered twice, but none is missed.
		c.old, _, _ = readImage(rec.OldImage)
		return c, "", nil
	}
	c.old, why, err = readImage(rec.OldImage)
	return c, why, err
}

// readImage reads an item by the same rules as the store, but leaves out bodies. If the
// item is a readable record, the result why is empty. Otherwise why is the reason to
// skip the item.
func readImage(image map[string]events.DynamoDBAttributeValue) (rec *store.Record, why Skip, err error) {
	if len(image) == 0 {
		return nil, SkipNoImage, nil
	}
	return readItem(plain(image))
}

func readItem(it item.Map) (rec *store.Record, why Skip, err error) {
	_, keyed := it[item.AttrPK].(*types.AttributeValueMemberS)
	_, versioned := it[item.AttrVersion]
	_, stated := it[item.AttrState]
	switch {
	case !keyed || !versioned:
		return nil, SkipForeign, nil
	case !stated:
		return nil, SkipCompanion, nil
	}
	if rec, err = item.Glance(it); err != nil {
		return nil, SkipUnreadable, err
	}
	return rec, "", nil
}

func recordName(it map[string]events.DynamoDBAttributeValue) string {
	pk := it[item.AttrPK]
	if pk.DataType() != events.DataTypeString || pk.IsNull() {
		return ""
	}
	return redact.Record(pk.String())
}

// plain converts an item of the events package to the SDK's type.
func plain(it map[string]events.DynamoDBAttributeValue) item.Map {
	out := make(item.Map, len(it))
	for name, v := range it {
		out[name] = plainValue(v)
	}
	return out
}

func plainValue(v events.DynamoDBAttributeValue) item.Value {
	if v.IsNull() {
		return &types.AttributeValueMemberNULL{Value: true}
	}
	switch v.DataType() {
	case events.DataTypeString:
		return &types.AttributeValueMemberS{Value: v.String()}
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}
	case events.DataTypeBinary:
		return &types.AttributeValueMemberB{Value: v.Binary()}
	case events.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}
	case events.DataTypeMap:
		return &types.AttributeValueMemberM{Value: plain(v.Map())}
	case events.DataTypeList:
		list := make([]item.Value, len(v.List()))
		for i, el := range v.List() {
			list[i] = plainValue(el)
		}
		return &types.AttributeValueMemberL{Value: list}
	case events.DataTypeStringSet:
		return &types.AttributeValueMemberSS{Value: v.StringSet()}
	case events.DataTypeNumberSet:
		return &types.AttributeValueMemberNS{Value: v.NumberSet()}
	default: // a binary set, the only type that is left
		return &types.AttributeValueMemberBS{Value: v.BinarySet()}
	}
}
