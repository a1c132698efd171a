package sink

// limits are what one call of a service takes.
type limits struct {
	entries int
	// bytes is for all entries together, counted as the service counts them. An
	// entry over it goes alone, for the service to judge: it may be set otherwise,
	// as a queue's and a topic's MaximumMessageSize, and limits grow.
	bytes int
}

// The limits of the services, each as the API reference has it that comes with
// this module's version of its SDK client.
var (
	// SendMessageBatch: 1 MiB for a message, and for all of a call; since August
	// 2025, before that 256 KiB. A message is its body, and its attributes' names,
	// types and values.
	sqsLimits = limits{entries: 10, bytes: 1 << 20}
	// PublishBatch: the topic's MaximumMessageSize for a message, and for all of a
	// call: 256 KiB if nobody sets it, 1 MiB at most. Body and attributes count.
	snsLimits = limits{entries: 10, bytes: 256 << 10}
	// PutEvents: all entries together are less than "1MB", which is taken for the
	// smaller of its meanings; since January 2026, before that 256 KB. An entry is
	// its source, detail-type and detail.
	busLimits = limits{entries: 10, bytes: 1_000_000 - 1}
	// Invoke takes one event a call: 1 MB if it is asynchronous, since October 2025,
	// before that 256 KB. There is nothing to cut, and Lambda is the judge.
)
