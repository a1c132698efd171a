package ui

// Story explains a record. Times are in epoch milliseconds, 0 for unknown.
type Story struct {
	Row
	Seen string `json:"seen"` // names the record as it is, for [Action.Seen]
	ID   string `json:"id,omitempty"`

	Said     []string  `json:"said"` // sentences about its state
	Next     []Step    `json:"next"` // the events that come next, or may
	Facts    []Fact    `json:"facts"`
	Spans    []Span    `json:"spans"`
	Offers   []Offer   `json:"offers"` // the actions that fit the record
	Personal *Personal `json:"personal,omitempty"`
}

// Step is an event that comes next, or may.
type Step struct {
	At      int64  `json:"at,omitempty"` // 0: at any time
	Who     string `json:"who"`          // client, source, attempt, completer, drain, time or people
	What    string `json:"what"`
	Command string `json:"command,omitempty"`
}

// Fact is a property of a record.
type Fact struct {
	Label string `json:"label"`
	Value string `json:"value,omitempty"`
	At    int64  `json:"at,omitempty"` // instead of a value
}

// Span is a part of a record's story on the timeline.
type Span struct {
	Lane  string `json:"lane"` // attempt, phase, call, job or decision
	Name  string `json:"name"`
	State string `json:"state"` // done, running, failed, unknown, waiting or parked
	From  int64  `json:"from,omitempty"`
	To    int64  `json:"to,omitempty"` // 0: a moment, or not over
	Note  string `json:"note,omitempty"`
}

// Offer is an action that fits a record.
type Offer struct {
	Do    string `json:"do"`
	Label string `json:"label"`
	Hint  string `json:"hint"` // what the action does
	// Call is the call with an unknown outcome that a retry has to settle. Result says that
	// its result may be given, and Given that people gave one, which may be corrected.
	Call   string   `json:"call,omitempty"`
	Result bool     `json:"result,omitempty"`
	Given  bool     `json:"given,omitempty"`
	Shape  string   `json:"shape,omitempty"` // of the result, as in package shape; "" if unknown
	Jobs   []string `json:"jobs,omitempty"`  // parked, or later
	Loses  []string `json:"loses,omitempty"` // what has to be given up: attempt, work, jobs
	Asks   bool     `json:"asks,omitempty"`  // the call may be looked up again
}

// Personal is what may be personal.
type Personal struct {
	Request *Message `json:"request,omitempty"`
	Answer  *Message `json:"answer,omitempty"`
	Parts   []Part   `json:"parts"` // results of phases and arguments of jobs
}

// Message is a request or an answer.
type Message struct {
	Head    string      `json:"head"` // method and path, or the status
	Headers [][2]string `json:"headers"`
	Body    string      `json:"body"`
	Note    string      `json:"note,omitempty"` // why the body isn't here
}

// Part is a result of a phase, or the arguments of a job.
type Part struct {
	Name string `json:"name"`
	JSON string `json:"json"`
}
