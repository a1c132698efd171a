package kms_test

import (
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/kms"
	"github.com/samekey/samekey/seal"
)

// A store whose contents are encrypted by data keys of KMS. New makes no calls: the
// first claim does.
func ExampleNew() {
	cfg := aws.Config{Region: "eu-central-1", Credentials: aws.AnonymousCredentials{}} // config.LoadDefaultConfig, in Lambda
	keyARN := "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"

	store, err := sealed(cfg, "records", keyARN)
	fmt.Printf("%T %v\n", store, err)
	// Output: *dynamo.Store <nil>
}

func sealed(cfg aws.Config, table, keyARN string) (*dynamo.Store, error) {
	provider, err := kms.New(awskms.NewFromConfig(cfg), keyARN, func(o *kms.Options) {
		o.Context = map[string]string{"table": table}
	})
	if err != nil {
		return nil, err
	}
	sealer := seal.New(provider)
	return dynamo.New(dynamodb.NewFromConfig(cfg, dynamo.Tune), table, func(o *dynamo.Options) { o.Seal = sealer })
}

// Functions with the variables of the worker have the same keys and context.
func ExampleFromEnvironment() {
	cfg := aws.Config{Region: "eu-central-1", Credentials: aws.AnonymousCredentials{}} // config.LoadDefaultConfig, in Lambda

	provider, err := kms.FromEnvironment(awskms.NewFromConfig(cfg), os.Getenv)
	fmt.Println(provider, err)
	// Output: <nil> SAMEKEY_KMS_KEYS is not set: write the ARN of a key, as arn:aws:kms:REGION:ACCOUNT:key/ID
}
