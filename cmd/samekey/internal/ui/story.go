package ui

// Story explains a record. Times are in epoch milliseconds, 0 for unknown.
type Story struct {
	Row
	Seen string `json:"seen"` // names this version of the record, for [Action.Seen]
	ID   string `json:"id,omitempty"`

	Said     []string  `json:"said"` // sentences about the state
	Next     []Step    `json:"next"` // the events that may come next
	Facts    []Fact    `json:"facts"`
	Spans    []Span    `json:"spans"`
	Offers   []Offer   `json:"offers"` // the actions that fit the record
	Personal *Personal `json:"personal,omitempty"`
}

// Step is an event that may come next.
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
	At    int64  `json:"at,omitempty"` // set instead of Value if the property is a time
}

// Span is a part of a record's story on the timeline.
type Span struct {
	Lane  string `json:"lane"` // attempt, phase, call, job or decision
	Name  string `json:"name"`
	State string `json:"state"` // done, running, failed, unknown, waiting, later or parked
	From  int64  `json:"from,omitempty"`
	To    int64  `json:"to,omitempty"` // 0 if the end is unknown, or the span is a moment
	Note  string `json:"note,omitempty"`
}

// Offer is an action that fits a record.
type Offer struct {
	Do    string `json:"do"`
	Label string `json:"label"`
	Hint  string `json:"hint"` // what the action does
	// Call names the calls in doubt that a retry must settle, or the call whose result
	// a person has given. Result says that a person may give the result of this call.
	// Given says that a person has given the result, and may correct it.
	Call   string   `json:"call,omitempty"`
	Result bool     `json:"result,omitempty"`
	Given  bool     `json:"given,omitempty"`
	Shape  string   `json:"shape,omitempty"` // shape of the result, as in package shape; "" if unknown
	Jobs   []string `json:"jobs,omitempty"`  // names of the parked or later jobs to which the action applies
	Loses  []string `json:"loses,omitempty"` // what a forget loses: attempt, work or jobs
	Asks   bool     `json:"asks,omitempty"`  // the person may choose that a look-up decides
}

// Personal holds data that may be personal.
type Personal struct {
	Request *Message `json:"request,omitempty"`
	Answer  *Message `json:"answer,omitempty"`
	Parts   []Part   `json:"parts"` // results of phases and arguments of jobs
}

// Message is a request or an answer.
type Message struct {
	Head    string      `json:"head"` // the request's method and path, or the answer's status
	Headers [][2]string `json:"headers"`
	Body    string      `json:"body"`
	Note    string      `json:"note,omitempty"` // the reason why the body is missing
}

// Part is a result of a phase, or the arguments of a job.
type Part struct {
	Name string `json:"name"`
	JSON string `json:"json"`
}
