// Package metrictable lists the metrics, and the stack's alarms on them.
package metrictable

import "slices"

// Namespace is CloudWatch's namespace of the metrics.
const Namespace = "Samekey"

// Metric describes a metric.
type Metric struct {
	Name    string
	Unit    string // unit in CloudWatch: Count, Milliseconds, Seconds or Percent
	Source  string // the hooks that emit it: request, store, stream, sweep or count
	Gauge   bool   // each value replaces the one before; otherwise values add up, or are durations
	Meaning string
	Alarm   Alarm // alarm in the template of samekey stack; zero for none
}

// Alarm is the stack's alarm on a metric.
type Alarm struct {
	Name      string // also the heading in docs/operate/runbook.md
	Condition string // statistic, threshold, and the number of breaching periods
}

// The sources: hooks of metrics.Metrics.
const (
	OfRequest = "request" // Hooks, in the log line of a request
	OfStore   = "store"   // Hooks, in the log line of a request; StoreHooks outside of requests
	OfStream  = "stream"  // StreamHooks
	OfSweep   = "sweep"   // StreamHooks, once for each run of the sweep, even if the value is 0
	OfCount   = "count"   // StreamHooks, each time a worker counts what waits for people, even if the value is 0
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

// table lists the metrics. Tests compare the stack's alarms and dashboard, the runbook
// and docs/operate/signals.md with the table.
var table = []Metric{
	{"Requests", count, OfRequest, adds, "a request with a key was answered or refused", Alarm{}},
	{"Claimed", count, OfRequest, adds, "a new operation began: a first run", Alarm{}},
	{"Replayed", count, OfRequest, adds, "a stored answer was given", Alarm{}},
	{"InFlight", count, OfRequest, adds, "refused: another attempt was at work", Alarm{}},
	{"TakenOver", count, OfRequest, adds, "a client's retry took over an abandoned operation", Alarm{}},
	{"Resumed", count, OfRequest, adds, "a completer took over an abandoned operation", Alarm{}},
	{"Mismatch", count, OfRequest, adds, "refused: the key was used for another request", Alarm{"Mismatch", "Sum > 10 in 1 of 12 periods of 5m, silence notBreaching"}},
	{"Limited", count, OfRequest, adds, "refused: the caller's quota of new operations is used up", Alarm{}},
	{"Refused", count, OfRequest, adds, "refused for another reason: no or a wrong key, the caller, a stuck or expired operation, too little time", Alarm{}},
	{"LeaseLost", count, OfRequest, adds, "an attempt was overtaken", Alarm{}},
	{"Unstored", count, OfRequest, adds, "an answer was given that could not be stored", Alarm{"Unstored", forADay}},
	{"Stuck", count, OfRequest, adds, "an operation was given up, and waits for people (also from the sweep)", Alarm{}},
	{"Blocked", count, OfRequest, adds, "the deployed code refuses to go on with an operation", Alarm{}},
	{"Failed", count, OfRequest, adds, "the table failed, or a record is corrupt or can't be compared", Alarm{"StoreFailures", "Sum > 5 in 3 of 3 periods of 5m, silence notBreaching"}},
	{"Unprotected", count, OfRequest, adds, "a handler ran unprotected: the table could not be reached (`ModeOpen`), or a request with a key came in `ModeOff`", Alarm{}},
	{"Observed", count, OfRequest, adds, "a request of an engine that only observes", Alarm{}},
	{"Duration", millis, OfRequest, adds, "a request, from its key to its answer", Alarm{}},
	{"PhaseDuration", millis, OfRequest, adds, "a stored phase, from its begin until it was stored", Alarm{}},
	{"JobsStaged", count, OfRequest, adds, "jobs that were staged", Alarm{}},

	{"StoreCalls", count, OfStore, adds, "DynamoDB calls; the average of a request's is its price in calls", Alarm{}},
	{"StoreRetries", count, OfStore, adds, "calls that the client sent again", Alarm{}},
	{"ReadUnits", count, OfStore, adds, "read units, with dynamo.Options.Units", Alarm{}},
	{"WriteUnits", count, OfStore, adds, "write units, with dynamo.Options.Units", Alarm{}},
	{"StoreThrottled", count, OfStore, adds, "calls that were throttled to the end", Alarm{}},
	{"StoreConflict", count, OfStore, adds, "calls refused because of another write in progress", Alarm{}},
	{"StoreUnknown", count, OfStore, adds, "calls without an answer, or with an error of the service", Alarm{}},
	{"StoreDenied", count, OfStore, adds, "calls that role, credentials or encryption key don't allow", Alarm{"Denied", "Sum > 0 in 2 of 3 periods of 5m, silence notBreaching"}},
	{"StoreInvalid", count, OfStore, adds, "malformed calls, and calls to a table that is missing", Alarm{}},

	{"Delivered", count, OfStream, adds, "a job was handed on", Alarm{}},
	{"DeliveryFailed", count, OfStream, adds, "a delivery failed, and may be tried again", Alarm{"DeliveryFailed", "Sum > 0 in 3 of 48 periods of 5m, silence notBreaching"}},
	{"Delayed", count, OfStream, adds, "jobs of an operation could not be handed on, and are tried again", Alarm{}},
	{"Parked", count, OfStream, adds, "a job was given up, and waits for people", Alarm{}},
	{"Queued", count, OfStream, adds, "an abandoned operation got a ticket for the completer", Alarm{}},
	{"CompleterTries", count, OfStream, adds, "a completer tried to finish an abandoned operation", Alarm{}},
	{"NotMine", count, OfStream, adds, "no handler was found for an abandoned operation", Alarm{"NotMine", "Sum > 0 in 1 of 2 periods of 1h, silence notBreaching"}},
	{"ExpiredOpen", count, OfStream, adds, "an operation, or a parked job, was forgotten unfinished", Alarm{"ExpiredOpen", forADay}},
	{"Unreadable", count, OfStream, adds, "an item of the table, or of its stream, is not understood", Alarm{}},

	{"Abandoned", count, OfSweep, states, "operations that nobody has ended in time", Alarm{"Abandoned", whileFound}},
	{"Undelivered", count, OfSweep, states, "jobs that nobody has handed on in time", Alarm{"Undelivered", whileFound}},
	{"OpenAge", seconds, OfSweep, states, "age of the oldest open operation, in flight or abandoned; 0 without one", Alarm{}},
	{"SweepRuns", count, OfSweep, adds, "1: the sweep has run", Alarm{"SweepSilent", "Sum < 1 in 4 of 4 periods of 1h, silence breaching"}},
	{"SweepFailed", count, OfSweep, adds, "1 if the run left work undone", Alarm{}},
	{"SweepCoverage", percent, OfSweep, states, "share of the table that the pass has seen", Alarm{}},
	{"SweepAge", seconds, OfSweep, states, "time since the last complete pass", Alarm{}},
	{"SweepOverdue", count, OfSweep, states, "1 if no pass over the whole table has ended in time", Alarm{"SweepOverdue", whileFound}},

	{"Waiting", count, OfCount, states, "records that wait for people, by the index; the next five are its parts", Alarm{"WaitingSilent", "SampleCount < 1 in 4 of 4 periods of 5m, silence breaching"}},
	{"WaitingUnknown", count, OfCount, states, "stuck records with a call that may have been made", Alarm{"WaitingUnknown", whileWaiting}},
	{"WaitingStuck", count, OfCount, states, "other stuck records", Alarm{"WaitingStuck", whileWaiting}},
	{"WaitingBlocked", count, OfCount, states, "open records whose program refuses to go on", Alarm{"WaitingBlocked", whileWaiting}},
	{"WaitingParked", count, OfCount, states, "other records with parked jobs", Alarm{"WaitingParked", whileWaiting}},
	{"WaitingUnreadable", count, OfCount, states, "items that are not understood", Alarm{"WaitingUnreadable", whileWaiting}},
	{"WaitingAge", seconds, OfCount, states, "how long the oldest of these has waited; 0 without one", Alarm{}},
}

// All returns the metrics.
func All() []Metric { return slices.Clone(table) }

// Named returns the metric with a name; the zero Metric if the metric is the
// application's own.
func Named(name string) *Metric {
	if m := byName[name]; m != nil {
		return m
	}
	return &own
}

var own Metric // a metric of the application

var byName = func() map[string]*Metric {
	m := make(map[string]*Metric, len(table))
	for i := range table {
		m[table[i].Name] = &table[i]
	}
	return m
}()
