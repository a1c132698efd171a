// Package dynamotest finds or starts DynamoDB Local for tests, and makes it
// fail the way a network does.
//
//	func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }
//
//	func TestOrders(t *testing.T) {
//		db := dynamotest.Start(t) // one database for all tests, or a skip that says why
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
//  5. nothing: [ErrUnavailable], with a line for each thing that was tried.
//
// A first run downloads about 74 MB, a later one starts in one to two seconds.
// The cache is the folder samekey in [os.UserCacheDir], or DYNAMOTEST_CACHE.
// REQUIRE_DYNAMODB=1 makes [Start] fail a test instead of skipping it.
//
// The command ddblocal, in a folder of this package, does the same for any
// other command, which finds the endpoint in its environment.
//
// # What it keeps to
//
// The database is in memory and empty, its telemetry is off, and it gets no
// AWS variables of the environment. It runs in a process of its own, which
// [DB.Close] and [Main] end by its id; on Linux it also dies with a test
// process that is killed.
//
// DynamoDB Local listens on every interface and has no option against it. On
// Linux a small C shim, compiled into the cache on first use, keeps the Java
// process on loopback, and its sockets are looked at after the start. Without
// a C compiler, or on another system, Java is refused and docker is next;
// DYNAMOTEST_ALL_INTERFACES=1 lets it listen.
//
// # Faults
//
// A [Transport] counts requests by operation and injects what no emulator
// does: answers that are lost or torn after the write was applied, refused
// connections, throttling, conflicts, delay.
//
//	tr := &dynamotest.Transport{Fault: func(op string, n int) dynamotest.Fault {
//		if op == "PutItem" && n == 1 {
//			return dynamotest.LoseAnswer
//		}
//		return nil
//	}}
//	client := db.Client(func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: tr} })
//
// # What it isn't
//
// DynamoDB Local isn't DynamoDB: it never throttles, never answers
// TransactionConflict, reads are always consistent, TTL deletes within a second, and it
// reports wrong capacity for transactions.
//
// # Licence
//
// DynamoDB Local is software of AWS under a licence of its own, which forbids
// redistribution and asks for an AWS account in good standing. None of it is
// part of this module: the user's machine gets it, by Maven or Docker, and runs
// it as a separate process. Don't commit the jars or put them into an image
// that you publish.
package dynamotest
