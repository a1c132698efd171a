package idem

import (
	"context"
	"time"
)

// Event describes an occurrence to a hook. An Event holds no key, no body and no
// scope.
type Event struct {
	Record  string        // short hash that names the record in logs
	ID      string        // server-made id of the operation; "" if not yet known
	Route   string        // the request's route
	Phase   string        // name of the committed phase
	Status  int           // status of the answer; 0 without an answer
	Created time.Time     // time of the claim; zero if unknown
	Expires time.Time     // end of the key's lifetime; zero if unknown
	Lease   time.Duration // rest of the lease of an operation in flight
	Err     error         // cause of a failure; else nil
}

// Hooks are called as an engine works. Nil hooks are skipped. Hooks run on the
// request's goroutine, possibly for many requests at once, and must neither block
// nor panic. Their arguments are copies.
type Hooks struct {
	Claimed    func(context.Context, Event) // a new operation begins
	TakenOver  func(context.Context, Event) // an attempt takes over an abandoned operation
	Committed  func(context.Context, Event) // a phase is stored
	Finished   func(context.Context, Event) // an answer is stored
	Released   func(context.Context, Event) // an attempt gives its key back without an answer
	Replayed   func(context.Context, Event) // a stored answer is given again
	InFlight   func(context.Context, Event) // refused: another attempt holds the key
	Mismatch   func(context.Context, Event) // refused: the key was used with another request
	Stuck      func(context.Context, Event) // an operation got stuck: an operator has to settle it
	Blocked    func(context.Context, Event) // the program refuses to continue the operation, on each try: people have to correct the program or the record
	LeaseLost  func(context.Context, Event) // another attempt overtook this attempt
	Refused    func(context.Context, Event) // refused before the record was read, or stuck, or expired, or for its credentials
	Failed     func(context.Context, Event) // the store failed, or a record is corrupt
	FailedOpen func(context.Context, Event) // the handler ran unprotected (Options.FailOpen)
	Observed   func(context.Context, Event) // KeyObserve: Err is the outcome that the request would have had
}

func call(ctx context.Context, hook func(context.Context, Event), ev Event) {
	if hook != nil {
		hook(ctx, ev)
	}
}
