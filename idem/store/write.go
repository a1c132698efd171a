package store

// Write is one of the user's own writes, or a check of something that was read,
// which commits together with the record. It is made by a store's package
// (dynamo.Put and its like); a [Store] refuses those of another one.
type Write interface {
	// Err says why the write could not be built; nil if it could. A phase with
	// such a write fails before anything is sent.
	Err() error
	// String describes the write, for tests. It may hold what is written, so it
	// is never logged.
	String() string
}

// CommitChecker is implemented by a [Write] that knows what its medium refuses of
// the writes of one commit: two on one item, say, or too many. Any of them may be
// asked, for all. idem.MemoryStore does, so that a handler's test fails where its
// commit would.
type CommitChecker interface {
	Write
	// CheckCommit says why all can't be committed together; it wraps [ErrWrite].
	// Conflicts that only the medium can see are not its concern.
	CheckCommit(all []Write) error
}
