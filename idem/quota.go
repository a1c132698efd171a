package idem

import (
	"context"
	"time"
)

// Quota limits the new operations of callers; see [Options.Quota]. Package
// idem/quota implements it. A Quota is safe for concurrent use.
type Quota interface {
	// Begin is asked before each claim, and takes the place that a new operation
	// needs. A wait above zero means that the caller's quota is used up until then.
	// An error means that the quota could not be read. In both cases the engine looks
	// for the record of the key: a known key is served as always, and only a new
	// operation is refused, by ErrQuota or ErrUnavailable.
	//
	// Without both, the engine calls end exactly once, unless end is nil: as soon as
	// the key turns out to be known, or when the attempt has ended, also by a panic.
	// Begin and end run on the request's goroutine. They must not panic. Begin
	// returns promptly when ctx ends.
	Begin(ctx context.Context, r QuotaRequest) (end func(QuotaUse), wait time.Duration, err error)
}

// QuotaRequest describes a request to a [Quota]. It holds no key and no body.
type QuotaRequest struct {
	// Caller is the request's scope, without [Request.Operation]. It may name a
	// person: don't log it. The callers of [OneScope] share a Caller.
	Caller string
	// Route is the request's route; for records of an event, the name of the batch
	// if there is no route.
	Route string
	// Bytes is the size of the request's body.
	Bytes int64
	// Kept is how long the record of a finished operation lasts.
	Kept time.Duration
}

// QuotaUse describes what became of a place in a [Quota].
type QuotaUse struct {
	// New reports whether a new operation began. If not, the place was not needed:
	// the key was known, or the claim failed.
	New bool
	// Bytes estimates the size of the operation's record, with its answer, before
	// compression; 0 if New is false. Work that outlives the attempt may add to the
	// record.
	Bytes int64
}
