// Package trace is the seam between Samekey and a library for tracing. A [Tracer]
// gets the steps of each operation: claim, phases, calls, commits, deliveries.
// Module github.com/samekey/samekey/otel has the Tracer, for OpenTelemetry.
package trace

import (
	"context"
	"strings"
	"time"
)

// Tracer makes spans of steps. A Tracer is safe for concurrent use, and neither
// blocks nor panics.
type Tracer interface {
	// Start begins the span of a step, as a child of the span in ctx if there is one.
	// It returns a context with the new span, and the function that ends it, which is
	// called exactly once. Neither is nil. The context must be derived from ctx.
	Start(ctx context.Context, s Step) (context.Context, func(Outcome))
	// Context returns the trace context of the span in ctx, zero without a span.
	Context(ctx context.Context) Context
}

// Kind is the kind of a step.
type Kind string

// The kinds of steps. A program has few of them, so they can name spans, together
// with the Name of a step.
const (
	Operation Kind = "operation" // a request with a key, from its claim to its answer
	Process   Kind = "process"   // the same for a message: of a queue, a topic, a bus
	Resume    Kind = "resume"    // a completer's take-over of an abandoned operation, and the rest of its work
	Read      Kind = "read"      // the read before a claim
	Claim     Kind = "claim"     // the claim or take-over of a record
	Wait      Kind = "wait"      // the wait for the attempt in flight
	Phase     Kind = "phase"     // a phase that runs; not one that is already recorded
	Call      Kind = "call"      // the function of a Foreign phase, which calls another system
	Commit    Kind = "commit"    // the write of a phase, of its begin, or of the mark of a stuck operation
	Finish    Kind = "finish"    // the write of the answer
	Release   Kind = "release"   // the write that gives a lease back without an answer
	Deliver   Kind = "deliver"   // the delivery of a job to its sink
)

// Step is a step as it begins. It holds no key, no body and no data of the caller.
type Step struct {
	Kind Kind
	Name string // of the phase; a job's kind; "" for other steps

	Record    string // short hash that names the record in logs
	Operation string // the operation's id; "" if not yet known
	Route     string // the request's route
	Job       string // the job's id
	Tries     int    // failed deliveries of the job so far

	// From is the context that came with the work: of the client's request, of the
	// message, of the job. It may be zero, and its sender chose it: it may be invalid.
	// Operation continues it if ctx is in no span; Process and Deliver continue it
	// also then, since ctx's span may be that of a whole batch.
	From Context
	// Origin is the context of the first attempt at the operation of a Resume, to link
	// to; zero if the record has none.
	Origin Context
	// Began is the begin of the step; zero means now.
	Began time.Time
}

// Outcome is the end of a step.
type Outcome struct {
	// Err is the step's error. Its text may quote a caller's data: use Code in spans.
	Err error
	// Code is Err in a word: a code of docs/use/http.md, "internal_error" for errors
	// that are the handler's own; "" without an error.
	Code string

	Operation string // the operation's id, if known only now
	Point     string // name of the last committed phase
	// Result is the outcome of a claim: new, take_over, replay, mismatch,
	// other_caller, expired, stuck, in_flight. "" otherwise.
	Result   string
	Status   int  // status of the answer; 0 without an answer
	Replayed bool // the answer is a stored answer
	Panicked bool // the step's function did not return

	// Origin is the context of the first attempt at the operation, to link to, if
	// this step has met its record: in a replay, a take-over, a refusal.
	Origin Context
}

// Context is a span's identity on its way to other processes, as defined by W3C
// Trace Context. The zero Context is none.
type Context struct {
	Parent string // value of the header traceparent
	State  string // value of the header tracestate; "" for none
}

// The names of a Context's two values, as headers and as message attributes.
const (
	ParentHeader = "traceparent"
	StateHeader  = "tracestate"
)

const (
	parentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	maxState     = 512 // bytes that each system has to pass on
)

// Sound returns c as it may be stored and sent: the zero Context if Parent is not
// of version 00, and without a State that is too long or not printable ASCII.
func (c Context) Sound() Context {
	if len(c.Parent) != parentLength || c.Parent[:3] != "00-" || c.Parent[35] != '-' || c.Parent[52] != '-' {
		return Context{}
	}
	for i := range len(c.Parent) {
		if b := c.Parent[i]; i != 2 && i != 35 && i != 52 && (b < '0' || b > '9') && (b < 'a' || b > 'f') {
			return Context{}
		}
	}
	if len(c.State) > maxState {
		c.State = ""
	}
	for i := range len(c.State) {
		if b := c.State[i]; b < ' ' || b > '~' {
			c.State = ""
			break
		}
	}
	return c
}

// Sampled reports whether the trace is recorded, as far as the sender decides. c
// must be sound; the zero Context is not sampled.
func (c Context) Sampled() bool {
	if c.Parent == "" {
		return false
	}
	const odd = "13579bdf"
	return strings.IndexByte(odd, c.Parent[len(c.Parent)-1]) >= 0
}

// String returns c in the form that records have: its parent, and after a space its
// state if it has one. [Parse] is its inverse.
func (c Context) String() string {
	if c.State == "" {
		return c.Parent
	}
	return c.Parent + " " + c.State
}

// Parse reads a Context in the form of [Context.String]. The Context is zero if s
// has another form: a trace is no reason to refuse a record.
func Parse(s string) Context {
	parent, state, _ := strings.Cut(s, " ")
	return Context{Parent: parent, State: state}.Sound()
}
