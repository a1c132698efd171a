package eventsource

// Hooks are called as the source works; any may be nil. The source's own goroutines
// call them, several at once, and wait until they return.
type Hooks struct {
	// Invoked is called after each invocation, with any result.
	Invoked func(Invocation)
	// Filtered is called with the number of records that matched no filter and are
	// never delivered.
	Filtered func(records int)
	// Discarded is called for each batch of a stream that was given up, before
	// it goes to the destination.
	Discarded func(Failure)
	// Error is called with errors outside of the function: the source couldn't be
	// read, a message not deleted, a destination not reached. They don't end the
	// source.
	Error func(error)
}

// Invocation describes a call of the function.
type Invocation struct {
	// Records is the number of its records; 0 for a schedule.
	Records int
	// Failed is how many of them come again, or have been given up: all if Err is
	// set, otherwise the reported record and all later ones (stream) or the reported
	// ones (queue).
	Failed int
	// Err is why the invocation as a whole failed, nil otherwise: the function's
	// error, an answer that doesn't name its failed records properly, or the reason
	// why the function couldn't be invoked.
	Err error
}
