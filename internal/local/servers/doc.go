// Package servers runs servers of other people's for tests and for the
// local stack: it gets a Java program by Maven, pinned and checked, starts it on
// a free port of the loopback interface, waits until it answers, and ends it
// with whoever started it.
//
//	b := servers.Bundle{Name: "queue-1.2", POM: pom, Sums: sums}
//	java, err := servers.FindJava(ctx, 17)
//	…
//	if b.Cached(b.Dir(root)) != nil {
//		err = b.Install(ctx, root)
//	}
//	s, err := servers.Server{Name: "the queue", Dir: b.Dir(root), Command: command}.Start(ctx)
//	…
//	defer s.Stop()
//
// Packages dynamo/dynamotest (DynamoDB Local) and
// internal/local/elasticmq (ElasticMQ) are built on it.
package servers
