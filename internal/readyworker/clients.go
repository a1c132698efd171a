package readyworker

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/dynamo"
)

// clients makes the SDK's clients from Lambda's environment variables, as
// dynamo.NewClient does, without the SDK's config package.
type clients struct{ env *environment }

const (
	dialTimeout    = time.Second
	attemptTimeout = 3 * time.Second // the SDK's own client waits for an answer for ever
)

// quick is a client for calls that take milliseconds.
func quick() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTimeout(attemptTimeout).WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout })
}

func (c clients) dynamoDB() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: c.region(), Credentials: c.credentials(), BaseEndpoint: c.endpoint("DYNAMODB"),
	}, dynamo.Tune)
}

func (c clients) sqs() *sqs.Client {
	return sqs.New(sqs.Options{Region: c.region(), Credentials: c.credentials(), BaseEndpoint: c.endpoint("SQS"), HTTPClient: quick()})
}

func (c clients) lambda() *lambda.Client {
	return lambda.New(lambda.Options{Region: c.region(), Credentials: c.credentials(), BaseEndpoint: c.endpoint("LAMBDA"), HTTPClient: quick()})
}

func (c clients) scheduler() *scheduler.Client {
	return scheduler.New(scheduler.Options{Region: c.region(), Credentials: c.credentials(), BaseEndpoint: c.endpoint("SCHEDULER"), HTTPClient: quick()})
}

// resume is a client that waits for a function's answer as long as its context does.
func (c clients) resume() *lambda.Client {
	return lambda.New(lambda.Options{Region: c.region(), Credentials: c.credentials(), BaseEndpoint: c.endpoint("LAMBDA")})
}

// sdk is the settings of a client for a service.
func (c clients) sdk(service string) aws.Config {
	return aws.Config{Region: c.region(), Credentials: c.credentials(), BaseEndpoint: c.endpoint(service), HTTPClient: quick()}
}

func (c clients) region() string { return c.env.text("AWS_REGION") }

// credentials are those of the function's role, which are fixed for the life of
// a sandbox.
func (c clients) credentials() aws.CredentialsProviderFunc {
	return func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{
			AccessKeyID:     c.env.text("AWS_ACCESS_KEY_ID"),
			SecretAccessKey: c.env.text("AWS_SECRET_ACCESS_KEY"),
			SessionToken:    c.env.text("AWS_SESSION_TOKEN"),
			Source:          "environment",
		}, nil
	}
}

// endpoint is where a service is if not in AWS.
func (c clients) endpoint(service string) *string {
	if url := cmp.Or(c.env.text("AWS_ENDPOINT_URL_"+service), c.env.text("AWS_ENDPOINT_URL")); url != "" {
		return &url
	}
	return nil
}
