// Package metrictable lists the metrics, and the stack's alarms on them.
package metrictable

import "slices"

// Namespace is CloudWatch's namespace of the metrics.
const Namespace = "Samekey"

// Metric describes a metric.
type Metric struct {
	Name    string
	Unit    string // unit in CloudWatch: Count, Milliseconds, Seconds or Percent
	Source  string // the hooks that emit the metric: request, store, stream, sweep or count
	Gauge   bool   // true for a state, of which the latest value counts; false for events and their durations
	Meaning string
	Alarm   Alarm // its alarm in the template of samekey stack; zero if the metric has none
}

// Alarm is the stack's alarm on a metric.
type Alarm struct {
	Name      string // also the heading in docs/operate/runbook.md
	Condition string // statistic, threshold, number of breaching periods, and the effect of silence (no data)
}

// The values of Metric.Source. Each comment names the methods of metrics.Metrics whose
// hooks emit the metrics.
const (
	OfRequest = "request" // Hooks, in the log line of a request
	OfStore   = "store"   // Hooks for a request's calls, in its log line; StoreHooks for other calls
	OfStream  = "stream"  // StreamHooks
	OfSweep   = "sweep"   // StreamHooks, once for each run of the sweep, even if the value is 0
	OfCount   = "count"   // StreamHooks, once for each count of what waits for people, even if the value is 0
)

const (
	count   = "Count"
	millis  = "Milliseconds"
	seconds = "Seconds"
	percent = "Percent"

	adds, states = false, true // Gauge

	// Conditions that several alarms share.
	whileWaiting = "Maximum > 0 in 1 of 1 periods of 5m, silence ignore"
	whileFound   = "Maximum > 0 in 1 of 1 periods of 1h, silence ignore"
	forADay      = "Sum > 0 in 1 of 24 periods of 1h, silence notBreaching"
)

