package eventsource

// Hooks are called as the source works; any hook may be nil. The source's own goroutines
// call hooks, several at once, and wait until the hooks return.
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
	// set, all have failed. Otherwise a stream's reported record and all later records have failed,
	// or a queue's reported messages.
	Failed int
	// Err is why the invocation as a whole failed; otherwise nil. It is the function's
	// error, an answer that doesn't name its failed records properly, or the reason why the
	// function couldn't be invoked.
	Err error
}
