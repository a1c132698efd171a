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
// A record names the function and the handler that claimed it, and its ticket goes
// to that function, if it is one of the completer's [Functions]; the function takes
// nothing over that isn't its own. A ticket whose handler isn't found changes
// nothing and is kept, for somebody to look why ([TicketNotMine]). Aliases,
// renamed functions, tenants: docs/completing.md.
package completer
