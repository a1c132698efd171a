package sink

// limits are a service's limits for a call.
type limits struct {
	entries int
	// bytes is the limit for all entries together, counted as the service counts
	// them. An entry over the limit is sent alone, and the service decides: its
	// limit may be set differently, such as a queue's or topic's MaximumMessageSize,
	// and limits grow.
	bytes int
}

// The limits of the services, each from the API reference that comes with this
// module's version of its SDK client.
var (
	// SendMessageBatch: 1 MiB for a message, and for all messages of a call; since
	// August 2025, before that 256 KiB. A message counts its body, and its
	// attributes' names, types and values.
	sqsLimits = limits{entries: 10, bytes: 1 << 20}
	// PublishBatch: the topic's MaximumMessageSize for a message, and for all
	// messages of a call: 256 KiB by default, at most 1 MiB. Body and attributes
	// count.
	snsLimits = limits{entries: 10, bytes: 256 << 10}
	// PutEvents: all entries together are less than "1MB", read here as the smaller
	// of its meanings; since January 2026, before that 256 KB. An entry counts its
	// source, detail-type and detail.
	busLimits = limits{entries: 10, bytes: 1_000_000 - 1}
	// Invoke takes one event a call: 1 MB if it is asynchronous, since October 2025,
	// before that 256 KB. There is nothing to cut, and Lambda is the judge.
)
