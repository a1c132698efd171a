package state

// Reason is why an operation is listed for operators.
type Reason struct {
	Name   string   // in lists, filters and the index
	Word   string   // on a row of the page
	Says   string   // the same as a sentence
	Verbs  []string // commands that end it; nil for a reason to wait for others than people
	Metric string   // that counts it; "" for none
	people bool
}

// Reasons are all of them. Those that people are waited for come first, in the order of
// precedence: of several, the first counts. Tests hold package dynamo/stream, the page,
// docs/operate/background.md and docs/operate/runbook.md to the list.
var Reasons = []Reason{
	{string(CauseUnknown), "stuck", "stuck: the outcome of a call is unknown", []string{"settle"}, "WaitingUnknown", true},
	{string(CauseStuck), "stuck", "stuck: an operator decides", []string{"retry", "settle"}, "WaitingStuck", true},
	{string(CauseBlocked), "blocked", "blocked: its program refuses to go on", []string{"settle"}, "WaitingBlocked", true},
	{string(CauseParked), "job parked", "a job is parked", []string{"redrive"}, "WaitingParked", true},
	{"unreadable", "unreadable", "unreadable", nil, "WaitingUnreadable", true},

	{"open", "abandoned", "abandoned: the completer ends it", nil, "Abandoned", false},
	{"no_request", "abandoned", "abandoned: only its client can end it", nil, "Abandoned", false},
	{"expiring", "expiring", "abandoned: will be forgotten", nil, "Abandoned", false},
	{"undelivered", "job late", "a job is late", nil, "Undelivered", false},
	{"kept", "kept", "done, but still kept", nil, "", false},
}

// ReasonNames returns the names of the reasons to wait for people, or of the others.
func ReasonNames(people bool) (names []string) {
	for _, r := range Reasons {
		if r.people == people {
			names = append(names, r.Name)
		}
	}
	return names
}
