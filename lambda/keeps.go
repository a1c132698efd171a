package lambda

import "time"

// For how long a source may bring a record, at most: what AWS documents, November 2026.
const (
	day = 24 * time.Hour

	// MessageRetentionPeriod is at most 14 days. A dead-letter queue counts from when
	// the message was sent (a FIFO queue: from the move), a redrive counts anew.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	keepsSQS = 14 * day

	// An asynchronous invocation waits for up to 6 hours (MaximumEventAgeInSeconds).
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html
	keepsAsync = 6 * time.Hour

	// SNS tries to hand a message to Lambda for 23 days.
	// https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html
	keepsSNS = 23*day + keepsAsync

	// EventBridge tries for 24 hours (MaximumEventAgeInSeconds of a target). What an
	// archive replays comes for as long as that keeps it.
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
	keepsEventBridge = day + keepsAsync

	// RetentionPeriodHours is at most 8760.
	// https://docs.aws.amazon.com/streams/latest/dev/kinesis-extended-retention.html
	keepsKinesis = 365 * day

	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
	keepsDynamoDB = day
)
