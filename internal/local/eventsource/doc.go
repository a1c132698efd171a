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
// [Stream], [Queue] and [Schedule] are plain descriptions. Start checks the description
// and starts the source. Fields are named like the properties of a template, and their
// defaults are Lambda's unless documented otherwise.
//
// # Like Lambda
//
// Streams: the records of a shard are read in order, and a child shard after its parent.
// Records are filtered first, and then gathered into a batch until a number of records, a
// time or 6 MB is reached. A failed batch is retried from the first failed record, and
// bisected if configured, until the retries are used up or the records are too old. Then
// the batch goes to the on-failure destination, and the next batch is delivered. A
// throttled invocation uses up no retries.
//
// Queues: the successful part of a batch is deleted; the rest is left to the
// visibility timeout and the queue's redrive policy. A FIFO queue keeps the order
// within a message group.
//
// Streams and queues deliver at least once. No state is kept across processes, so a
// stream begins at its starting position at each start.
//
// # Unlike Lambda
//
// Waits are short: an empty shard is read ten times a second, and a failed batch waits a
// second at most for its retry. There are no tumbling windows, no parallelization of a
// shard, no scaling. When both halves of a bisected batch are given up, each half is
// reported in its own document; Lambda may report both in one. A scheduled run isn't
// retried.
package eventsource
