// Package itemjson reads and writes items in the form of the AWS CLI, for golden files
// and for programs in other languages.
package itemjson

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// Item is an item of a table, without sets. Its JSON has the form of the AWS CLI.
type Item map[string]types.AttributeValue

// MarshalJSON implements [json.Marshaler].
func (it Item) MarshalJSON() ([]byte, error) { return json.Marshal(streamimage.Of(it)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (it *Item) UnmarshalJSON(b []byte) error {
	var image map[string]events.DynamoDBAttributeValue
	if err := json.Unmarshal(b, &image); err != nil {
		return err
	}
	m, err := itemOf(image)
	*it = m
	return err
}

func itemOf(image map[string]events.DynamoDBAttributeValue) (_ map[string]types.AttributeValue, err error) {
	it := make(map[string]types.AttributeValue, len(image))
	for name, v := range image {
		if it[name], err = value(v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return it, nil
}

func value(v events.DynamoDBAttributeValue) (types.AttributeValue, error) {
	switch v.DataType() {
	case events.DataTypeString:
		return &types.AttributeValueMemberS{Value: v.String()}, nil
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}, nil
	case events.DataTypeBinary:
		return &types.AttributeValueMemberB{Value: v.Binary()}, nil
	case events.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}, nil
	case events.DataTypeNull:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case events.DataTypeMap:
		m, err := itemOf(v.Map())
		return &types.AttributeValueMemberM{Value: m}, err
	case events.DataTypeList:
		list := make([]types.AttributeValue, len(v.List()))
		for i, e := range v.List() {
			one, err := value(e)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			list[i] = one
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	default:
		return nil, fmt.Errorf("no record has a value of type %v", v.DataType())
	}
}
