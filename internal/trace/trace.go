// Package trace connects Samekey to a tracing library: a [Tracer] makes spans of an
// operation's steps, such as claim, phases, calls, commits and deliveries. Module
// github.com/samekey/samekey/otel has a Tracer for OpenTelemetry.
package trace

import (
	"context"
	"strings"
	"time"
)

// Tracer turns steps into spans. A Tracer must be safe for concurrent use, and must neither block
// nor panic.
type Tracer interface {
	// Start begins the span of a step. If ctx has a span, the new span is its child.
	// Start returns a context with the new span, derived from ctx, and a function that
	// ends the span. Neither may be nil. Samekey calls this function exactly once.
	Start(ctx context.Context, s Step) (context.Context, func(Outcome))
	// Context returns the trace context of the span in ctx. If ctx has no span, it returns the zero
	// Context.
	Context(ctx context.Context) Context
}

// Kind is the kind of a step.
type Kind string

// Kinds of steps. A program has only a few pairs of Kind and Name, so a Tracer can name
// spans after both.
const (
	Operation Kind = "operation" // a request with a key, from claim to answer
	Process   Kind = "process"   // a message, event or stream record, from claim to answer
	Resume    Kind = "resume"    // a completer's attempt at an abandoned operation, from take-over to answer
	Read      Kind = "read"      // the read before a claim
	Claim     Kind = "claim"     // the claim or take-over of a record
	Wait      Kind = "wait"      // the wait for the attempt in flight
	Phase     Kind = "phase"     // the run of a phase; a retry runs only the phases that aren't committed yet
	Call      Kind = "call"      // the run of a Foreign phase's function, which calls another system
	Commit    Kind = "commit"    // the write of a phase, of the mark before a call, or of the state stuck
	Finish    Kind = "finish"    // the write of the answer
	Release   Kind = "release"   // the write that ends a lease without an answer
	Deliver   Kind = "deliver"   // the delivery of a job to its sink
)

// Step describes a step at its start. It holds no key, no body and no data of the
// caller.
type Step struct {
	Kind Kind
	Name string // name of the phase, or kind of the job; "" for other steps

	Record    string // short hash that names the record in logs
	Operation string // the operation's id; "" if not yet known
	Route     string // the request's route
	Job       string // the job's id
	Tries     int    // failed deliveries of the job so far

	// From is the trace context that came with the request, the message or the job.
	// Zero if none came. From may be invalid, because the sender chose it. The span of
	// a Process or Deliver step is a child of From's span, because a span in ctx may be
	// that of a whole batch. The span of an Operation step is a child of From's span
	// only if ctx has no span.
	From Context
	// Origin is the trace context of the operation's first attempt, so that the span of
	// a Resume step can link to the first attempt. Zero if unknown. Only Resume steps
	// have an Origin.
	Origin Context
	// Began is the start of the step; zero means now.
	Began time.Time
}

// Outcome describes how a step ended.
type Outcome struct {
	// Err is the step's error. The error's text may quote a caller's data, so use Code in
	// spans.
	Err error
	// Code is the error's code: a code of docs/use/http.md, or "internal_error" for an
	// error of the handler. Codes of deliveries are held_back, sink_unavailable and
	// delivery_failed. "" means no error.
	Code string

	Operation string // the operation's id; may be "" if Step.Operation had it
	Point     string // name of the last committed phase
	// Result is the result of a Claim step: new, take_over, replay, mismatch, stuck,
	// in_flight or withheld. "" for other steps and after an error.
	Result   string
	Status   int  // status of the answer; 0 if there is no answer
	Replayed bool // the answer is a stored answer
	Panicked bool // the step's function did not return

	// Origin is the trace context of the operation's first attempt, so that the spans
	// of replays, take-overs and refusals can link to the first attempt. Zero if this
	// is the first attempt, or if unknown.
	Origin Context
}

// Context identifies a span to other processes, in the form of W3C Trace Context. The
// zero Context identifies no span.
type Context struct {
	Parent string // value of the header traceparent
	State  string // value of the header tracestate; "" for none
}

// Names of the headers, or message attributes, that hold Parent and State of a Context.
const (
	ParentHeader = "traceparent"
	StateHeader  = "tracestate"
)

const (
	parentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	maxState     = 512 // bytes; systems may drop a longer State
)

// Sound returns the part of c that may be stored and sent. If Parent is not of version 00, Sound
// returns the zero Context. If State is too long or not printable ASCII, Sound omits State.
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

// Sampled reports whether the sender of c has decided to record the trace. c must be a
// result of [Context.Sound]. The zero Context isn't sampled.
func (c Context) Sampled() bool {
	if c.Parent == "" {
		return false
	}
	const odd = "13579bdf"
	return strings.IndexByte(odd, c.Parent[len(c.Parent)-1]) >= 0
}

// String returns c in the form that records store: Parent alone, or Parent, a space and
// State if State is set. [Parse] is the inverse.
func (c Context) String() string {
	if c.State == "" {
		return c.Parent
	}
	return c.Parent + " " + c.State
}

// Parse reads a Context in the form of [Context.String]. For a malformed text, Parse
// returns the zero Context instead of an error, because a record stays usable without
// its trace.
func Parse(s string) Context {
	parent, state, _ := strings.Cut(s, " ")
	return Context{Parent: parent, State: state}.Sound()
}
