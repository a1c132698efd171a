package client

import (
	"context"
	"time"
)

// Reason says why a request is retried, or why it no longer is.
type Reason string

// Why a request is sent again.
const (
	ReasonNetwork Reason = "network" // no answer, or a torn one
	ReasonTimeout Reason = "timeout" // no answer within Options.AttemptTimeout
	ReasonStatus  Reason = "status"  // a status that is retried
	ReasonAsked   Reason = "asked"   // the server's should-retry header says so
)

// Why it is not, though it failed in a way that could be retried.
const (
	ReasonRefused    Reason = "refused"     // the server's should-retry header says no
	ReasonIgnored    Reason = "ignored"     // the server says that it ignores the key
	ReasonRetries    Reason = "retries"     // Options.MaxRetries is reached
	ReasonBody       Reason = "body"        // the body can't be sent again
	ReasonRetryAfter Reason = "retry-after" // Retry-After is longer than Options.MaxRetryAfter
	ReasonLifetime   Reason = "lifetime"    // the key would be over by then
	ReasonDeadline   Reason = "deadline"    // the context's deadline comes before the end of the wait
	ReasonBudget     Reason = "budget"      // too many requests of this transport are retried
)

// Event is what a hook is told. It holds no key and no body.
type Event struct {
	Method    string
	Host      string        // of the URL, with its port
	Operation string        // from WithOperation
	Keyed     bool          // false for an idempotent method's request without a key
	Attempt   int           // from 1; 0 before the first
	Status    int           // of the answer, where there is one
	Took      time.Duration // of the attempt
	Wait      time.Duration // before the next attempt
	Reason    Reason
	Err       error
}

// Hooks are called as a transport works; a nil one is skipped. They run on the
// request's goroutine, possibly at once for many requests, and must neither
// block nor panic. Requests that pass untouched are not told of.
type Hooks struct {
	KeyMade       func(context.Context, Event) // a request got a new key
	Resumed       func(context.Context, Event) // an operation goes on with the key in the journal
	Attempt       func(context.Context, Event) // an attempt ended, with Status or Err
	Retry         func(context.Context, Event) // it is to be sent again, after Wait, for Reason
	GaveUp        func(context.Context, Event) // a failure is returned that could have been retried, for Reason
	Replayed      func(context.Context, Event) // the answer is that of an earlier attempt
	DeletedBefore func(context.Context, Event) // a repeated DELETE found nothing: counted as success
	JournalFailed func(context.Context, Event) // the answer could not be noted, and is returned all the same
}

// tell calls hook with what all events have in common.
func (o *operation) tell(hook func(context.Context, Event), ev Event) {
	if hook == nil {
		return
	}
	ev.Method, ev.Host, ev.Operation, ev.Keyed, ev.Attempt = o.req.Method, o.req.URL.Host, o.entry.Operation, o.key != "", o.attempts
	hook(o.req.Context(), ev)
}
