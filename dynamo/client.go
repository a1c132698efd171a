package dynamo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/samekey/samekey/internal/base/sdkenv"
)

const (
	dialTimeout    = time.Second
	attemptTimeout = 2 * time.Second // the SDK's HTTP client sets no such limit
)

// NewClient returns a client for the environment that Lambda gives to a function. It
// reads AWS_REGION (if it is empty, AWS_DEFAULT_REGION), AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_USE_FIPS_ENDPOINT and
// AWS_USE_DUALSTACK_ENDPOINT. A local endpoint is set by AWS_ENDPOINT_URL_DYNAMODB or
// AWS_ENDPOINT_URL. NewClient reads no other settings of AWS, which saves some
// milliseconds and 2 MB of memory at cold start. If a program needs profiles, SSO or
// roles, use the SDK's config package with [Tune]:
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	client := dynamodb.NewFromConfig(cfg, dynamo.Tune)
//
// NewClient applies [Tune] first, and then optFns.
func NewClient(optFns ...func(*dynamodb.Options)) (*dynamodb.Client, error) {
	cfg, err := sdkenv.Config(os.Getenv, "DYNAMODB")
	switch {
	case err != nil:
		return nil, fmt.Errorf("dynamo: NewClient: %w", err)
	case cfg.Region == "":
		return nil, errors.New("dynamo: NewClient: AWS_REGION is not set")
	case os.Getenv("AWS_ACCESS_KEY_ID") == "" || os.Getenv("AWS_SECRET_ACCESS_KEY") == "":
		return nil, errors.New("dynamo: NewClient: AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set; " +
			"outside of Lambda use config.LoadDefaultConfig and dynamodb.NewFromConfig(cfg, dynamo.Tune)")
	}
	return dynamodb.NewFromConfig(cfg, append([]func(*dynamodb.Options){Tune}, optFns...)...), nil
}

// Tune adapts the SDK's defaults to the engine's calls. It sets a retryer that differs
// from the SDK's:
//   - it sends a call up to six times, instead of three;
//   - it waits about 20 ms before it first repeats a call, instead of 1 s, and never
//     more than a second;
//   - it has no limit for the repetitions of all calls together;
//   - it also repeats a call whose answer was cut off, and a transaction that was
//     throttled;
//   - it sends nothing once the wall clock is past the context's deadline.
//
// If the HTTP client is the SDK's own, Tune limits the time for connecting (1 s) and
// for each attempt (2 s). For every HTTP client, Tune prevents a fault of the SDK: on a
// busy machine a request of more than 4 KB sometimes breaks its own connection. A
// second call of Tune changes nothing.
func Tune(o *dynamodb.Options) {
	o.Retryer = newRetryer()
	o.APIOptions = append(o.APIOptions, addReadBodies)
	client, ok := o.HTTPClient.(*awshttp.BuildableClient)
	if o.HTTPClient == nil {
		client, ok = awshttp.NewBuildableClient(), true
	}
	if ok {
		o.HTTPClient = client.WithTimeout(attemptTimeout).
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
			WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = t.MaxIdleConns })
	}
}

// readBodies makes net/http read a request's body with Read instead of WriteTo. This
// prevents the following fault:
//   - The SDK closes a request's body as soon as the answer's header arrives.
//   - If the body has more than 4 KB, net/http may read it once more after the close,
//     to learn that it has ended.
//   - A closed body returns io.EOF. From Read, this is the end of the body; from
//     WriteTo, net/http treats it as an error.
//   - net/http closes the connection, and reading the answer fails: "use of closed
//     network connection".
//   - The SDK repeats the call, although the service has applied it.
//
// readBodies is last in the middleware stack, so that the SDK can hash bodies with
// WriteTo. Without WriteTo, the hash would copy each body through a buffer of 32 KB.
type readBodies struct{}

// ID implements [middleware.DeserializeMiddleware].
func (readBodies) ID() string { return "samekey: bodies that are read" }

// HandleDeserialize implements [middleware.DeserializeMiddleware].
func (readBodies) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	if req, ok := in.Request.(*smithyhttp.Request); ok {
		if body, ok := req.GetStream().(io.ReadSeeker); ok {
			other, err := empty.SetStream(struct{ io.ReadSeeker }{body})
			if err != nil {
				return middleware.DeserializeOutput{}, middleware.Metadata{}, err
			}
			other.Request, in.Request = req.Request, other
		}
	}
	return next.HandleDeserialize(ctx, in)
}

// empty is a request for SetStream, which copies the request that it is called on. The
// copy is cheap, because empty has no contents. empty itself is never changed.
var empty = smithyhttp.Request{Request: &http.Request{}}

func addReadBodies(stack *middleware.Stack) error {
	if _, there := stack.Deserialize.Get(readBodies{}.ID()); there {
		return nil
	}
	return stack.Deserialize.Add(readBodies{}, middleware.After)
}
