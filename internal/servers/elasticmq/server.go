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

// The package documentation and [Required] explain these environment variables.
const (
	envEndpoint    = "AWS_ENDPOINT_URL_SQS"
	envAllowRemote = "QUEUELOCAL_ALLOW_REMOTE"
	envCache       = "DYNAMOTEST_CACHE"
	envRequire     = "REQUIRE_QUEUE"
	// envRequireAll is also read by dynamotest. If it is set, tests that need a
	// database or a queue must not be skipped.
	envRequireAll = "REQUIRE_DYNAMODB"
)

// ErrUnavailable matches the error of [Find] if this machine can't run a queue. The
// message of that error has a line for each source that was tried, and says what was
// missing. ErrUnavailable doesn't match errors that should fail a test instead of
// skipping it: a remote endpoint that is not allowed, jars that differ from their
// checksums, or a cancelled context.
var ErrUnavailable = errors.New("elasticmq: no SQS available")

// Required reports whether a test without a queue must fail instead of being skipped. This
// is so if REQUIRE_QUEUE or REQUIRE_DYNAMODB has a value other than "", "0" and "false".
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

// Find returns a Server with the endpoint that AWS_ENDPOINT_URL_SQS names, without
// sending a request to the endpoint. If the variable is empty, each call of Find starts
// ElasticMQ in a new process, as the package documentation describes. The caller must
// [Server.Close] the result.
//
// ctx limits the search. A server that Find has returned continues after ctx ends.
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

// Client returns an SQS client for the server. The client uses static test credentials,
// makes no retries, and reads nothing from the environment or from configuration files.
// optFns may change any of these settings.
//
// Clients of one Server share their connections. Client panics if Endpoint is empty,
// because a client without an endpoint would call the real SQS.
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

// Close ends the process that [Find] started, and waits until it has ended. If Find
// started no process, Close ends nothing. Close also closes the idle connections of
// clients. On a nil Server, Close does nothing. Later calls of Close return the result
// of the first call.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	if err := s.handle.Close(); err != nil {
		return fmt.Errorf("elasticmq: ending ElasticMQ at %s: %w", s.Endpoint, err)
	}
	return nil
}
