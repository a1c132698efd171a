package records

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// StoryOptions are the settings of a story.
type StoryOptions struct {
	Now time.Time // required

	// Data adds results of phases, arguments of jobs, the request and the answer. These may
	// be personal data.
	Data bool

	// Sealed is the reason why the contents of the record could not be opened; "" if
	// the contents are readable. If Sealed is set, the record has no contents.
	Sealed string

	// Listed are the entries that [stream.Listed] returns for the record. ListedUnknown is
	// the reason why Listed is unknown; "" if Listed is known.
	Listed        []stream.Entry
	ListedUnknown string

	// Grace is how long the completer leaves an operation to its client. Default:
	// state.DefaultGrace.
	Grace time.Duration
}

// Story explains one operation. Times are in UTC. The JSON form lacks only Facts, which
// repeats other fields.
type Story struct {
	Record    string `json:"record"` // partition key
	Short     string `json:"short"`  // short name of the record in logs and metrics
	Operation string `json:"operation"`
	Route     string `json:"route,omitempty"`
	Scope     string `json:"scope,omitempty"`
	Function  string `json:"function,omitempty"` // function that completes the operation
	Handler   string `json:"handler,omitempty"`
	Tenant    string `json:"tenant,omitempty"`
	Region    string `json:"region,omitempty"` // Region of the claim
	Facts     []Fact `json:"-"`                // fields of the record, for people

	// State is one of held, abandoned, released, stuck, kept, replayable, free, as in
	// docs/inside/architecture.md.
	State   string    `json:"state"`
	Summary string    `json:"summary"` // one sentence
	Claimed time.Time `json:"claimed"`
	Sealed  string    `json:"sealed,omitempty"`  // the reason why scope, request, results, args and answer are missing
	Blocked bool      `json:"blocked,omitempty"` // the program refuses to continue
	Lease   time.Time `json:"lease,omitzero"`    // end of the lease
	Expires time.Time `json:"expires,omitzero"`  // time at which the record expires; zero: the record is kept
	Error   string    `json:"error,omitempty"`   // the last error
	Listed  []string  `json:"listed,omitempty"`  // reasons outside of the record why people must act
	Version int64     `json:"version"`           // the same number as Cost.Writes
	Owner   string    `json:"owner"`             // nonce of the last holder

	Attempts  []Attempt  `json:"attempts"`
	Phases    []Phase    `json:"phases"`
	Calls     []Call     `json:"calls"`
	CallsNote string     `json:"calls_note,omitempty"` // which calls Calls may lack, and which calls in Calls may never have been made
	LookUp    *LookUp    `json:"look_up,omitempty"`    // the last look-up of the call in doubt
	Jobs      []Job      `json:"jobs"`
	Answer    *Answer    `json:"answer,omitempty"`
	Request   *Request   `json:"request,omitempty"` // the stored request
	Decisions []Decision `json:"decisions"`
	Cost      Cost       `json:"cost"`
	Next      []Next     `json:"next"`
}

// Attempt is one run of the handler.
type Attempt struct {
	By       string    `json:"by"`             // client, retry, completer, unknown
	Began    time.Time `json:"began,omitzero"` // zero: unknown
	Function string    `json:"function,omitempty"`
	// End is one of answered, released, died (the lease ended without a result), stuck,
	// working, unknown. Ended is zero if the time is unknown.
	End   string    `json:"end"`
	Ended time.Time `json:"ended,omitzero"`
	Error string    `json:"error,omitempty"`
	Note  string    `json:"note,omitempty"`
}

