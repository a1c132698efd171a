package store

import (
	"context"
	"time"
)

// Store keeps one [Record] for each key, on a medium with compare-and-set.
//
// A Store is safe for concurrent use, also by many processes on a shared medium.
// Methods return promptly when ctx ends; a write without an acknowledgement must
// then return ErrUnknown, since the write may still have been applied. After a
// call, a record passed in or out belongs to the other side: neither side changes
// the record, except for the notes about bodies described below.
//
// A write that is refused because of the stored record returns no error. It
// returns that record, read in the same step as the refusal, or a zero Record
// (State [None]) if there is no record any more.
//
// A claim or commit may carry the user's writes. The record and the user's writes
// are applied together or not at all. A refusal because of the record takes
// precedence over other refusals, since after a lost acknowledgement the user's
// conditions are false as well.
//
// Errors: [ErrUnknown] if the write may have been applied. [ErrRefused] if the medium
// refused the call for good. [ErrConflict] if the medium refused the write because of
// another write in progress, or ([ErrChanged]) because an item that was read has
// changed; the write was certainly not applied.
// [ErrCondition] if a user-supplied condition was false. [ErrWrite] if the user's
// writes can't be sent at all. [ErrTooLarge] if the record would be larger than the
// medium's limit. [ErrCorrupt] if a stored record is unreadable. Any
// other error means that nothing was written.
//
// The suite in idemtest checks implementations.
type Store interface {
	// Claim writes c.Next if its PK has no record, or an expired record (Expires before
	// c.Now, in whole seconds) of another operation (ID). A late copy of a claim must not
	// revive its own operation after an attempt has freed it. c.Beside may refuse the claim
	// too. A store that keeps the body of a stored request elsewhere sets
	// Next.Input.Overflow, and writes the body once the claim is won.
	Claim(ctx context.Context, c Claim) (held *Record, err error)

	// Commit turns c.Prev into c.Next, both with the same PK, if the stored record has the
	// Owner and Ver of Prev. Commit compares nothing else and changes only fields that
	// differ between Prev and Next. Jobs are only added: jobs that were delivered since Prev
	// was read don't reappear. But if Next is freed (KeepFreed) and has no jobs, Commit
	// removes all jobs. Such a Commit returns ErrConflict unless the record has the jobs of
	// Prev, with the same jobs parked.
	//
	// A store that keeps bodies elsewhere sets Next.Overflow before it writes a
	// body, so that a repeated commit doesn't write the body twice. If Prev.Input
	// has no body, the store writes the body of Next.Input again: a client's retry
	// brings the body.
	Commit(ctx context.Context, c Commit) (held *Record, err error)

	// Load reads the current record, never an outdated record. Without a record Load
	// returns nil.
	Load(ctx context.Context, pk string) (*Record, error)
}

// Claim is the first write of an operation.
type Claim struct {
	Next *Record   // Ver 1
	Now  time.Time // the claimer's clock

	// Seen is the freed record that the claimer has read; nil if there was none. With Seen,
	// the claim is refused unless there is no record, or the record has Seen's owner and
	// version. Without Seen, the claim is refused unless there is no record, or the record
	// has expired.
	Seen *Record

	// Beside, unless empty, is the key's other PK while its scope changes. The claim is
	// refused if Beside has a record, unless the record has Fenced's owner and version. The
	// store reads Beside in the same step as it writes, since two claims that cross must not
	// both win. The refusal returns the record of Beside, unless the record of Next.PK
	// refuses too.
	Beside string
	Fenced *Record
}

// Commit is any later write: take-over, phase, finish or release.
type Commit struct {
	Prev   *Record // as last seen
	Next   *Record // Ver is Prev.Ver + 1
	Writes []Write // the user's writes
}

// Taker is implemented by a [Store] that can take a record over without reading
// it first. With any other store, an engine reads the record and commits.
type Taker interface {
	// Take replaces the record of t.PK by the result of [Take].From and returns the
	// new record and true. If From refuses, Take changes nothing and returns the
	// current record and false. Take may also refuse if From accepts, and must
	// refuse if the body of the stored request lies elsewhere: the engine then
	// decides from the record, and commits. Errors are those of [Store].
	Take(ctx context.Context, t Take) (held *Record, taken bool, err error)
}

// Take is a take-over by a worker that knows the record's owner and version, but
// doesn't have the record.
type Take struct {
	PK       string
	Owner    string // the record's owner, as last seen
	Ver      int64  // the record's version, as last seen
	Released bool   // whether the record's attempt gave it back, as far as the taker knows; may be wrong

	Now      time.Time // the taker's clock, to the millisecond: the lease must have ended
	Handlers []HandlerID
	Tenant   string    // the record must have this tenant and one of Handlers
	NewOwner string    // the taker's nonce
	Lease    time.Time // end of the taker's lease

	Retention time.Duration // [Record.Retention] from now on

	// From returns the record after the take-over, or nil if the record must not be
	// taken: owner or version differ, the record isn't open, the lease hasn't ended,
	// the record belongs to another handler or tenant, or the request isn't stored.
	// A nil record must not be taken. From is pure and doesn't change its argument.
	From func(*Record) *Record
}

// BodyLoader is implemented by a [Store] that may keep bodies outside of their
// record. A Record from such a store may have Overflow set and an empty body.
type BodyLoader interface {
	// LoadBody fills in r.Response.Body or r.Input.Body, whichever lies elsewhere.
	// The error wraps ErrNotKept if the body is missing or differs from the stored
	// body.
	LoadBody(ctx context.Context, r *Record) error
}

// Sizer is implemented by a [Store] that knows before a commit whether the commit fits. An
// engine asks when jobs are staged, so that no job is refused after the work is done.
type Sizer interface {
	// Fits returns an error that matches ErrTooLarge if next, the successor of prev, plus
	// room for an answer's headers, is too large to commit. Fits makes no calls, and changes
	// nothing.
	Fits(prev, next *Record) error
}
