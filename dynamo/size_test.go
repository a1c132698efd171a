package dynamo_test

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// writeUnits is what writing an item costs: one for each begun KB. DynamoDB
// Local miscounts transactions, so tests compute units themselves.
func writeUnits(item map[string]types.AttributeValue) int { return (itemSize(item) + 1023) / 1024 }

// itemSize is DynamoDB's rule: UTF-8 bytes of names and values, numbers about
// one byte for two digits and one more, 3 bytes for a list or map and 1 for
// each entry.
func itemSize(item map[string]types.AttributeValue) int {
	size := 0
	for name, v := range item {
		size += len(name) + valueSize(v)
	}
	return size
}

func valueSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return (len(strings.Trim(v.Value, "-0."))+1)/2 + 1
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	case *types.AttributeValueMemberL:
		size := 3
		for _, e := range v.Value {
			size += 1 + valueSize(e)
		}
		return size
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + itemSize(v.Value)
	}
	panic("no such type in a record")
}

// randomText is text that doesn't compress well.
func randomText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b)[:n]
}
