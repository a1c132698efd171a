package idem

import (
	"context"
	"time"
)

// Event is what a hook is told. It holds no key, no body and no scope.
type Event struct {
	Record  string        // short hash that names the record in logs
	ID      string        // server-made id of the operation; "" before one is known
	Route   string        // the request's
	Phase   string        // that was committed
	Status  int           // of the answer, where there is one
	Created time.Time     // when the key was claimed, where that is known
	Expires time.Time     // end of the key's lifetime, where that is known
	Lease   time.Duration // what is left of it, in flight
	Err     error         // why, where something failed
}

// Hooks are called as an engine works; a nil one is skipped. They run on the
// request's goroutine, possibly at once for many requests, and must neither
// block nor panic. What they are given are copies.
type Hooks struct {
	Claimed    func(context.Context, Event) // a new operation begins
	TakenOver  func(context.Context, Event) // an abandoned one is taken over
	Committed  func(context.Context, Event) // a phase is stored
	Finished   func(context.Context, Event) // the answer is stored
	Released   func(context.Context, Event) // given back without an answer
	Replayed   func(context.Context, Event) // a stored answer is given
	InFlight   func(context.Context, Event) // refused: another attempt holds the key
	Mismatch   func(context.Context, Event) // refused: the key was used with another request
	Stuck      func(context.Context, Event) // given up: an operator has to settle it
	Blocked    func(context.Context, Event) // refused by its own program, each time: people have to change that
	LeaseLost  func(context.Context, Event) // the attempt was overtaken
	Refused    func(context.Context, Event) // refused before the record was looked at, or stuck, or expired, or for its credentials
	Failed     func(context.Context, Event) // the store failed, or a record is corrupt
	FailedOpen func(context.Context, Event) // the handler ran unprotected (Options.FailOpen)
	Observed   func(context.Context, Event) // KeyObserve: Err says what would have become of the request
}

func call(ctx context.Context, hook func(context.Context, Event), ev Event) {
	if hook != nil {
		hook(ctx, ev)
	}
}
