package store

// Write is one of the user's own writes, or a check of an item that was read, and
// commits together with the record. A store's package makes writes (dynamo.Put
// and similar functions); a [Store] refuses writes of another package.
type Write interface {
	// Err returns the reason why the write could not be built, or nil. A phase with
	// such a write fails before anything is sent.
	Err() error
	// String describes the write, for tests. The description may contain the written
	// data, so it is never logged.
	String() string
}

// CommitChecker is implemented by a [Write] that knows which combinations of
// writes its medium refuses in one commit, such as two writes of an item, or too
// many writes. CheckCommit of any of them checks all. idem.MemoryStore calls
// CheckCommit, so that a handler's test fails if its commit would fail.
type CommitChecker interface {
	Write
	// CheckCommit returns an error that wraps [ErrWrite] if all can't be committed
	// together. CheckCommit ignores conflicts that only the medium can detect.
	CheckCommit(all []Write) error
}
