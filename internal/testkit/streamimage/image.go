// Package streamimage converts items to stream events, for the simulation, the bench and tests.
package streamimage

import (
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Of converts an item to the form of items in Lambda's events. Of(nil) is nil. Of
// panics if the item has a set, since no record has a set.
func Of(it map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	if it == nil {
		return nil
	}
	out := make(map[string]events.DynamoDBAttributeValue, len(it))
	for name, v := range it {
		out[name] = value(v)
	}
	return out
}

// Record returns the stream record of a change that an item underwent at the time at.
// The parameter old is the item before the change, or nil if the change created the
// item. The parameter now is the item after the change, or nil if the change removed
// the item. The item's key is the attribute pk.
func Record(old, now map[string]types.AttributeValue, at time.Time, sequence string) events.DynamoDBEventRecord {
	r := events.DynamoDBEventRecord{EventSource: "aws:dynamodb", EventName: "MODIFY"}
	either := now
	switch {
	case old == nil:
		r.EventName = "INSERT"
	case now == nil:
		r.EventName, either = "REMOVE", old
	}
	r.Change = events.DynamoDBStreamRecord{
		ApproximateCreationDateTime: events.SecondsEpochTime{Time: at}, SequenceNumber: sequence, StreamViewType: "NEW_AND_OLD_IMAGES",
		Keys: Of(map[string]types.AttributeValue{"pk": either["pk"]}), OldImage: Of(old), NewImage: Of(now),
	}
	return r
}

// ByTTL returns the UserIdentity of a stream record whose item was removed by TTL.
func ByTTL() *events.DynamoDBUserIdentity {
	return &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}
}

func value(v types.AttributeValue) events.DynamoDBAttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(v.Value)
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(v.Value)
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(v.Value)
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(v.Value)
	case *types.AttributeValueMemberNULL:
		return events.NewNullAttribute()
	case *types.AttributeValueMemberM:
		return events.NewMapAttribute(Of(v.Value))
	case *types.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, len(v.Value))
		for i, e := range v.Value {
			list[i] = value(e)
		}
		return events.NewListAttribute(list)
	default:
		panic(fmt.Sprintf("streamimage: a record has no %T", v)) //nolint:forbidigo // a mistake in the tool or test
	}
}
