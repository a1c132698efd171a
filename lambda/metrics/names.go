package metrics

import "slices"

// Namespace is where the metrics are in CloudWatch, if Options.Namespace is empty.
const Namespace = "Samekey"

// Metric is a metric and what it measures.
type Metric struct {
	Name    string
	Unit    string // of CloudWatch: Count, Milliseconds, Seconds or Percent
	Source  string // the hooks that emit it: request, store, stream, sweep or count
	Gauge   bool   // each value states the number anew; else values add up, or are times
	Meaning string
	Alarm   Alarm // of the stack that samekey stack writes; zero for none
}

// Alarm is the stack's alarm on a metric.
type Alarm struct {
	Name      string // also of its section in docs/operate/runbook.md
	Condition string // statistic, threshold, and the periods that have to breach it
}

// The sources.
const (
	ofRequest = "request" // Metrics.Hooks, in the line of a request
	ofStore   = "store"   // the line of a request, and Metrics.StoreHooks outside of requests
	ofStream  = "stream"  // Metrics.StreamHooks
	ofSweep   = "sweep"   // Metrics.StreamHooks, once for each run of the sweep, 0 included
	ofCount   = "count"   // Metrics.StreamHooks, each time a worker counts what waits for people, 0 included
)

const (
	count   = "Count"
	millis  = "Milliseconds"
	seconds = "Seconds"
	percent = "Percent"

	adds, states = false, true // Gauge

	// Conditions of several alarms.
	whileWaiting = "Maximum > 0 in 1 of 1 periods of 5m, silence ignore"
	whileFound   = "Maximum > 0 in 1 of 1 periods of 1h, silence ignore"
	forADay      = "Sum > 0 in 1 of 24 periods of 1h, silence notBreaching"
)

