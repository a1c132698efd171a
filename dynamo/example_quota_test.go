package dynamo_test

import (
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/quota"
)

// A quota of each caller over all sandboxes.
func ExampleStore_Buckets() {
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1"}, dynamo.Tune) // or NewClient, in Lambda
	store, err := dynamo.New(client, "samekey")
	if err != nil {
		log.Fatal(err)
	}
	engine := idem.New(store, func(o *idem.Options) {
		o.Quota = quota.New(quota.Limits{PerMinute: 300, Bytes: 100 << 20}, func(o *quota.Options) {
			o.Shared = store.Buckets()
			o.Name = "payments"
		})
	})
	fmt.Printf("%T\n", engine)
	// Output: *idem.Engine
}
