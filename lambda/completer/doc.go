// Package completer holds the ends of the completer: the SQS [Queue] in which
// tickets of unfinished operations wait, the [Handler] of that queue, and what it
// hands due tickets to: the function that serves the operation ([Invoke]), or
// code in the same process ([InProcess]).
//
// The function on the table's stream:
//
//	queue := completer.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("TICKETS_URL"))
//	lambda.Start(dynamo.NewCompleter(queue))
//
// The function on the queue, which may be the same program:
//
//	queue := completer.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("TICKETS_URL"))
//	api := completer.Invoke(awslambda.NewFromConfig(cfg), os.Getenv("API_FUNCTION"))
//	lambda.Start(completer.New(queue, api))
//
// # What it guarantees
//
// A ticket names an operation as somebody saw it, and is good for one take-over
// under a condition of the table. So tickets may be lost, late, repeated or out
// of order without harm; the sweep finds what has none.
//
// # Several functions on one table
//
// A ticket must come to the function whose code began the operation. Functions
// that share a table use an idem.Options.Namespace each, and [ByNamespace].
package completer
