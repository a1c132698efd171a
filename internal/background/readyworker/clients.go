package readyworker

import (
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/base/sdkenv"
)

// clients makes SDK clients from Lambda's environment variables. Like dynamo.NewClient,
// it doesn't use the SDK's config package.
type clients struct {
	env *environment
	own Settings
}

const (
	dialTimeout    = time.Second
	attemptTimeout = 3 * time.Second // the SDK's default HTTP client has no time limit
)

// quick returns an HTTP client with short time limits, for calls that take
// milliseconds.
func quick() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTimeout(attemptTimeout).WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout })
}

func (c clients) dynamoDB() *dynamodb.Client {
	return dynamodb.NewFromConfig(c.patient("DYNAMODB"), dynamo.Tune)
}

func (c clients) sqs() *sqs.Client { return sqs.NewFromConfig(c.sdk("SQS")) }

func (c clients) sns() *sns.Client { return sns.NewFromConfig(c.sdk("SNS")) }

func (c clients) eventBridge() *eventbridge.Client {
	return eventbridge.NewFromConfig(c.sdk("EVENTBRIDGE"))
}

func (c clients) states() *sfn.Client { return sfn.NewFromConfig(c.sdk("SFN")) }

func (c clients) lambda() *lambda.Client { return lambda.NewFromConfig(c.sdk("LAMBDA")) }

func (c clients) scheduler() *scheduler.Client { return scheduler.NewFromConfig(c.sdk("SCHEDULER")) }

// clients.resume returns a client that waits for a function's answer until the context
// of the call ends.
func (c clients) resume() *lambda.Client { return lambda.NewFromConfig(c.patient("LAMBDA")) }

func (c clients) sdk(service string) aws.Config {
	cfg := c.patient(service)
	cfg.HTTPClient = quick()
	return cfg
}

// clients.patient returns the settings of a client without time limits.
func (c clients) patient(service string) aws.Config {
	cfg, _ := sdkenv.Config(c.env.text, service) // the function build reports this error, which is the same for each service
	return cfg
}
