package dynamo_test

import (
	"crypto/rand"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/seal"
)

// A store that encrypts the contents of its records, with keys of the program's own.
func ExampleNew_seal() {
	key, olderKey := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(key)                                                         // from a secret store
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1"}, dynamo.Tune) // or NewClient, in Lambda

	provider, err := seal.NewStatic("2026-11", map[string][]byte{"2026-11": key, "2025-04": olderKey})
	if err != nil {
		log.Fatal(err)
	}
	sealer := seal.New(provider)
	store, err := dynamo.New(client, "samekey", func(o *dynamo.Options) { o.Seal = sealer })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T\n", store)
	// Output: *dynamo.Store
}
