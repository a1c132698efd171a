// Package worker is the one background function of a table: drain, completer,
// tickets and sweep.
//
//	queue := completer.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("TICKETS_URL"))
//	lambda.Start(worker.New(client, store, queue, func(o *worker.Options) {
//		o.Sink = jobs.Route{"send_receipt": sink.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("RECEIPTS_URL"))}
//		o.Functions = completer.Invoke(awslambda.NewFromConfig(cfg), "charges")
//	}))
//
// Package readyworker does this from environment variables.
//
// # Events
//
// The function has three event sources: the table's stream (one event source mapping), the queue of
// tickets, and two schedules. One schedule is for the sweep. The other, every few minutes, is for
// the count of what waits for people; its Input is {"source":"aws.scheduler","task":"count"}.
// [Worker.Invoke] finds the event's source in the event.
//
// # Isolation
//
// One stream serves jobs and abandoned operations, and shows each record once. So neither may hold
// the stream up for the other:
//
//   - A job that can't be delivered is delayed: a ticket for it goes to the queue,
//     and the stream goes on. The ticket waits there, and is tried after growing pauses,
//     until the job is delivered or parked. The job itself waits in its record, where the sweep
//     finds it.
//   - A ticket that can't be queued is left to the sweep, and the stream goes on.
//   - Each sink works beside the others and beside the queue, and has a share of a
//     batch's time ([Options.Share]). A sink that uses up its share and delivers no job
//     gets half as much the next time. Otherwise it gets twice as much, up to the whole share.
//   - A job whose record was deleted by hand is the exception: the stream has its
//     only copy. If it can't be delivered, the batch comes again.
package worker