// table lists the metrics. Tests hold the stack's alarms and dashboard, the runbook and
// docs/operate/signals.md to it.
var table = []Metric{
	{"Requests", count, ofRequest, adds, "a request with a key was answered or refused", Alarm{}},
	{"Claimed", count, ofRequest, adds, "a new operation began: a first run", Alarm{}},
	{"Replayed", count, ofRequest, adds, "a stored answer was given", Alarm{}},
	{"InFlight", count, ofRequest, adds, "refused: another attempt was at work", Alarm{}},
	{"TakenOver", count, ofRequest, adds, "a client's retry took over an abandoned operation", Alarm{}},
	{"Resumed", count, ofRequest, adds, "a completer took over an abandoned operation", Alarm{}},
	{"Mismatch", count, ofRequest, adds, "refused: the key was used for another request", Alarm{"Mismatch", "Sum > 10 in 1 of 12 periods of 5m, silence notBreaching"}},
	{"Limited", count, ofRequest, adds, "refused: the caller's quota of new operations is used up", Alarm{}},
	{"Refused", count, ofRequest, adds, "refused for another reason: no or a wrong key, the caller, a stuck or expired operation, too little time", Alarm{}},
	{"LeaseLost", count, ofRequest, adds, "an attempt was overtaken", Alarm{}},
	{"Unstored", count, ofRequest, adds, "an answer was given that could not be stored", Alarm{"Unstored", forADay}},
	{"Stuck", count, ofRequest, adds, "an operation was given up, and waits for people (also from the sweep)", Alarm{}},
	{"Blocked", count, ofRequest, adds, "the deployed code refuses to go on with an operation", Alarm{}},
	{"Failed", count, ofRequest, adds, "the table failed, or a record is corrupt or can't be compared", Alarm{"StoreFailures", "Sum > 5 in 3 of 3 periods of 5m, silence notBreaching"}},
	{"Unprotected", count, ofRequest, adds, "a handler ran unprotected: the table could not be reached (`ModeOpen`), or a request with a key came in `ModeOff`", Alarm{}},
	{"Observed", count, ofRequest, adds, "a request of an engine that only observes", Alarm{}},
	{"Duration", millis, ofRequest, adds, "a request, from its key to its answer", Alarm{}},
	{"PhaseDuration", millis, ofRequest, adds, "a stored phase, from its begin until it was stored", Alarm{}},
	{"JobsStaged", count, ofRequest, adds, "jobs that were staged", Alarm{}},

	{"StoreCalls", count, ofStore, adds, "DynamoDB calls; the average of a request's is its price in calls", Alarm{}},
	{"StoreRetries", count, ofStore, adds, "calls that the client sent again", Alarm{}},
	{"ReadUnits", count, ofStore, adds, "read units, with dynamo.Options.Units", Alarm{}},
	{"WriteUnits", count, ofStore, adds, "write units, with dynamo.Options.Units", Alarm{}},
	{"StoreThrottled", count, ofStore, adds, "calls that were throttled to the end", Alarm{}},
	{"StoreConflict", count, ofStore, adds, "calls refused because of another write in progress", Alarm{}},
	{"StoreUnknown", count, ofStore, adds, "calls without an answer, or with an error of the service", Alarm{}},
	{"StoreDenied", count, ofStore, adds, "calls that role, credentials or encryption key don't allow", Alarm{"Denied", "Sum > 0 in 2 of 3 periods of 5m, silence notBreaching"}},
	{"StoreInvalid", count, ofStore, adds, "malformed calls, and calls to a table that is missing", Alarm{}},

	{"Delivered", count, ofStream, adds, "a job was handed on", Alarm{}},
	{"DeliveryFailed", count, ofStream, adds, "a delivery failed, and may be tried again", Alarm{"DeliveryFailed", "Sum > 0 in 3 of 6 periods of 5m, silence notBreaching"}},
	{"Delayed", count, ofStream, adds, "jobs of an operation could not be handed on, and are tried again", Alarm{}},
	{"Parked", count, ofStream, adds, "a job was given up, and waits for people", Alarm{}},
	{"Queued", count, ofStream, adds, "an abandoned operation got a ticket for the completer", Alarm{}},
	{"CompleterTries", count, ofStream, adds, "a completer tried to finish an abandoned operation", Alarm{}},
	{"NotMine", count, ofStream, adds, "no handler was found for an abandoned operation", Alarm{"NotMine", "Sum > 0 in 1 of 2 periods of 1h, silence notBreaching"}},
	{"ExpiredOpen", count, ofStream, adds, "an operation, or a parked job, was forgotten unfinished", Alarm{"ExpiredOpen", forADay}},
	{"Unreadable", count, ofStream, adds, "an item of the table, or of its stream, is not understood", Alarm{}},

	{"Abandoned", count, ofSweep, states, "operations that nobody has ended in time", Alarm{"Abandoned", whileFound}},
	{"Undelivered", count, ofSweep, states, "jobs that nobody has handed on in time", Alarm{"Undelivered", whileFound}},
	{"OpenAge", seconds, ofSweep, states, "age of the oldest open operation, in flight or abandoned; 0 without one", Alarm{}},
	{"SweepRuns", count, ofSweep, adds, "1: the sweep has run", Alarm{"SweepSilent", "Sum < 1 in 4 of 4 periods of 1h, silence breaching"}},
	{"SweepFailed", count, ofSweep, adds, "1 if the run left work undone", Alarm{}},
	{"SweepCoverage", percent, ofSweep, states, "share of the table that the pass has seen", Alarm{}},
	{"SweepAge", seconds, ofSweep, states, "time since the last complete pass", Alarm{}},
	{"SweepOverdue", count, ofSweep, states, "1 if no pass over the whole table has ended in time", Alarm{"SweepOverdue", whileFound}},

	{"Waiting", count, ofCount, states, "records that wait for people, by the index; the next five are its parts", Alarm{"WaitingSilent", "SampleCount < 1 in 4 of 4 periods of 5m, silence breaching"}},
	{"WaitingUnknown", count, ofCount, states, "stuck records with a call that may have been made", Alarm{"WaitingUnknown", whileWaiting}},
	{"WaitingStuck", count, ofCount, states, "other stuck records", Alarm{"WaitingStuck", whileWaiting}},
	{"WaitingBlocked", count, ofCount, states, "open records whose program refuses to go on", Alarm{"WaitingBlocked", whileWaiting}},
	{"WaitingParked", count, ofCount, states, "other records with parked jobs", Alarm{"WaitingParked", whileWaiting}},
	{"WaitingUnreadable", count, ofCount, states, "items that are not understood", Alarm{"WaitingUnreadable", whileWaiting}},
	{"WaitingAge", seconds, ofCount, states, "how long the oldest of these has waited; 0 without one", Alarm{}},
}

// All returns the metrics.
func All() []Metric { return slices.Clone(table) }

// named returns the metric of a name; the zero Metric for one of the application's own.
func named(name string) *Metric {
	if m := byName[name]; m != nil {
		return m
	}
	return &own
}

var own Metric // of the application

var byName = func() map[string]*Metric {
	m := make(map[string]*Metric, len(table))
	for i := range table {
		m[table[i].Name] = &table[i]
	}
	return m
}()
