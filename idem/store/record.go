package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/internal/trace"
)

// State is the state of a record.
type State string

// The states of a record. The zero State means that there is no record.
const (
	None  State = ""
	Open  State = "open"  // claimed, not finished; an attempt may hold the lease
	Done  State = "done"  // finished: the response is stored; later writes can only erase it
	Stuck State = "stuck" // only an operator may continue the operation
)

// Keep says why a record must not expire, or that its key was freed. Claims, stream
// filters, the sweep and people read Keep.
type Keep string

// The values of Keep. Keep is KeepOpen or KeepJobs if Expires is zero, and only then.
const (
	KeepNothing Keep = ""
	KeepOpen    Keep = "open" // work began and must be finished
	KeepJobs    Keep = "jobs" // finished, with undelivered jobs

	// KeepFreed means that the key is free, and that the record will expire. Until TTL
	// removes the record, a claim wins only if its claimer has read the record (see
	// Claim.Seen), because any other claim may be a late copy of an earlier claim.
	KeepFreed Keep = "freed"
)

// Record is the data that a [Store] holds for one key. Times are truncated to the precision
// of an item: Expires and Until to seconds, other times to milliseconds.
//
// To add a field, add its row in internal/item/fields.go. If commits write the field, add a
// line in idem/memory.go, too.
type Record struct {
	PK    string
	State State

	// Owner is the nonce of the attempt that last took the lease, or of a later decision
	// of an operator, or of a later fence (a write against late writes of the holder). Ver
	// is 1 after the claim. Each later [Commit] or [Take] raises Ver by one, and is
	// refused unless Owner and Ver are as the writer last saw them. So a holder that
	// lost its lease can change nothing. While Owner and Ver are unchanged, the lease
	// is unchanged, too.
	Owner string
	Ver   int64

	Lease   time.Time // end of the lease; zero once released
	Expires time.Time // after this second the key is free; zero while the record must be kept
	Keep    Keep
	Until   time.Time // while Keep is KeepJobs: the Expires that the record gets with its last job's delivery, so the answer is replayed at least until then; otherwise zero

	// Retention is idem.Options.Retention of the program that last claimed the record, or
	// took it over to run the handler, in whole seconds. So a worker or an operator needs
	// no setting for the retention. A finished record has no Retention.
	Retention time.Duration

	Fingerprint string // SHA-256 or HMAC-SHA-256 of the request, hex
	Secret      string // id of the secret that keyed Fingerprint; "" without a secret
	Scheme      string // which parts of the request Fingerprint covers, and how; "" for the default
	ID          string // server-made id of the operation

	Phases []Phase        // committed phases in order; the last is the recovery point, unless it has Intent
	Jobs   map[string]Job // staged, undelivered jobs by their names, "phase.index"; a job's name is a part of jobs.Delivery.JobID
	Input  *Input         // the request, stored if a completer may finish the operation without the client

	// Calls counts the calls in committed phases: those without a step by service, the
	// others by service and step (idem.Tx.Key). The derived key of a call without a
	// step depends on the service's count. A finished record keeps Calls, so that
	// people can find the operation by a key that a provider received.
	Calls map[string]int
	// Mark is set while the holder may be making a call: if the holder then vanishes,
	// the call is in doubt. Mark is "?phase", with the phase's name, if the call must
	// never be repeated, and "?" for other calls. Mark is written before the call, or
	// already by the claim if idem.Options.CallsOut is set. It stays until the call's
	// phase commits or the lease is given up. A phase with Intent needs no Mark. Without
	// such a phase, "" means that the holder can't have begun a call that no phase has
	// recorded.
	Mark string
	// Doubts holds the names of calls that may have been made but are recorded in no
	// phase. The entry "?" stands for any call of the next phase that makes calls. The
	// entry "?phase" stands for any call of the phase with this name.
	//
	// These calls may have been made since DoubtSince, and copies of them may have been
	// sent until DoubtUntil. DoubtUntil is the end of the last lease under which a call
	// may have been made, since an attempt may send copies until its lease ends.
	// DoubtUntil is zero if unknown. Without a call in doubt, all three fields are
	// zero.
	Doubts     []string
	DoubtSince time.Time
	DoubtUntil time.Time
	// Sent maps the name of a call that may be in doubt to a hash of the data that the
	// call sends. Only calls whose data is declared with idem.Sends have an entry.
	Sent map[string]string

	// Asked is the last look-up of a call in doubt (idem.LookUp); nil if there was none.
	Asked *Asked

	Response *Response // nil until Done
	Overflow *Overflow // set if Response.Body isn't in the record: it is in companions, or was not kept

	Tries       int        // what idem.Options.MaxTries limits: take-overs by completers, withheld answers, and look-ups that began late enough but decided nothing
	LastErr     string     // the last error, for people: at most 256 bytes, without the query of a *url.Error
	Created     time.Time  // time of the claim
	Run         time.Time  // start of the most recent attempt, or the time of a later release (by an attempt or an operator) or finish with jobs
	Blocked     bool       // the operation is open, but the program refuses to continue it, so it waits for people; LastErr has the reason
	WaitSince   time.Time  // when the record began to wait for people, for any reason; zero if it doesn't wait
	DeliveryKey bool       // the claim used a key that names only a delivery; idem.Request.DeliveryKey says what is refused
	Settled     []Decision // the latest decisions of operators
	Handovers   []Handover // the latest take-overs and releases, for people; nil if the first attempt finished the operation
	Route       string     // the request's route, for people
	Region      string     // Region of the claim, for people; "" if unknown
	Scope       string     // the key's scope: idem.Request.Operation, tenant, and the caller's kind and subject

	// Handler names the code that claimed the operation, or that took the operation over
	// for a client's retry. A completer runs the operation only in this handler.
	Handler HandlerID
	// Tenant is the tenant of the invocation, if the function isolates tenants.
	Tenant string
	// Trace is the trace context of the attempt that claimed the operation, so that
	// later attempts link to that attempt's span. Trace.State is empty. Trace is zero
	// if there is no tracer (idem.Options.Tracer), or if the tracer doesn't sample the
	// trace.
	Trace trace.Context

	// Seal says how the store encrypts the record's contents; nil without encryption. Only
	// the store uses Seal; other code passes Seal on unchanged. KeyID names the key that
	// wraps the record's data key, for people.
	Seal interface{ KeyID() string }
}

