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
// # Whose fault an error is
//
// What a service documents decides, and else the class of the error. That a job is
// too large or has content that isn't taken counts against it, and it is parked
// after some of these. No answer, a status of 5xx, throttling, and being kept out
// (401, 403, 404) match idem.ErrSinkDown and don't count; the rest of the batch then
// isn't tried (idem.ErrNotTried), so that a sink that is down costs one call.
//
// Any other refusal (4xx) may be for what is in the job, or for how the sink is set
// up. It counts if the sink took another job of the batch. If it took none, the
// refusal counts for the first of those that it refused, and after ten of them the
// rest isn't tried. So bad jobs are parked, if only one after another, and a sink
// that refuses everything doesn't get everything parked.
//
// # Sizes
//
// Calls are cut by the limits that the services document: SQS takes 1 MiB, EventBridge
// 1 MB, SNS the 256 KiB of a topic that isn't set higher; ten entries each. A job over
// the limit is sent alone, for the service to judge. Where a call is refused because a
// queue is set lower, each of its jobs is sent alone. An asynchronous invoke takes 1 MB.
//
// It is a package of its own so that functions that need no such client don't
// carry one.
package sink
