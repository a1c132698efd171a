package dynamotest

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/internal/local/servers"
)

// What the environment can say; the package documentation lists the meanings.
const (
	envEndpoint      = "AWS_ENDPOINT_URL_DYNAMODB"
	envAllowRemote   = "DYNAMOTEST_ALLOW_REMOTE"
	envAllInterfaces = "DYNAMOTEST_ALL_INTERFACES"
	envCache         = "DYNAMOTEST_CACHE"
	envRequire       = "REQUIRE_DYNAMODB"
)

// ErrUnavailable matches, by errors.Is, the error of [Find] when this machine
// has nothing to run DynamoDB Local with. The message names what is missing,
// one line for each thing tried. Other errors (a remote endpoint that is not
// allowed, jars that differ from their checksums, a cancelled context) don't
// match: they call for a person, not for a skipped test.
var ErrUnavailable = errors.New("dynamotest: no DynamoDB to test against")

// A DB is a DynamoDB endpoint for tests. It is made by [Find] or [Start], or
// as a literal with an Endpoint of the caller's. It is safe for concurrent use
// and must not be copied.
type DB struct {
	// Endpoint is the base URL, such as http://127.0.0.1:54321.
	Endpoint string

	handle servers.Handle
}

// Find returns the endpoint named by AWS_ENDPOINT_URL_DYNAMODB or else starts
// DynamoDB Local, in the order told in the package documentation. The caller
// must [DB.Close] what it gets. Each call starts a process of its own; tests
// share one by [Start].
//
// Ending ctx ends the search, but not a database already found. The endpoint
// from the environment is used as it is, without a request to it.
//
// The error matches [ErrUnavailable] if there is nothing to run.
func Find(ctx context.Context) (*DB, error) {
	found, err := source().Find(ctx)
	if errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("dynamotest: %w", err)
	}
	return &DB{Endpoint: found.Endpoint, handle: servers.Handle{Stop: found.Stop}}, nil
}

// Client returns a client of the database. It uses static test credentials and
// the region us-east-1, and it makes no retries, so a test sees every answer.
// Nothing is read from the environment or from configuration files. optFns run
// after these settings and may change any of them.
//
// Clients of one DB share their connections, which Close drops. Client panics
// if Endpoint is empty: such a client would reach for the real service.
func (db *DB) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	if db.Endpoint == "" {
		panic("dynamotest: Client of a DB without an Endpoint: get the DB from Find or Start") //nolint:forbidigo // a mistake in the program
	}
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(db.Endpoint),
		Region:       "us-east-1",
		Credentials:  aws.CredentialsProviderFunc(testCredentials),
		Retryer:      aws.NopRetryer{},
		HTTPClient:   db.handle.HTTP(),
	}, optFns...)
}

// testCredentials are accepted by DynamoDB Local, which checks no signature
// but wants a key id of letters and digits only.
func testCredentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "dynamotest", SecretAccessKey: "dynamotest", Source: "dynamotest"}, nil
}

// Close ends what [Find] started and waits until it has ended; for an endpoint
// of somebody else's, and for a nil or zero DB, nothing is ended. Idle
// connections of [DB.Client] are closed. Calls after the first return what the
// first returned.
func (db *DB) Close() error {
	if db == nil {
		return nil
	}
	if err := db.handle.Close(); err != nil {
		return fmt.Errorf("dynamotest: ending DynamoDB Local at %s: %w", db.Endpoint, err)
	}
	return nil
}
