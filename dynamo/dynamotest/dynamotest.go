package dynamotest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/line"
)

// The package documentation explains these environment variables.
const (
	envEndpoint      = "AWS_ENDPOINT_URL_DYNAMODB"
	envAllowRemote   = "DYNAMOTEST_ALLOW_REMOTE"
	envAllInterfaces = "DYNAMOTEST_ALL_INTERFACES"
	envCache         = "DYNAMOTEST_CACHE"
	envRequire       = "REQUIRE_DYNAMODB"
	envSeparate      = "DYNAMOTEST_SEPARATE"
	envShared        = "DYNAMOTEST_SHARED"
)

// ErrUnavailable matches the error of [Find] if Find could neither find nor start a
// database on this machine. For each source in the package documentation that Find
// tried, a line of the error says what was missing. ErrUnavailable doesn't match errors
// after which a test should fail instead of being skipped: a remote endpoint that is
// not allowed, jars that differ from their checksums, a cancelled context.
var ErrUnavailable = errors.New("dynamotest: no DynamoDB to test against")

// A DB is a DynamoDB endpoint for tests. Make it with [Find] or [Start], or as a
// literal with your own Endpoint. It is safe for concurrent use and must not be
// copied.
type DB struct {
	// Endpoint is the base URL, such as http://127.0.0.1:54321.
	Endpoint string

	handle servers.Handle
	// of is the DB whose process and connections this DB uses, or nil if this DB has
	// its own.
	of *DB
	// key is the clients' access key, which selects a separate database, or "" for the
	// shared database.
	key string
}

// Find returns the endpoint in AWS_ENDPOINT_URL_DYNAMODB, without sending a request to
// it. If the variable is unset, Find starts DynamoDB Local, as the package
// documentation describes. Each call then starts another process, whereas [Start]
// shares one process among tests. The caller must close the result ([DB.Close]).
//
// If ctx ends, the search ends, but a database that Find has returned continues. If no
// source works, the error matches [ErrUnavailable].
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

// Client returns a client of the database, with static test credentials and the region
// us-east-1. The client repeats no call, so that a test sees every answer. Only a read
// whose connection broke is repeated, since DynamoDB Local breaks connections when it
// is busy. The client reads nothing from the environment or from configuration files.
// optFns run after these settings and may change any of them.
//
// Clients of one DB share connections, and [DB.Close] closes the idle connections.
// Client panics if Endpoint is empty, because a client without an endpoint would call
// the real service.
func (db *DB) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	if db.Endpoint == "" {
		panic("dynamotest: Client of a DB without an Endpoint: get the DB from Find or Start") //nolint:forbidigo // a mistake in the program
	}
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(db.Endpoint),
		Region:       "us-east-1",
		Credentials:  aws.CredentialsProviderFunc(db.credentials),
		Retryer:      aws.NopRetryer{},
		HTTPClient:   cmp.Or(db.of, db).http(),
	}, optFns...)
}

// DB.http returns an HTTP client. All clients of db share their connections.
func (db *DB) http() *http.Client {
	shared := *db.handle.HTTP()
	shared.Transport = &line.Transport{Base: shared.Transport}
	return &shared
}

// DynamoDB Local checks no signature, but accepts only letters and digits in a key id.
func (db *DB) credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: cmp.Or(db.key, "dynamotest"), SecretAccessKey: "dynamotest", Source: "dynamotest"}, nil
}

// Env returns the credentials of [DB.Client] as environment variables, for a program that a
// test starts.
func (db *DB) Env() []string {
	key, _ := db.credentials(context.Background()) // has no error
	return []string{"AWS_ACCESS_KEY_ID=" + key.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + key.SecretAccessKey}
}

// DB.separate returns a database for one test, which runs in the process of db.
func (db *DB) separate(test string) *DB {
	sum := sha256.Sum256([]byte(os.Args[0] + "\x00" + test)) // includes the binary's name, because packages that share a process may have tests of the same name
	return &DB{Endpoint: db.Endpoint, of: db, key: hex.EncodeToString(sum[:8])}
}

// Close ends the process that [Find] started, and waits for its end. If Find started no
// process, or if the DB is nil, zero, or a test's separate database, Close ends no
// process. Close also closes idle connections of [DB.Client], except those of a test's
// separate database. A second Close returns the result of the first.
func (db *DB) Close() error {
	if db == nil || db.of != nil {
		return nil
	}
	if err := db.handle.Close(); err != nil {
		return fmt.Errorf("dynamotest: ending DynamoDB Local at %s: %w", db.Endpoint, err)
	}
	return nil
}
