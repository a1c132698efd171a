// Package servers runs third-party servers for tests and for the local stack. It
// downloads the jars of a Java program by Maven, and checks them against pinned sums.
// It starts the program on a free port of the loopback interface, and waits until the
// program answers. On Linux the program ends with the process that started it, even if
// this process is killed.
//
//	found, err := servers.Source{
//		Kind: "a queue", Endpoint: "AWS_ENDPOINT_URL_SQS", …,
//		Java: 17, Bundle: servers.Bundle{Name: "queue-1.2", POM: pom, Sums: sums},
//		Start: func(ctx context.Context, java, dir string) (*servers.Found, error) {
//			running, err := servers.Server{Name: "the queue", Dir: dir, Command: command}.Start(ctx)
//			…
//		},
//	}.Find(ctx)
//	…
//	h := servers.Handle{Stop: found.Stop}
//	defer h.Close()
//
// Packages dynamo/dynamotest (DynamoDB Local) and internal/servers/elasticmq use this package.
package servers
