package dynamo_test

import (
	"encoding/base64"
	"math/rand/v2"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/base/itemsize"
)

// writeUnits is what writing an item costs: one for each begun KB. DynamoDB
// Local miscounts transactions, so tests compute units themselves.
func writeUnits(item map[string]types.AttributeValue) int { return (itemsize.Of(item) + 1023) / 1024 }

// randomText is text that doesn't compress well.
func randomText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b)[:n]
}
