// Package dynamotest finds or starts DynamoDB Local for tests.
//
//	func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }
//
//	func TestOrders(t *testing.T) {
//		db := dynamotest.Start(t) // one database for all tests, or a skip with the reason
//		client := db.Client()
//		…
//	}
//
// # Where the database comes from
//
// [Find] and [Start] take the first of these that works:
//
//  1. the endpoint in AWS_ENDPOINT_URL_DYNAMODB; nothing is started, and a
//     host that isn't loopback is refused unless DYNAMOTEST_ALLOW_REMOTE=1;
//  2. Java 17 or newer (JAVA_HOME, then PATH) and jars in the cache;
//  3. Java and Maven: a pinned pom is resolved into the cache and every file
//     checked against pinned SHA-256 sums, then as before;
//  4. docker compose, with an image pinned by digest, published on 127.0.0.1;
//  5. nothing: [ErrUnavailable], with a line for each source that was tried.
//
// A first run downloads about 74 MB, a later one starts in one to two seconds.
// The cache is the folder samekey in [os.UserCacheDir], or DYNAMOTEST_CACHE.
// REQUIRE_DYNAMODB=1 makes [Start] fail a test instead of skipping it.
//
// The command ddblocal, in a folder of this package, does the same for any other command, and
// passes the endpoint in the environment. Each run of ddblocal starts another database.
// DYNAMOTEST_SHARED=1, which ddblocal sets, keeps Go's cache of test results valid all the
// same.
//
// # Separate databases
//
// Clients share one database, whatever their credentials and regions. DynamoDB Local gets
// slower with each table that has a stream: a write waits for the records of all streams that
// were made before. With DYNAMOTEST_SEPARATE=1 each test has a separate database in the same
// process: the client ([DB.Client] of [Start]) signs with an access key of the test, and
// DynamoDB Local keeps separate tables for each access key. Programs that a test starts then
// need the client's credentials ([DB.Env]). [MainSeparate] in a package's TestMain sets the
// variable.
//
// # Isolation
//
// The database is in memory and empty, its telemetry is off, and it gets no
// AWS variables of the environment. It runs in a process of its own, which
// [DB.Close] and [Main] end by its id; on Linux it also dies with a test
// process that is killed.
//
// DynamoDB Local listens on every interface and has no option against it. On
// Linux a small C shim, compiled into the cache on first use, keeps the Java
// process on loopback, and its sockets are checked after the start. Without a C
// compiler, or on another system, the package skips Java and tries docker, unless
// DYNAMOTEST_ALL_INTERFACES=1 permits the process to listen on every interface.
//
// # Differences from DynamoDB
//
// DynamoDB Local never throttles and never answers TransactionConflict. Its reads
// are always consistent, its TTL deletes within a second, and it reports a wrong
// capacity for transactions.
//
// # Licence
//
// DynamoDB Local is software of AWS under a licence of its own, which forbids
// redistribution and asks for an AWS account in good standing. This module
// contains no part of DynamoDB Local: Maven or Docker downloads it to the user's
// machine, where it runs as a separate process. Don't commit the jars or put them
// into an image that you publish.
package dynamotest