// Phase is a committed phase, or a phase whose call has an unknown outcome.
type Phase struct {
	Name      string          `json:"name"`
	Committed time.Time       `json:"committed,omitzero"` // zero: unknown
	TookMS    int64           `json:"took_ms,omitempty"`  // time since the previous commit; for the first phase, since the claim; 0: unknown
	Unknown   bool            `json:"outcome_unknown,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Reads     string          `json:"reads,omitempty"` // an example of a result that the program can read
}

// LookUp is the last query to a provider about a call in doubt.
type LookUp struct {
	Phase     string    `json:"phase"`
	At        time.Time `json:"at"`
	Times     int       `json:"times"`               // number of look-ups of this call
	Said      string    `json:"said"`                // made, not made, not made yet, unknown, contradiction
	SentUntil time.Time `json:"sent_until,omitzero"` // the last time at which the call may have been sent; zero: the doubt has ended, or the call may be sent again
}

// Job is a staged job that is not delivered. Records don't keep delivered jobs.
type Job struct {
	ID    string          `json:"id"`   // the id that the consumer gets
	Name  string          `json:"name"` // the name in the record
	Kind  string          `json:"kind"`
	Group string          `json:"group,omitempty"`
	Phase string          `json:"phase,omitempty"` // the phase that staged the job
	State string          `json:"state"`           // waiting, later, parked
	At    time.Time       `json:"at,omitzero"`     // the time of a later job
	Tries int             `json:"tries"`           // failed deliveries
	Error string          `json:"error,omitempty"`
	Args  json.RawMessage `json:"args,omitempty"`
}

// Answer is the stored answer.
type Answer struct {
	Status  int         `json:"status"`         // 0: sealed
	Until   time.Time   `json:"until,omitzero"` // end of the replay; while jobs are undelivered, the replay may last longer
	Bytes   int         `json:"bytes"`
	Stored  string      `json:"stored"` // in the record, in other items, status only, sealed
	Header  http.Header `json:"header,omitempty"`
	Body    string      `json:"body,omitempty"`
	Settled bool        `json:"by_operator,omitempty"`
}

// Request is the stored request, which a completer runs again.
type Request struct {
	Method string      `json:"method,omitempty"`
	Path   string      `json:"path,omitempty"`
	Query  string      `json:"query,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"`
}

// Decision is a decision of an operator.
type Decision struct {
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
	What string    `json:"what"`
	From string    `json:"from,omitempty"`
	To   string    `json:"to,omitempty"`
}

// Next is an event that may come next.
type Next struct {
	When    time.Time `json:"when,omitzero"` // zero: at any time
	Who     string    `json:"who"`           // client, source, attempt, completer, drain, time, people
	What    string    `json:"what"`
	Command string    `json:"command,omitempty"` // a samekey command, for a person
}

// Explain tells the story of r. It doesn't change r.
func Explain(r *store.Record, o StoryOptions) *Story {
	o.Grace = cmp.Or(o.Grace, state.DefaultGrace)
	s := &Story{
		Record: r.PK, Short: redact.Record(r.PK), Operation: r.ID, Route: r.Route, Scope: r.Scope,
		Function: r.Handler.Function, Handler: r.Handler.Name, Tenant: r.Tenant, Region: r.Region, Facts: factsOf(r), Sealed: o.Sealed,
		State: state.Word(r, o.Now), Claimed: r.Created.UTC(), Blocked: r.Blocked, Lease: r.Lease.UTC(), Expires: r.Expires.UTC(), Error: r.LastErr,
		Version: r.Ver, Owner: r.Owner, Cost: costOf(r),
	}
	s.Attempts = attempts(r, o)
	s.Phases = phases(r, o.Data)
	s.Calls, s.CallsNote = calls(r)
	if a := r.Asked; a != nil {
		s.LookUp = &LookUp{a.Phase, a.At.UTC(), a.Times, a.Said, a.Sent.UTC()}
	}
	s.Jobs = jobsOf(r, o.Now, o.Data)
	s.Answer = answer(r, o)
	s.Request = request(r, o)
	s.Decisions = []Decision{}
	for _, d := range r.Settled {
		s.Decisions = append(s.Decisions, Decision{By: d.By, At: d.At.UTC(), What: d.What, From: d.From, To: d.To})
	}
	s.Summary, s.Next = next(r, o)
	for _, e := range o.Listed {
		s.Listed = append(s.Listed, fmt.Sprintf("%s since %s: %s", e.Reason, plain.Time(e.Since), plain.Line(e.LastErr)))
	}
	if o.ListedUnknown != "" {
		s.Listed = append(s.Listed, "can't tell whether samekey list shows the operation: "+plain.Line(o.ListedUnknown))
	}
	for _, why := range s.Listed {
		s.Facts = append(s.Facts, Fact{"Listed", why})
	}
	if len(o.Listed) > 0 {
		s.Next = append([]Next{{Who: "people", What: "mend the cause that the line \"Listed\" shows: see docs/operate/runbook.md#what-nobody-goes-on-with"}}, s.Next...)
	}
	return s
}
