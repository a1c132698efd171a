package elasticmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/internal/local/ids"
	"github.com/samekey/samekey/internal/local/servers"
)

// What the environment can say; the package documentation lists the meanings.
const (
	envEndpoint    = "AWS_ENDPOINT_URL_SQS"
	envAllowRemote = "QUEUELOCAL_ALLOW_REMOTE"
	envCache       = "DYNAMOTEST_CACHE"
	envRequire     = "REQUIRE_QUEUE"
	// envRequireAll is dynamotest's: who wants no test skipped that needs a
	// database means this one too.
	envRequireAll = "REQUIRE_DYNAMODB"
)

// ErrUnavailable matches, by errors.Is, the error of [Find] when this machine
// has nothing to run a queue with. The message names what is missing, one line
// for each thing tried. Other errors (a remote endpoint that is not allowed,
// jars that differ from their checksums, a cancelled context) don't match: they
// call for a person, not for a skipped test.
var ErrUnavailable = errors.New("elasticmq: no SQS to be had")

// Required reports whether a test must fail rather than be skipped for lack of
// a queue: REQUIRE_QUEUE or REQUIRE_DYNAMODB is set, to anything but "", "0" and
// "false".
func Required() bool {
	return servers.Required(envRequire) || servers.Required(envRequireAll)
}

// A Server is an SQS endpoint. It is made by [Find], or as a literal with an
// Endpoint of the caller's. It is safe for concurrent use and must not be
// copied.
type Server struct {
	// Endpoint is the base URL, such as http://127.0.0.1:54321.
	Endpoint string

	handle servers.Handle
}

// Find returns the endpoint named by AWS_ENDPOINT_URL_SQS or else starts
// ElasticMQ, in the order told in the package documentation. The caller must
// [Server.Close] what it gets. Each call starts a process of its own.
//
// Ending ctx ends the search, but not a server already found. The endpoint from
// the environment is used as it is, without a request to it.
//
// The error matches [ErrUnavailable] if there is nothing to run.
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
// Clients of one Server share their connections, which Close drops. Client
// panics if Endpoint is empty: such a client would reach for the real service.
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

// Close ends what [Find] started and waits until it has ended; for an endpoint
// of somebody else's, and for a nil or zero Server, nothing is ended. Idle
// connections of [Server.Client] are closed. Calls after the first return what
// the first returned.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	if err := s.handle.Close(); err != nil {
		return fmt.Errorf("elasticmq: ending ElasticMQ at %s: %w", s.Endpoint, err)
	}
	return nil
}
