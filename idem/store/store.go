package store

import (
	"context"
	"time"
)

// Store keeps one [Record] for each key, on a medium that can compare and set.
//
// A Store is safe for concurrent use, by many processes where its medium is
// shared. Methods return promptly when ctx ends; a write whose answer did not
// come must then report ErrUnknown, since it may still have been applied. A
// record handed in or out belongs to the other side afterwards: neither side
// changes it, but for the notes about bodies named below.
//
// A write that the record in the way refuses is no error: it returns that
// record, read in the same step as the refusal. If there is none any more,
// that is a zero Record (State [None]).
//
// A claim or commit may carry writes of the user's: they and the record's are
// applied all or none. The record's own refusal is told before anything else,
// since after a lost answer the user's conditions have come untrue as well.
//
// Errors: [ErrUnknown] where the write may have been applied, [ErrConflict]
// where the medium refused it because of another write in progress, or because
// something that was read for it has changed, and it certainly was not,
// [ErrCondition] where a condition of the user's own was false, [ErrWrite] where
// the user's writes can't be sent at all, [ErrCorrupt] where a stored record can't be understood;
// any other error says that nothing was written.
//
// The suite in idemtest holds an implementation to all of this.
type Store interface {
	// Claim writes c.Next if there is no record for its PK, or an expired one
	// (Expires before c.Now, in whole seconds) of another owner: a late copy of
	// a claim must not revive a record that its own attempt has freed. A store
	// that keeps the body of a stored request elsewhere sets Next.Input.Overflow,
	// and writes it once the claim is won.
	Claim(ctx context.Context, c Claim) (held *Record, err error)

	// Commit turns c.Prev into c.Next, both for the same PK, if the stored
	// record has Prev's Owner and Ver. Nothing else is compared, and only what
	// differs between the two is touched. Jobs are only ever added: those that
	// were delivered since Prev was read stay away.
	//
	// A store that keeps bodies elsewhere sets Next.Overflow before it writes one,
	// so that the same record, sent again, isn't written twice; and writes the body
	// of Next.Input again where Prev.Input has none: a client's retry brings it.
	Commit(ctx context.Context, c Commit) (held *Record, err error)

	// Load reads a record, never an outdated one. Without one it returns nil.
	Load(ctx context.Context, pk string) (*Record, error)
}

// Claim is the first write of an operation.
type Claim struct {
	Next   *Record   // Ver 1
	Now    time.Time // the claimer's clock
	Writes []Write   // the user's, of a claim that is merged with a commit
}

// Commit is any later write: take-over, phase, finish, release.
type Commit struct {
	Prev   *Record // as last seen
	Next   *Record // Ver is Prev.Ver + 1
	Writes []Write // the user's
}

// Taker is implemented by a [Store] that takes over without reading first. On
// any other, an engine reads the record and commits.
type Taker interface {
	// Take turns the record of t.PK into what [Take].From makes of it and returns
	// that, with true. Where From refuses, it changes nothing and returns the record
	// as it is, with false. It may do so, too, where From wouldn't, and must do so
	// where the body of the stored request lies elsewhere: the engine then decides
	// from the record, and commits. Errors are those of [Store].
	Take(ctx context.Context, t Take) (held *Record, taken bool, err error)
}

// Take is a take-over by a worker that has seen the record's owner and version,
// but doesn't have the record.
type Take struct {
	PK       string
	Owner    string // the record's, as it was seen
	Ver      int64  // the record's, as it was seen
	Released bool   // the record's attempt gave it back, as far as the taker knows: it may be wrong

	Now      time.Time // by the taker's clock, to the millisecond: the lease must be over
	Handlers []HandlerID
	Tenant   string    // with Handlers: one of them, and the tenant, must be the record's
	NewOwner string    // the taker's nonce
	Lease    time.Time // until when it holds the record

	// From returns the record as it is once it is taken over, or nil where it must
	// not be taken: its owner or version is another one, it isn't open, its lease
	// isn't over, it belongs to another handler or tenant, or its request isn't
	// stored. A nil record must not be taken. From is pure and changes nothing that
	// it is given.
	From func(*Record) *Record
}

// BodyLoader is implemented by a [Store] that may keep bodies outside of their
// record: a Record it returns then has Overflow set and an empty body.
type BodyLoader interface {
	// LoadBody fills in r.Response.Body or r.Input.Body, whichever lies
	// elsewhere, or returns an error that wraps ErrNotKept if it is missing or
	// isn't what was stored.
	LoadBody(ctx context.Context, r *Record) error
}

// Peeker is implemented by a [Store] with a cheaper read that may be outdated.
// It serves read-first engines (idem.Options.ReadFirst) only.
type Peeker interface {
	// Peek is Load, but may return an outdated record, or nil for a new one.
	Peek(ctx context.Context, pk string) (*Record, error)
}
