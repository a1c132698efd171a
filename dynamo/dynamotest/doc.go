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
// [Find] and [Start] try these sources in order, and use the first source that works:
//
//  1. the endpoint in AWS_ENDPOINT_URL_DYNAMODB. Nothing is started. A host that isn't
//     loopback is refused unless DYNAMOTEST_ALLOW_REMOTE=1;
//  2. Java 17 or newer (JAVA_HOME, then PATH), with jars from the cache;
//  3. Java and Maven. Maven downloads the jars of a pinned pom into the cache, every
//     file is checked against pinned SHA-256 sums, and Java runs the jars;
//  4. docker compose, with an image pinned by digest and a port on 127.0.0.1.
//
// If no source works, [Find] returns an error that matches [ErrUnavailable] and has a
// line for each source that was tried. [Start] then skips the test, or fails it if
// REQUIRE_DYNAMODB=1.
//
// The first run downloads about 74 MB. Later runs start in one to two seconds. The
// cache is the folder samekey in [os.UserCacheDir], or DYNAMOTEST_CACHE.
//
// The command ddblocal, in a folder of this package, finds or starts a database and
// runs any other command with the endpoint in the environment. A database that ddblocal
// starts has a new endpoint in each run. So that Go's cached test results stay valid,
// ddblocal then sets DYNAMOTEST_SHARED=1.
//
// # Separate databases
//
// By default, all clients share one database, whatever their credentials and regions.
// But DynamoDB Local gets slower with each table that has a stream, because a write
// waits for the records of all streams that were made before. If DYNAMOTEST_SEPARATE is
// 1, each test has a separate database in the same process: the test's client
// ([DB.Client] of [Start]) signs with its own access key, and DynamoDB Local keeps
// separate tables for each access key. Give [DB.Env], the client's credentials, to a
// program that the test starts. [MainSeparate] in TestMain sets DYNAMOTEST_SEPARATE. If
// AWS_ENDPOINT_URL_DYNAMODB names a DynamoDB Local that runs with -sharedDb, all tests
// share its database even then.
//
// # Isolation
//
// The database is in memory and starts empty. Its telemetry is off, and it inherits no
// AWS variables. It runs in a separate process, which [DB.Close] and [Main] end by the
// process id. On Linux the database also ends if the test process is killed.
//
// DynamoDB Local listens on every interface and has no option to change that. On Linux
// a small C shim keeps the Java process on loopback. The shim is compiled into the
// cache on first use. After the start, the package checks the process's sockets. If
// there is no C compiler, or the system isn't Linux, the package skips Java and tries
// docker. If DYNAMOTEST_ALL_INTERFACES=1, the package uses Java even then, and the
// database listens on every interface.
//
// # Differences from DynamoDB
//
// DynamoDB Local never throttles and never answers TransactionConflict. All its reads are
// consistent. Its TTL deletes within a second. It reports a wrong capacity for transactions.
//
// # Licence
//
// DynamoDB Local is software of AWS. Its licence forbids redistribution and asks for an AWS
// account in good standing. This module contains no part of DynamoDB Local: Maven or Docker
// downloads it to the user's machine, where it runs as a separate process. Don't commit the jars
// or put them into an image that you publish.
package dynamotest
