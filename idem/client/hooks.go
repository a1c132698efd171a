package client

import (
	"context"
	"time"
)

// Reasons to send a request again.
const (
	reasonNetwork = "network" // no answer, or a torn answer
	reasonTimeout = "timeout" // no answer within Options.AttemptTimeout
	reasonStatus  = "status"  // a retried status
	reasonAsked   = "asked"   // the server's should-retry header says yes
)

// Reasons not to repeat a request after a retriable failure.
const (
	reasonRefused    = "refused"     // the server's should-retry header says no
	reasonIgnored    = "ignored"     // the server says that it ignores the key
	reasonRetries    = "retries"     // Options.MaxRetries is reached
	reasonBody       = "body"        // the body can't be sent again
	reasonRetryAfter = "retry-after" // Retry-After is longer than a minute
	reasonLifetime   = "lifetime"    // the key's lifetime would end before the next attempt
	reasonDeadline   = "deadline"    // the context's deadline comes before the end of the wait
	reasonBudget     = "budget"      // the transport's budget for retries is used up
)

// Event tells a hook what has happened. An Event holds no key and no body.
type Event struct {
	Method    string
	Host      string        // the URL's host and port
	Operation string        // from WithOperation
	Keyed     bool          // whether the request has a key
	Attempt   int           // number of the attempt, from 1; 0 before the first attempt
	Status    int           // status of the answer; 0 without a whole answer, and in the hook Retry
	Took      time.Duration // duration of the attempt
	Wait      time.Duration // wait before the next attempt
	// Reason is set in two hooks. In the hook Retry, it says why the request is sent
	// again: "network" (no answer, or an answer that was cut off), "timeout" (no answer
	// within Options.AttemptTimeout), "status" (the answer's status), or "asked" (the
	// server's header Stripe-Should-Retry). In the hook GaveUp, it is one of the values
	// that are listed at [Error.GaveUp].
	Reason string
	Err    error
}

// Hooks are functions that a transport calls to report its work. A hook that is nil is
// not called. Hooks run on the request's goroutine, possibly for many requests at once,
// and must neither block nor panic. For a request that is neither keyed nor idempotent,
// no hook is called.
type Hooks struct {
	KeyMade       func(context.Context, Event) // a request got a new key
	Resumed       func(context.Context, Event) // a request continues a named operation, with the operation's key from the journal
	Attempt       func(context.Context, Event) // an attempt ended; Event.Status or Event.Err is set
	Retry         func(context.Context, Event) // the request will be sent again after Event.Wait; Event.Reason says why
	GaveUp        func(context.Context, Event) // a failure is returned although a retry could help; Event.Reason says why it isn't retried
	Replayed      func(context.Context, Event) // the answer is the replay of an earlier attempt's answer
	DeletedBefore func(context.Context, Event) // a repeated DELETE got 404, which counts as success
	JournalFailed func(context.Context, Event) // the journal could not record the answer or the new end of the key's lifetime; the request goes on without an error
}

// operation.tell sets the fields of ev that don't depend on the hook, and calls hook
// with ev.
func (o *operation) tell(hook func(context.Context, Event), ev Event) {
	if hook == nil {
		return
	}
	ev.Method, ev.Host, ev.Operation, ev.Keyed, ev.Attempt = o.req.Method, o.req.URL.Host, o.entry.Operation, o.key != "", o.attempts
	hook(o.req.Context(), ev)
}
