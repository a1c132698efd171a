// Package itemsize counts the bytes of DynamoDB items.
package itemsize

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Of returns the size of an item in bytes, by DynamoDB's rule. The size of a name or
// text is its length in UTF-8. A number has one byte for every two significant digits,
// plus one byte. A list or map has 3 bytes, plus the size of each entry, plus one byte
// for each entry.
func Of(it map[string]types.AttributeValue) int {
	n := 0
	for name, v := range it {
		n += len(name) + value(v)
	}
	return n
}

func value(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return number(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberL:
		n := 3
		for _, e := range v.Value {
			n += 1 + value(e)
		}
		return n
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + Of(v.Value)
	case *types.AttributeValueMemberSS:
		n := 0
		for _, s := range v.Value {
			n += len(s)
		}
		return n
	case *types.AttributeValueMemberNS:
		n := 0
		for _, s := range v.Value {
			n += number(s)
		}
		return n
	case *types.AttributeValueMemberBS:
		n := 0
		for _, b := range v.Value {
			n += len(b)
		}
		return n
	default:
		return 1
	}
}

func number(s string) int { return (len(strings.Trim(s, "-0."))+1)/2 + 1 }
