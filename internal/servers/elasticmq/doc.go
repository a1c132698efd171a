// Package elasticmq finds an SQS server, or starts ElasticMQ on 127.0.0.1. ElasticMQ
// keeps its queues in memory.
//
//	q, err := elasticmq.Find(ctx)
//	if err != nil {
//		return err
//	}
//	defer q.Close()
//	out, err := q.Client().CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("jobs")})
//
// A test calls [Start] instead. Start closes the server at the test's end. It skips the
// test if no server can be found or started.
//
// Create and use queues with the SQS API. Delays, visibility timeouts, redrive policies and
// FIFO order are supported.
//
// # Where the server comes from
//
// [Find] tries these in this order:
//
//  1. the endpoint in AWS_ENDPOINT_URL_SQS: if it is set, Find uses it and starts nothing.
//     A host that isn't loopback is an error unless QUEUELOCAL_ALLOW_REMOTE=1;
//  2. Java 17 or newer (JAVA_HOME, then PATH), and jars that are in the cache already;
//  3. Java and Maven: Maven downloads the jars of a pinned pom into the cache, and every
//     file is checked against pinned SHA-256 sums.
//
// If none works, Find's error matches [ErrUnavailable] and has a line for each source
// that was tried.
//
// A first run downloads about 37 MB, a later run starts in about two seconds. The cache is
// the folder named by DYNAMOTEST_CACHE, or else the folder samekey in [os.UserCacheDir].
// Package dynamotest uses the same cache.
//
// The server runs in its own process, without the environment's AWS variables.
// [Server.Close] ends the process. On Linux the process also ends if its parent is killed.
//
// # Differences from SQS
//
// ElasticMQ has one region and one account (us-east-1 and 123456789012 here), no
// permissions and no metrics. Maven downloads ElasticMQ to the user's machine, under
// the Apache License 2.0.
package elasticmq
