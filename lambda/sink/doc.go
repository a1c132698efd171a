// Package sink holds the ends of a drain: a [Queue], a [Topic], a [Bus], a
// [Function], each an idem.Sink over one method of an SDK client.
//
//	receipts := sink.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("RECEIPTS_URL"))
//	drain := dynamo.NewDrain(store, idem.Route{"send_receipt": receipts})
//	lambda.Start(drain)
//
// A job arrives at least once, under an id that stays the same; what it arrives
// as is said with each sink. Package lambda has the consumers that do each id
// once.
//
// Errors that say that a job itself can't be taken, such as one that is too
// large, count against it, and it is parked after some of them. All others match
// idem.ErrSinkDown, and don't.
//
// It is a package of its own so that functions that need no such client don't
// carry one.
package sink
