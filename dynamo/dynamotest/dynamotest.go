package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

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

	stop     func() error // nil if nothing was started
	stopOnce sync.Once
	stopErr  error

	httpOnce sync.Once
	http     *http.Client
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
	if endpoint := os.Getenv(envEndpoint); endpoint != "" {
		if err := servers.CheckEndpoint(endpoint, envAllowRemote); err != nil {
			return nil, fmt.Errorf("dynamotest: %s: %w", envEndpoint, err)
		}
		return &DB{Endpoint: strings.TrimRight(endpoint, "/")}, nil
	}
	var s servers.Search
	s.Miss(envEndpoint, errors.New("not set"))
	for _, try := range []func(context.Context, *servers.Search) (*DB, error){tryJava, tryCompose} {
		db, err := try(ctx, &s)
		if err != nil {
			return nil, fmt.Errorf("dynamotest: %w", err)
		}
		if db != nil {
			return db, nil
		}
		if ctx.Err() != nil {
			// What was missed now was missed for lack of time.
			return nil, fmt.Errorf("dynamotest: looking for a DynamoDB: %w; tried:%w", ctx.Err(), s)
		}
	}
	return nil, fmt.Errorf("%w; tried:%w", ErrUnavailable, s)
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
		HTTPClient:   db.httpClient(),
	}, optFns...)
}

// testCredentials are accepted by DynamoDB Local, which checks no signature
// but wants a key id of letters and digits only.
func testCredentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "dynamotest", SecretAccessKey: "dynamotest", Source: "dynamotest"}, nil
}

func (db *DB) httpClient() *http.Client {
	db.httpOnce.Do(func() {
		tr := &http.Transport{}
		if def, ok := http.DefaultTransport.(*http.Transport); ok {
			tr = def.Clone()
		}
		// Tests let many goroutines race on one host; the default of two idle
		// connections would open and close one for nearly every request.
		tr.MaxIdleConnsPerHost = 100
		// Shorter than a server keeps them: a request on a connection that is
		// just being closed would fail, and there are no retries here.
		tr.IdleConnTimeout = 10 * time.Second
		db.http = &http.Client{
			Transport:     tr,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	})
	return db.http
}

// Close ends what [Find] started and waits until it has ended; for an endpoint
// of somebody else's, and for a nil or zero DB, nothing is ended. Idle
// connections of [DB.Client] are closed. Calls after the first return what the
// first returned.
func (db *DB) Close() error {
	if db == nil {
		return nil
	}
	db.stopOnce.Do(func() {
		db.httpClient().CloseIdleConnections()
		if db.stop == nil {
			return
		}
		if err := db.stop(); err != nil {
			db.stopErr = fmt.Errorf("dynamotest: ending DynamoDB Local at %s: %w", db.Endpoint, err)
		}
	})
	return db.stopErr
}
