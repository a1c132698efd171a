// Package worker runs the drain, the completer, the handler of tickets and the sweep in one
// background function.
//
//	queue := completer.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("TICKETS_URL"))
//	lambda.Start(worker.New(client, store, queue, func(o *worker.Options) {
//		o.Sink = jobs.Route{"send_receipt": sink.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("RECEIPTS_URL"))}
//		o.Functions = completer.Invoke(awslambda.NewFromConfig(cfg), "charges")
//	}))
//
// Package readyworker makes such a worker from environment variables.
//
// # Events
//
// The function's event sources are the table's stream (one event source mapping), the queue of
// tickets, and two schedules. One schedule starts the sweep. The other, whose Input is
// {"source":"aws.scheduler","task":"count"}, starts a count of what waits for people every few
// minutes. After each count, the worker continues the sweep's pass if one is under way.
// [Worker.Invoke] sees from an event which source sent it.
//
// # Isolation
//
// Jobs and abandoned operations share one reader of the stream, which sees each stream record once.
// Neither may hold up the other:
//
//   - A job that can't be delivered is delayed: a ticket for it goes to the queue, and the stream
//     goes on. The ticket waits in the queue, and is tried after growing pauses, until the job is
//     delivered or parked. The job itself waits in its record, where the sweep finds it.
//   - If a ticket can't be queued, its job or operation is left to the sweep, and the
//     stream goes on.
//   - The sinks work concurrently. Each sink, and the queue, has a share of a batch's
//     time ([Options.Share]). If a sink uses up its share and delivers no job, its next
//     share is half as long. Otherwise the next share is twice as long, up to the whole
//     share.
//   - There is one exception. If a record was deleted by hand, only the stream still
//     has the record's jobs. If such a job can't be delivered, the batch is retried.
package worker