// table has all metrics. Tests compare the table with the stack's alarms and dashboard,
// the runbook and docs/operate/signals.md.
var table = []Metric{
	{"Requests", count, OfRequest, adds, "a request with a key was answered or refused", Alarm{}},
	{"Claimed", count, OfRequest, adds, "a new operation began", Alarm{}},
	{"Replayed", count, OfRequest, adds, "a stored answer was sent", Alarm{}},
	{"InFlight", count, OfRequest, adds, "a request was refused: another attempt holds the record", Alarm{}},
	{"TakenOver", count, OfRequest, adds, "a client's retry took over an abandoned operation", Alarm{}},
	{"Resumed", count, OfRequest, adds, "a completer took over an abandoned operation", Alarm{}},
	{"Mismatch", count, OfRequest, adds, "a request was refused: its key belongs to another request", Alarm{"Mismatch", "Sum > 10 in 1 of 12 periods of 5m, silence notBreaching"}},
	{"Limited", count, OfRequest, adds, "a request was refused: the caller's quota of new operations is used up", Alarm{}},
	{"Refused", count, OfRequest, adds, "a request was refused for another reason: a missing or invalid key, an unverified caller, a stuck or expired operation, too little time", Alarm{}},
	{"LeaseLost", count, OfRequest, adds, "an attempt lost its lease to another attempt", Alarm{}},
	{"Unstored", count, OfRequest, adds, "an answer was sent, but could not be stored", Alarm{"Unstored", forADay}},
	{"Stuck", count, OfRequest, adds, "a request or the worker made an operation stuck", Alarm{}},
	{"Blocked", count, OfRequest, adds, "an attempt failed, since the deployed program can't continue the operation", Alarm{}},
	{"Failed", count, OfRequest, adds, "the table failed, or a record is corrupt or can't be compared", Alarm{"StoreFailures", "Sum > 5 in 3 of 3 periods of 5m, silence notBreaching"}},
	{"Unprotected", count, OfRequest, adds, "a handler ran without protection: the table could not be reached (`ModeOpen`), or `ModeOff` ignored the request's key", Alarm{}},
	{"Observed", count, OfRequest, adds, "a request ran in `ModeObserve`, and would be replayed or refused in `ModeEnforce`", Alarm{}},
	{"Duration", millis, OfRequest, adds, "the time from the start of a request to its answer", Alarm{}},
	{"PhaseDuration", millis, OfRequest, adds, "the time from the start of a phase to its commit", Alarm{}},
	{"JobsStaged", count, OfRequest, adds, "jobs that phases staged", Alarm{}},

	{"StoreCalls", count, OfStore, adds, "DynamoDB calls; each request adds one value, the number of its calls", Alarm{}},
	{"StoreRetries", count, OfStore, adds, "calls that the AWS client sent again", Alarm{}},
	{"ReadUnits", count, OfStore, adds, "read units, if `dynamo.Options.Units` is set", Alarm{}},
	{"WriteUnits", count, OfStore, adds, "write units, if `dynamo.Options.Units` is set", Alarm{}},
	{"StoreThrottled", count, OfStore, adds, "calls that were still throttled at the last retry", Alarm{}},
	{"StoreConflict", count, OfStore, adds, "calls refused because of another write in progress", Alarm{}},
	{"StoreUnknown", count, OfStore, adds, "calls without an answer, or with an error of the service", Alarm{}},
	{"StoreDenied", count, OfStore, adds, "calls that the role, the credentials or the encryption key don't allow", Alarm{"Denied", "Sum > 0 in 2 of 3 periods of 5m, silence notBreaching"}},
	{"StoreInvalid", count, OfStore, adds, "malformed calls, and calls to a table that is missing", Alarm{}},

	{"Delivered", count, OfStream, adds, "a job was delivered", Alarm{}},
	{"DeliveryFailed", count, OfStream, adds, "a delivery failed, and may be tried again", Alarm{"DeliveryFailed", "Sum > 0 in 3 of 48 periods of 5m, silence notBreaching"}},
	{"Delayed", count, OfStream, adds, "jobs of an operation could not be delivered, and will be tried again", Alarm{}},
	{"Parked", count, OfStream, adds, "a job was given up, and waits for people", Alarm{}},
	{"Queued", count, OfStream, adds, "an operation's ticket was sent to the completer", Alarm{}},
	{"CompleterTries", count, OfStream, adds, "a completer tried to finish an abandoned operation", Alarm{}},
	{"NotMine", count, OfStream, adds, "no handler was found for an abandoned operation", Alarm{"NotMine", "Sum > 0 in 1 of 2 periods of 1h, silence notBreaching"}},
	{"ExpiredOpen", count, OfStream, adds, "the record of an unfinished operation, of a parked job or of a later job is gone", Alarm{"ExpiredOpen", forADay}},
	{"Unreadable", count, OfStream, adds, "an item of the table, or of its stream, is not understood", Alarm{}},

	{"Abandoned", count, OfSweep, states, "operations that were not ended in time", Alarm{"Abandoned", whileFound}},
	{"Undelivered", count, OfSweep, states, "jobs that were not delivered in time", Alarm{"Undelivered", whileFound}},
	{"OpenAge", seconds, OfSweep, states, "age of the oldest open operation, in flight or abandoned; 0 if there is none", Alarm{}},
	{"SweepRuns", count, OfSweep, adds, "1 for each run of the sweep", Alarm{"SweepSilent", "Sum < 1 in 4 of 4 periods of 1h, silence breaching"}},
	{"SweepFailed", count, OfSweep, adds, "1 if the run left work undone", Alarm{}},
	{"SweepCoverage", percent, OfSweep, states, "percentage of the table that the current pass has read", Alarm{}},
	{"SweepAge", seconds, OfSweep, states, "time since the last complete pass", Alarm{}},
	{"SweepOverdue", count, OfSweep, states, "1 if no pass over the whole table has ended in time", Alarm{"SweepOverdue", whileFound}},

	{"Waiting", count, OfCount, states, "records that wait for people, counted in the index: the sum of the next five metrics", Alarm{"WaitingSilent", "SampleCount < 1 in 4 of 4 periods of 5m, silence breaching"}},
	{"WaitingUnknown", count, OfCount, states, "stuck records with a call that may have been made", Alarm{"WaitingUnknown", whileWaiting}},
	{"WaitingStuck", count, OfCount, states, "other stuck records", Alarm{"WaitingStuck", whileWaiting}},
	{"WaitingBlocked", count, OfCount, states, "open records that the deployed program can't continue", Alarm{"WaitingBlocked", whileWaiting}},
	{"WaitingParked", count, OfCount, states, "other records with parked jobs", Alarm{"WaitingParked", whileWaiting}},
	{"WaitingUnreadable", count, OfCount, states, "items that are not understood", Alarm{"WaitingUnreadable", whileWaiting}},
	{"WaitingAge", seconds, OfCount, states, "how long the oldest waiting record has waited; 0 if there is none", Alarm{}},
}

// All returns the metrics.
func All() []Metric { return slices.Clone(table) }

// Named returns the metric with this name. For a metric of the application, which the
// table doesn't have, Named returns a zero Metric.
func Named(name string) *Metric {
	if m := byName[name]; m != nil {
		return m
	}
	return &own
}

var own Metric // stands for any metric of the application

var byName = func() map[string]*Metric {
	m := make(map[string]*Metric, len(table))
	for i := range table {
		m[table[i].Name] = &table[i]
	}
	return m
}()
