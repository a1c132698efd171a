// Package client makes the SDK's clients from Lambda's environment variables, as
// dynamo.NewClient does, without the SDK's config package.
package client

import (
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// SQS returns a client for SQS.
func SQS() *sqs.Client {
	return sqs.New(sqs.Options{Region: region(), Credentials: credentials(), BaseEndpoint: endpoint("SQS")})
}

// Lambda returns a client for Lambda. It waits for answers as long as its
// context does.
func Lambda() *lambda.Client {
	return lambda.New(lambda.Options{Region: region(), Credentials: credentials(), BaseEndpoint: endpoint("LAMBDA")})
}

func region() string { return os.Getenv("AWS_REGION") }

// credentials are those of the function's role, which are fixed for the life of
// a sandbox.
func credentials() aws.CredentialsProviderFunc {
	return func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{
			AccessKeyID:     os.Getenv("AWS_ACCESS_KEY_ID"),
			SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
			Source:          "environment",
		}, nil
	}
}

// endpoint is where a service is if not in AWS.
func endpoint(service string) *string {
	for _, name := range []string{"AWS_ENDPOINT_URL_" + service, "AWS_ENDPOINT_URL"} {
		if url := os.Getenv(name); url != "" {
			return &url
		}
	}
	return nil
}
