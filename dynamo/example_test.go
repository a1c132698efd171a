package dynamo_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
)

// The table's name comes from the environment; a missing one is found at cold
// start, not by the first customer.
func ExampleNew() {
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1"}, dynamo.Tune) // or NewClient, in Lambda
	_, err := dynamo.New(client, "")
	fmt.Println(err)

	store, err := dynamo.New(client, "idempotency")
	fmt.Println(err)
	_ = idem.New(store)
	// Output:
	// dynamo: New: table is empty; pass its name (is the function's environment variable set?)
	// <nil>
}

// The table as code, for those who don't deploy with SAM.
func ExampleCreateTableInput() {
	in := dynamo.CreateTableInput("idempotency")
	fmt.Println(*in.KeySchema[0].AttributeName, in.KeySchema[0].KeyType, in.BillingMode, in.StreamSpecification.StreamViewType)
	// Output:
	// pk HASH PAY_PER_REQUEST NEW_AND_OLD_IMAGES
}
