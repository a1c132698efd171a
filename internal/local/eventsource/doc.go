// Package eventsource invokes functions on one machine, from a DynamoDB stream, an SQS
// queue or a clock. It does so as Lambda's event source mappings and EventBridge's
// schedules do.
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
// Streams: the records of a shard are read in order, and a child shard after its
// parent. Records are filtered first. The remaining records are gathered into a batch
// until a number of records, a time or 6 MB is reached. A failed batch is retried,
// beginning with its first failed record, and bisected if configured. When the retries
// are used up or the records are too old, the batch goes to the on-failure destination,
// and the next batch is delivered. A throttled invocation uses up no retries.
//
// Queues: the messages of a batch that succeeded are deleted. The failed messages stay
// in the queue, whose visibility timeout and redrive policy decide what happens to
// them. A FIFO queue keeps the order within a message group.
//
// Streams and queues deliver at least once. No state is kept across processes, so a
// stream begins at its starting position at each start.
//
// # Unlike Lambda
//
// Waits are short: an empty shard is read ten times a second, and a failed batch waits
// a second at most for its retry. There are no tumbling windows, no parallelization of
// a shard, no scaling. When both halves of a bisected batch are given up, each half has
// its own [Failure]; Lambda may report both halves in one. A scheduled run isn't
// retried, unless [Schedule].Async retries it.
package eventsource
