package eventsource

// Hooks are called as things happen; any may be nil. They are called by the
// source's own goroutines, several at once, and hold it up until they return.
type Hooks struct {
	// Invoked is called after each invocation, whatever came of it.
	Invoked func(Invocation)
	// Filtered is called with the number of records that no filter wanted. They
	// are never delivered.
	Filtered func(records int)
	// Discarded is called for each batch of a stream that was given up, before
	// it goes to the destination.
	Discarded func(Failure)
	// Error is called with what went wrong outside of the function: the source
	// couldn't be read, a message not deleted, a destination not reached. The
	// source goes on by itself; these errors don't end it.
	Error func(error)
}

// Invocation tells of one call of the function.
type Invocation struct {
	// Records is how many records it got; 0 for a schedule.
	Records int
	// Failed is how many of them come again, or have been given up: all if Err
	// is set, otherwise those from the reported one on (stream) or those
	// reported (queue).
	Failed int
	// Err is why the invocation as a whole failed, nil otherwise: the function's
	// error, an answer that names no failed record properly, or the reason why
	// the function couldn't be invoked.
	Err error
}