// HandlerID names the code that runs an operation. Records store the names of the function
// and the handler. If you change a name, declare the former name in
// idem.ResumeOptions.Handlers.
type HandlerID struct {
	Function string // the program: a Lambda function, without version and alias; may be empty
	Name     string // the handler in the program; "" for a handler without a name
}

// String returns h for logs.
func (h HandlerID) String() string {
	return fmt.Sprintf("handler %q of function %q", h.Name, h.Function)
}

// Decision is an operator's decision about an operation, for people to read later. A
// Decision contains nothing of the request or its result.
type Decision struct {
	By   string // the operator's name, as given by the operator
	At   time.Time
	What string
	From string // the record's state before the decision; "" if unknown
	To   string // the record's state after the decision

	// ID names this decision. If an operator got no answer, the ID shows whether the
	// decision is in the record. ID is empty if unknown.
	ID string
}

// Equal reports whether d and other are the same decision.
func (d Decision) Equal(other Decision) bool {
	return d.ID == other.ID && d.By == other.By && d.At.Equal(other.At) && d.What == other.What && d.From == other.From && d.To == other.To
}

// Handover notes, for people, that an attempt released the record, or that another attempt
// took the record over. A take-over shows that the previous attempt never reported its end,
// unless a release or an operator's decision came just before the take-over.
type Handover struct {
	At       time.Time
	Kind     string // "release", "withheld" (a release whose answer was withheld), "retry" (a client's retry took over) or "completer" (a completer took over, or the sweep, to mark the operation as stuck)
	Function string // the function of a client's retry that took over; "" if the record was that function's before
	Err      string // why the attempt released the record, in at most 256 bytes
}

// Equal reports whether h and other are the same handover.
func (h Handover) Equal(other Handover) bool {
	return h.At.Equal(other.At) && h.Kind == other.Kind && h.Function == other.Function && h.Err == other.Err
}

// Phase is a committed phase and its result, or a phase whose call has begun (Intent).
type Phase struct {
	Name   string
	Result []byte // JSON; nil once the operation has finished
	Intent bool   // the phase has begun a call that must not be repeated, and the call's outcome is unknown

	// Shape contains the names and kinds of the result's fields, taken from its Go
	// type. People need Shape to enter the result of a phase with Intent, and later to
	// correct that result. "" means unknown.
	Shape string

	// At is the time from the claim to the phase's commit, in whole milliseconds. A known
	// time is at least one millisecond; zero means unknown.
	At time.Duration
}

// Asked says how often a call in doubt was looked up at its provider, and what the last
// look-up found. Asked contains nothing that the call sent or returned.
type Asked struct {
	Phase string    // the phase that makes the call
	At    time.Time // when the last look-up began
	Times int       // number of look-ups of this call in doubt
	Said  string    // what the last look-up found: "made", "not made", "not made yet", "unknown" or "contradiction"

	// Sent is the last moment at which a copy of the call in doubt may have been sent.
	// Sent is zero once the doubt has ended, or once another copy may be sent.
	Sent time.Time
}

// Equal reports whether a and other are equal. Either may be nil.
func (a *Asked) Equal(other *Asked) bool {
	if a == nil || other == nil {
		return a == other
	}
	return a.Phase == other.Phase && a.At.Equal(other.At) && a.Times == other.Times && a.Said == other.Said && a.Sent.Equal(other.Sent)
}

// Job is a staged job: work that is delivered after the commit that staged the
// job.
type Job struct {
	Kind   string
	Args   json.RawMessage // JSON made by NewJob
	Group  string          // an operation's jobs of one group are delivered in order, if the sink keeps an order; "" means the operation's own group
	Tries  int             // failed deliveries so far
	Failed string          // why the job was parked after too many failures; "" if not parked

	// At is the time before which the job isn't delivered, rounded up to milliseconds. If
	// At is zero, or already past when the job is committed, the job is delivered at once.
	// The job stays in its record until At. If At is further in the future than
	// idem.Options.Retention, the phase fails (idem.ErrWrite).
	At time.Time
	// Begun is the time at which a drain first began to deliver the job. Begun is zero
	// before that, and for a job without At. Once Begun is set, nobody can cancel the
	// job, because it may have arrived.
	Begun time.Time

	// Trace is the trace context that the job's consumer continues. Default: the trace
	// context of the phase that stages the job, if idem.Options.Tracer is set.
	Trace trace.Context
}

// Clone returns a deep copy, or nil for nil.
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
	c.Settled, c.Handovers = slices.Clone(r.Settled), slices.Clone(r.Handovers)
	if r.Input != nil {
		c.Input = r.Input.clone()
	}
	c.Calls, c.Doubts = maps.Clone(r.Calls), slices.Clone(r.Doubts)
	c.Sent = maps.Clone(r.Sent)
	if r.Asked != nil {
		asked := *r.Asked
		c.Asked = &asked
	}
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
