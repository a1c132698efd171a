package eventsource

// Hooks are functions that the source calls as it works. Any hook may be nil. Several
// goroutines of the source may call hooks at once. Each goroutine waits until the hook
// that it called returns.
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
	// Failed is how many records or messages will be delivered again or are given up.
	//   - If Err is set, Failed counts all.
	//   - If Err is nil, a stream counts the first record that the function reported
	//     and all later records. A queue counts the messages that the function reported.
	Failed int
	// Err is nil unless the invocation failed as a whole. Then Err is the function's
	// error, or the reason why the function couldn't be invoked, or an error that says
	// that the answer doesn't name its failed records properly.
	Err error
}
