package elasticmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/ids"
)

// Environment variables; the package documentation explains them.
const (
	envEndpoint    = "AWS_ENDPOINT_URL_SQS"
	envAllowRemote = "QUEUELOCAL_ALLOW_REMOTE"
	envCache       = "DYNAMOTEST_CACHE"
	envRequire     = "REQUIRE_QUEUE"
	// envRequireAll is the variable of dynamotest: if it is set, tests that need a
	// database or a queue must not be skipped.
	envRequireAll = "REQUIRE_DYNAMODB"
)

// ErrUnavailable matches the error of [Find] if this machine can't run a queue. The
// message has a line for each source that was tried, with what was missing. Other
// errors (a remote endpoint that is not allowed, jars that differ from their
// checksums, a cancelled context) don't match, because they should fail a test
// instead of skipping it.
var ErrUnavailable = errors.New("elasticmq: no SQS available")

// Required reports whether a test without a queue must fail instead of being skipped:
// REQUIRE_QUEUE or REQUIRE_DYNAMODB has a value other than "", "0" and "false".
func Required() bool {
	return servers.Required(envRequire) || servers.Required(envRequireAll)
}

// Server is an SQS endpoint. Make it with [Find], or as a literal with your own
// Endpoint. It is safe for concurrent use and must not be copied.
type Server struct {
	// Endpoint is the base URL, such as http://127.0.0.1:54321.
	Endpoint string

	handle servers.Handle
}

// Find returns the endpoint named by AWS_ENDPOINT_URL_SQS or else starts ElasticMQ,
// in the order of the package documentation. The caller must [Server.Close] the
// result. Each call starts its own process.
//
// If ctx ends, Find ends, but a server that it has returned continues. Find sends no
// request to the endpoint from the environment.
//
// The error matches [ErrUnavailable] if this machine can't run a queue.
func Find(ctx context.Context) (*Server, error) {
	found, err := source().Find(ctx)
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("elasticmq: %w", err)
	}
	return &Server{Endpoint: found.Endpoint, handle: servers.Handle{Stop: found.Stop}}, nil
}

// Client returns a client of the server. It uses static test credentials and
// makes no retries. Nothing is read from the environment or from configuration
// files. optFns run after these settings and may change any of them.
//
// Clients of one Server share their connections, which Close drops. Client panics if
// Endpoint is empty: such a client would call the real service.
func (s *Server) Client(optFns ...func(*sqs.Options)) *sqs.Client {
	if s.Endpoint == "" {
		panic("elasticmq: Client of a Server without an Endpoint: get the Server from Find") //nolint:forbidigo // a mistake in the program
	}
	return sqs.New(sqs.Options{
		BaseEndpoint: aws.String(s.Endpoint),
		Region:       ids.Region,
		Credentials:  aws.CredentialsProviderFunc(testCredentials),
		Retryer:      aws.NopRetryer{},
		HTTPClient:   s.handle.HTTP(),
	}, optFns...)
}

func testCredentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "elasticmq", SecretAccessKey: "elasticmq", Source: "elasticmq"}, nil
}

// Close ends the process that [Find] started and waits for its end. For another
// endpoint, and for a nil or zero Server, it ends nothing. Close closes idle
// connections of [Server.Client]. Later calls return the result of the first.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	if err := s.handle.Close(); err != nil {
		return fmt.Errorf("elasticmq: ending ElasticMQ at %s: %w", s.Endpoint, err)
	}
	return nil
}
