package store

// Write is one of the user's own writes, or a check of an item that the user has read.
// A Write commits together with the record. A store's package has functions that make
// Writes, such as dynamo.Put. A [Store] refuses the Writes of another store's package,
// but idem.MemoryStore accepts those of any package.
type Write interface {
	// Err returns the reason why the write could not be built, or nil. If Err isn't nil,
	// the write's phase fails before anything is sent.
	Err() error
	// String describes the write, for tests. The description may contain the written
	// data, so it is never logged.
	String() string
}

// CommitChecker is implemented by a [Write] that knows which combinations of Writes its
// medium refuses in one commit, such as two Writes of one item, or too many Writes. One
// call of CheckCommit, on any Write of the commit, checks all Writes. idem.MemoryStore
// calls CheckCommit, so that a handler's test fails if the medium would refuse the
// commit.
type CommitChecker interface {
	Write
	// CheckCommit returns an error that matches [ErrWrite] if the given Writes can't be
	// committed together, or [ErrChanged] if two reads of one item differ. CheckCommit
	// ignores conflicts that only the medium can detect.
	CheckCommit(all []Write) error
}
