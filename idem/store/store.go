package store

import (
	"context"
	"time"
)

// Store keeps one [Record] for each key, on a medium with compare-and-set.
//
// A Store must be safe for concurrent use, also by many processes on a shared medium.
// Methods must return promptly when ctx ends. If a write has no acknowledgement by
// then, the method returns ErrUnknown, since the write may have been applied. After a
// call, neither the caller nor the store may change a record that was passed in or
// returned. The only exceptions are bodies and the Overflow fields (see Claim, Commit
// and [BodyLoader]), and Seal and Region of the new record: Claim and Commit may set
// Seal, and Claim may set an empty Region.
//
// If the store refuses a write because of the stored record, the method returns the stored
// record and no error. The refusal and the reading of the record must be one step. If there
// is no record any more, the method returns a zero Record (State [None]).
//
// A commit may carry the user's writes. The record and the user's writes are applied
// together or not at all. If the medium refuses a write because of the record and also
// for another reason, the method returns the record, because the refused write may be
// a second copy. If the first copy was applied and its acknowledgement was lost, the
// first copy itself has changed the record, and may have made the user's conditions
// false.
//
// The methods return these errors:
//
//   - [ErrUnknown] if the write may have been applied;
//   - [ErrRefused] if the medium refuses the call until people have corrected the cause;
//   - [ErrConflict] if the write was not applied because another write was in progress,
//     because the record's jobs have changed (see Commit), or because an item has changed
//     since it was read. In the last case the error also matches [ErrChanged];
//   - [ErrCondition] if a user-supplied condition was false;
//   - [ErrWrite] if the user's writes can never be committed;
//   - [ErrTooLarge] if the record would be larger than the medium's limit;
//   - [ErrCorrupt] if a stored record is unreadable;
//   - [ErrSealed] if the store can't encrypt or decrypt a record's contents.
//
// Any other error means that nothing was written.
type Store interface {
	// Claim writes c.Next if there is no record under c.Next.PK. If c.Seen is set,
	// Claim also replaces a record that has the owner and version of c.Seen. If c.Seen
	// is nil, Claim also replaces an expired record, unless the record is freed
	// (KeepFreed). If Claim replaced a freed record, a late copy of a claim could write
	// its own record again after an attempt has freed the key. A record is expired if
	// Expires is before c.Now, both in whole seconds. Claim also checks c.Beside (see
	// [Claim]). A store that keeps the body of a stored request outside of the record
	// sets Next.Input.Overflow, and writes the body after the claim is won.
	Claim(ctx context.Context, c Claim) (held *Record, err error)

	// Commit replaces c.Prev by c.Next if the stored record has the Owner and Ver of
	// Prev. No other field may refuse the commit, except for jobs that it removes. Next has
	// the same PK as Prev. Commit changes only the fields that differ between Prev and
	// Next. Commit writes the jobs that are in Next but not in Prev. If it wrote the
	// others too, a job that was delivered since Prev was read would reappear. Commit
	// removes jobs only if Next is freed (KeepFreed) and has no jobs: it then removes
	// all jobs. But if the stored record has other jobs, or other parked jobs, than
	// Prev, Commit removes nothing and returns ErrConflict.
	//
	// A store that keeps bodies outside of the record sets Next.Overflow before it
	// writes a body, so that a repeated commit doesn't write the body twice. If
	// Next.Input has a body but Prev.Input has none, the body comes from a client's
	// retry. The store then writes the body, since the attempt that claimed the key may
	// not have written it.
	Commit(ctx context.Context, c Commit) (held *Record, err error)

	// Load reads the current record, never an outdated version. If there is no record, Load
	// returns nil.
	Load(ctx context.Context, pk string) (*Record, error)
}

// Claim is the first write of an operation.
type Claim struct {
	Next *Record   // its Ver is 1
	Now  time.Time // the claimer's clock

	// Seen is the freed record that the claimer has read, or nil if there was none.
	// [Store] says which records a claim can replace with and without Seen.
	Seen *Record

	// Beside is the PK of the key's other place (idem.Options.Former), or "" if the key
	// has one place. A record under Beside refuses the claim. The only exception is the
	// record Fenced, which the claimer has fenced: a record with its owner and version
	// doesn't refuse. The store checks Beside and writes Next in one step. Otherwise two
	// claims could both win if the Beside of each is the Next.PK of the other. A refused
	// Claim returns the record under Next.PK if that record refuses the claim, and
	// otherwise the record under Beside.
	Beside string
	Fenced *Record
}

// Commit is any write after the claim: take-over, phase, finish or release.
type Commit struct {
	Prev   *Record // the record as last seen
	Next   *Record // its Ver is Prev.Ver + 1
	Writes []Write // the user's writes
}

// Taker is implemented by a [Store] that can take a record over without reading the record
// first. With any other Store, an engine reads the record and then commits.
type Taker interface {
	// Take replaces the record of t.PK by the result of t.From, and returns the new
	// record and true. If From returns nil, Take changes nothing and returns the
	// current record and false. Take may refuse even if From returns a record. Take
	// must refuse if the body of the stored request is outside of the record. After a
	// refusal, the engine checks the returned record, and may take the record over by
	// Commit. Errors are those of [Store].
	Take(ctx context.Context, t Take) (held *Record, taken bool, err error)
}

// Take is a take-over by a worker that knows the record's owner and version, but
// doesn't have the record.
type Take struct {
	PK       string
	Owner    string // the record's owner, as last seen
	Ver      int64  // the record's version, as last seen
	Released bool   // whether the taker believes that the last attempt released the record

	Now      time.Time   // the taker's clock, in whole milliseconds; the lease in the record must have ended by then
	Handlers []HandlerID // the record's handler must be one of these
	Tenant   string      // the record must have this tenant
	NewOwner string      // the taker's nonce
	Lease    time.Time   // end of the taker's lease

	Retention time.Duration // the record's Retention after the take-over

	// From returns the record after the take-over, or nil if the record must not be taken:
	// owner or version differ, the record isn't open, the lease hasn't ended, the record
	// belongs to another handler or tenant, the request isn't stored, or the record may
	// expire. For a nil record, From returns nil. From is pure and doesn't change its
	// argument.
	From func(*Record) *Record
}

// BodyLoader is implemented by a [Store] that may keep bodies outside of their
// record. A Record from such a store may have Overflow set and an empty body.
type BodyLoader interface {
	// LoadBody fills in r.Response.Body or r.Input.Body, whichever is stored outside of the
	// record. The error matches ErrNotKept if the body is missing, or differs from the body
	// that was stored. It matches ErrCorrupt instead if an encrypted part was altered.
	LoadBody(ctx context.Context, r *Record) error
}

// Sizer is implemented by a [Store] that knows before a commit whether the record will be
// too large. An engine calls Fits when jobs are staged, so that no job is refused after the
// work is done.
type Sizer interface {
	// Fits returns an error that matches ErrTooLarge if the record next is too large to
	// commit. The size includes the room that the store keeps free for later writes,
	// such as the answer. The record next is the successor of prev. Fits makes no
	// calls, and changes nothing.
	Fits(prev, next *Record) error
}
