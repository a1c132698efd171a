package store

import (
	"context"
	"time"
)

// Store keeps one [Record] for each key, on a medium with compare-and-set.
//
// A Store must be safe for concurrent use, also by many processes on a shared medium.
// Methods must return promptly when ctx ends. If a write has no acknowledgement by then,
// the method returns ErrUnknown, since the write may have been applied. After a call,
// neither the caller nor the store may change a record that was passed in or returned,
// except for the fields about bodies (see Claim and Commit).
//
// If the store refuses a write because of the stored record, the method returns the stored
// record and no error. The refusal and the reading of the record must be one step. If there
// is no record any more, the method returns a zero Record (State [None]).
//
// A commit may carry the user's writes. The record and the user's writes are applied
// together or not at all. If a write is refused because of the record and also for another
// reason, the method returns the record. Such a write may be the second copy of a write
// whose acknowledgement was lost: the first copy has changed the record, and may have made
// the user's conditions false as well.
//
// The methods return these errors:
//
//   - [ErrUnknown] if the write may have been applied;
//   - [ErrRefused] if the medium refused the call for good;
//   - [ErrConflict] if the medium refused the write because of another write in progress,
//     or because an item that was read has changed (then the error also matches
//     [ErrChanged]). In both cases, the write was certainly not applied;
//   - [ErrCondition] if a user-supplied condition was false;
//   - [ErrWrite] if the user's writes can't be sent at all;
//   - [ErrTooLarge] if the record would be larger than the medium's limit;
//   - [ErrCorrupt] if a stored record is unreadable.
//
// Any other error means that nothing was written.
type Store interface {
	// Claim writes c.Next if there is no record under c.Next.PK. If c.Seen is set, Claim
	// also replaces a record that has the owner and version of c.Seen. If c.Seen is nil,
	// Claim also replaces an expired record, but not a freed one (KeepFreed): otherwise a
	// late copy of a claim could revive its own operation after an attempt has freed the
	// key. A record is expired if Expires is before c.Now, both in whole seconds. A record
	// under c.Beside may refuse the claim, too. A store that keeps the body of a stored
	// request outside of the record sets Next.Input.Overflow, and writes the body once the
	// claim is won.
	Claim(ctx context.Context, c Claim) (held *Record, err error)

	// Commit replaces c.Prev by c.Next if the stored record has the Owner and Ver of Prev;
	// Commit compares no other fields. Next has the same PK as Prev. Commit changes only
	// the fields that differ between Prev and Next. Of the jobs in Next, Commit writes only
	// those that Prev doesn't have, so that a job that was delivered since Prev was read
	// doesn't reappear. Commit removes jobs in one case only: if Next is freed (KeepFreed)
	// and has no jobs, Commit removes all jobs. In this case, Commit compares the jobs,
	// too: it returns ErrConflict if the stored record has other jobs, or other parked
	// jobs, than Prev.
	//
	// A store that keeps bodies outside of the record sets Next.Overflow before it writes a
	// body, so that a repeated commit doesn't write the body twice. If Next.Input has a
	// body but Prev.Input has none, a client's retry has brought the body, and the store
	// writes it again.
	Commit(ctx context.Context, c Commit) (held *Record, err error)

	// Load reads the current record, never an outdated version. If there is no record, Load
	// returns nil.
	Load(ctx context.Context, pk string) (*Record, error)
}

// Claim is the first write of an operation.
type Claim struct {
	Next *Record   // its Ver is 1
	Now  time.Time // the claimer's clock

	// Seen is the freed record that the claimer has read; nil if there was none. If Seen is
	// set, the claim can win in two cases: there is no record, or the record has Seen's
	// owner and version. If Seen is nil, the claim can win if there is no record, or if the
	// record has expired and isn't freed.
	Seen *Record

	// Beside is another PK of the same key, while the key's scope changes
	// (idem.Options.Former); "" otherwise. The claim is refused if there is a record under
	// Beside, except a record with Fenced's owner and version. The store checks Beside and
	// writes Next in one step, so that two claims with Beside and Next.PK exchanged can't
	// both win. A refused Claim returns the record under Next.PK if that record refuses
	// the claim, and otherwise the record under Beside.
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
	// Take replaces the record of t.PK by the result of t.From, and returns the new record
	// and true. If From returns nil, Take changes nothing and returns the current record
	// and false. Take may refuse even if From returns a record. Take must refuse if the
	// body of the stored request is outside of the record. After a refusal, the engine
	// decides by the returned record whether to commit the take-over itself. Errors are
	// those of [Store].
	Take(ctx context.Context, t Take) (held *Record, taken bool, err error)
}

// Take is a take-over by a worker that knows the record's owner and version, but
// doesn't have the record.
type Take struct {
	PK       string
	Owner    string // the record's owner, as last seen
	Ver      int64  // the record's version, as last seen
	Released bool   // whether the last attempt released the record, as far as the taker knows; may be wrong

	Now      time.Time // the taker's clock, in whole milliseconds; the lease in the record must have ended by then
	Handlers []HandlerID
	Tenant   string    // the record must have this tenant and one of Handlers
	NewOwner string    // the taker's nonce
	Lease    time.Time // end of the taker's lease

	Retention time.Duration // the record's Retention after the take-over

	// From returns the record after the take-over, or nil if the record must not be taken:
	// owner or version differ, the record isn't open, the lease hasn't ended, the record
	// belongs to another handler or tenant, or the request isn't stored. For a nil record,
	// From returns nil. From is pure and doesn't change its argument.
	From func(*Record) *Record
}

// BodyLoader is implemented by a [Store] that may keep bodies outside of their
// record. A Record from such a store may have Overflow set and an empty body.
type BodyLoader interface {
	// LoadBody fills in r.Response.Body or r.Input.Body, whichever is stored outside of the
	// record. The error matches ErrNotKept if the body is missing, or differs from the body
	// that was stored.
	LoadBody(ctx context.Context, r *Record) error
}

// Sizer is implemented by a [Store] that knows before a commit whether the record will be
// too large. An engine calls Fits when jobs are staged, so that no job is refused after the
// work is done.
type Sizer interface {
	// Fits returns an error that matches ErrTooLarge if the record next, with room for an
	// answer's headers, is too large to commit. The record next is the successor of prev.
	// Fits makes no calls, and changes nothing.
	Fits(prev, next *Record) error
}
