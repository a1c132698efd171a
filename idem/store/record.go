package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// State is where an operation stands.
type State string

// The states of a record. The zero State means that there is no record.
const (
	None  State = ""
	Open  State = "open"  // claimed, not finished; an attempt may hold the lease
	Done  State = "done"  // finished: the response is stored and never changes
	Stuck State = "stuck" // given up: only an operator may go on
)

// Keep says why a record must not expire. It is in no condition: stream
// filters, the sweep and people read it.
type Keep string

// The reasons to keep a record. Keep is set exactly while Expires is zero.
const (
	KeepNothing Keep = ""
	KeepOpen    Keep = "open" // work began that must be driven to an end
	KeepJobs    Keep = "jobs" // finished, with jobs that are not delivered yet
)

// AnyCall stands in [Record].Doubts for calls whose names nobody knows.
const AnyCall = "?"

// Record is what a [Store] holds for one key. Times are truncated to what an
// item holds: Expires and Until to seconds, the others to milliseconds.
type Record struct {
	PK    string
	State State

	// Owner is the nonce of the attempt that holds or last held the lease, and
	// Ver counts every write by a holder. A write is conditional on both as
	// last seen and raises Ver by one, so an equal Ver proves an unchanged
	// lease and a worker that lost its lease can change nothing.
	Owner string
	Ver   int64

	Lease   time.Time // when the holder loses it; zero once released
	Expires time.Time // from then on the key is free; zero while the record must be kept
	Keep    Keep
	Until   time.Time // end of replay, where that differs from Expires; else zero

	// Tombstone is how far Expires is to lie beyond Until once the last job is
	// delivered, in whole seconds. It is set with Keep of KeepJobs only: any other
	// finished record has Expires already.
	Tombstone time.Duration

	Fingerprint string // SHA-256 or HMAC-SHA-256 of the request, hex
	Cred        string // keyed hash of what a caller presented whom nobody verified, hex; "" for others
	Secret      string // id of the secret that keyed Fingerprint and Cred; "" for none
	ID          string // server-made id of the operation

	Phases []Phase        // committed phases in order; the last is the recovery point
	Jobs   map[string]Job // staged, undelivered jobs by "phase.index"; see jobs.JobID
	Input  *Input         // the request, where it is to be completed without its client

	// Calls counts the calls of committed phases, as idem.Tx.Key names them: by
	// service, or once for each step. Derived keys are made from it. nil only in
	// records of an earlier version, whose keys are made from the phases' names,
	// and in those that are done.
	Calls map[string]int
	// Doubts names the calls that may have been made and of which no phase tells;
	// "?" is any. DoubtSince is when the first of them may have been made. Both
	// are zero where there are none.
	Doubts     []string
	DoubtSince time.Time
	// Sent is a hash of what such a call sends, by its name, where idem.Sends says it.
	Sent map[string]string

	Response *Response // nil until Done
	Overflow *Overflow // set when Response.Body is not in the record itself

	Tries       int        // attempts by the completer
	LastErr     string     // last error, for people: what the handler or a phase returned, in 256 bytes, without the query of a URL
	Created     time.Time  // when the key was claimed
	Run         time.Time  // when the last attempt began; once that gave the lease back or finished with jobs, when it did
	Blocked     bool       // open, but its program refuses to go on, as LastErr tells: it waits for people
	DeliveryKey bool       // claimed under a key that names a delivery only (idem.Request.DeliveryKey): its program calls nobody
	Settled     []Decision // what operators have decided about it, the last ones
	Route       string     // for people
	Scope       string     // for people

	// Handler is the code that claimed the operation, or took it over for its
	// client: nobody else completes it.
	Handler HandlerID
	// Tenant is for whom it was invoked, of a function that keeps tenants apart.
	Tenant string
}

// HandlerID names the code that runs an operation. Names are stored: whoever
// changes one declares the former name (idem.ResumeOptions.Handlers).
type HandlerID struct {
	Function string // the program: a Lambda function, without its version and alias; "" for none
	Name     string // the handler in it; "" for one without a name
}

// String is for logs.
func (h HandlerID) String() string {
	return fmt.Sprintf("handler %q of function %q", h.Name, h.Function)
}

// Decision is what an operator decided about a stuck operation: it tells people
// afterwards, and holds nothing of the request or its result.
type Decision struct {
	By   string // who, as they said
	At   time.Time
	What string
}

// Equal reports whether d and other are the same decision.
func (d Decision) Equal(other Decision) bool {
	return d.By == other.By && d.At.Equal(other.At) && d.What == other.What
}

// Phase is a committed phase and its result.
type Phase struct {
	Name   string
	Result []byte // JSON; nil once the operation has finished
	Intent bool   // begun, and not known how it ended: a call that must not be repeated
}

// Job is a staged job: work that is handed on after the commit that staged it.
type Job struct {
	Kind   string
	Args   json.RawMessage // what NewJob made of a value
	Group  string          // jobs of one group are handed on in order, where the sink can; "" is the operation's own
	Tries  int             // failed deliveries so far
	Failed string          // why it was parked, after too many of them; "" while it is not
}

// Clone returns a copy that shares nothing a caller could change; nil for nil.
func (r *Record) Clone() *Record {
	if r == nil {
		return nil
	}
	c := *r
	c.Phases = slices.Clone(r.Phases)
	for i := range c.Phases {
		c.Phases[i].Result = slices.Clone(c.Phases[i].Result)
	}
	c.Jobs = maps.Clone(r.Jobs)
	for id, job := range c.Jobs {
		job.Args = slices.Clone(job.Args)
		c.Jobs[id] = job
	}
	c.Settled = slices.Clone(r.Settled)
	c.Input = r.Input.clone()
	c.Calls, c.Doubts = maps.Clone(r.Calls), slices.Clone(r.Doubts)
	c.Sent = maps.Clone(r.Sent)
	if r.Response != nil {
		resp := r.Response.Clone()
		c.Response = &resp
	}
	if r.Overflow != nil {
		o := *r.Overflow
		c.Overflow = &o
	}
	return &c
}
