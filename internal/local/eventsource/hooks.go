package eventsource

// Hooks are called as the source works; any hook may be nil. Several goroutines of the source may
// call hooks at once. Each waits until its hook returns.
type Hooks struct {
	// Invoked is called after each invocation, successful or not.
	Invoked func(Invocation)
	// Filtered is called with the number of records that matched no filter and are
	// never delivered.
	Filtered func(records int)
	// Discarded is called when a stream's batch was given up, before the batch goes to the
	// destination.
	Discarded func(Failure)
	// Error is called with the source's own errors: a read failed, a message couldn't be
	// deleted, or a destination couldn't be reached. These errors don't end the source.
	Error func(error)
}

// Invocation describes a call of the function.
type Invocation struct {
	// Records is the number of records or messages; 0 for a schedule.
	Records int
	// Failed is how many records or messages will be delivered again or are given up. If Err is
	// set, that is all of them. Otherwise it is, for a stream, the first record that the function
	// reported and all later records, and for a queue, the messages that the function reported.
	Failed int
	// Err is nil unless the invocation failed as a whole. Then it is the function's error, or
	// says that the answer doesn't name its failed records properly, or why the function
	// couldn't be invoked.
	Err error
}
