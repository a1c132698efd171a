// Package eventsource invokes functions the way Lambda's event source mappings
// and EventBridge's schedules do, on one machine: from a DynamoDB stream, an
// SQS queue or a clock.
//
//	m, err := eventsource.Stream{
//		Function:                fn,
//		API:                     dynamodbstreams.NewFromConfig(cfg),
//		ARN:                     streamARN,
//		Filters:                 []string{`{"dynamodb":{"NewImage":{"keep":{"S":["jobs"]}}}}`},
//		ReportBatchItemFailures: true,
//		MaximumRetryAttempts:    new(5),
//	}.Start(ctx)
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//
// [Stream], [Queue] and [Schedule] are plain descriptions; Start checks a
// description and begins. Fields are named like the properties of a template, and
// their defaults are Lambda's unless documented otherwise.
//
// # Like Lambda
//
// Streams: shards are read in order, parents before children, across rollovers. Filters
// come before batching; size, window and 6 MB limit a batch. A failed batch is retried from
// its checkpoint, and bisected if configured, up to the retry limit or the age of its
// records. Then the batch goes to the destination, and the next batch follows. A throttled
// invocation uses up no retries.
//
// Queues: the successful part of a batch is deleted; the rest is left to the
// visibility timeout and the queue's redrive policy. A FIFO queue keeps the order
// within a message group.
//
// Both deliver at least once. No state is kept across processes: a stream begins at
// its starting position at each start.
//
// # Unlike Lambda
//
// Waits are short: an empty shard is read ten times a second, retries wait a second
// at most. There are no tumbling windows, no parallelization of a shard, no scaling.
// Records of a bisected batch that are given up are reported batch by batch, while
// Lambda may put several batches into one document. A scheduled run isn't retried.
package eventsource
