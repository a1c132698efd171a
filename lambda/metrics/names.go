package metrics

// Namespace is where the metrics are in CloudWatch, if Options.Namespace is empty.
const Namespace = "Samekey"

// The metrics' names. [All] says what they mean.
const (
	Requests      = "Requests"
	Claimed       = "Claimed"
	Replayed      = "Replayed"
	InFlight      = "InFlight"
	TakenOver     = "TakenOver"
	Resumed       = "Resumed"
	Mismatch      = "Mismatch"
	Limited       = "Limited"
	Refused       = "Refused"
	LeaseLost     = "LeaseLost"
	Unstored      = "Unstored"
	Stuck         = "Stuck"
	Blocked       = "Blocked"
	Failed        = "Failed"
	FailedOpen    = "FailedOpen"
	Observed      = "Observed"
	Duration      = "Duration"
	PhaseDuration = "PhaseDuration"
	JobsStaged    = "JobsStaged"

	StoreCalls     = "StoreCalls"
	StoreRetries   = "StoreRetries"
	ReadUnits      = "ReadUnits"
	WriteUnits     = "WriteUnits"
	StoreThrottled = "StoreThrottled"
	StoreConflict  = "StoreConflict"
	StoreUnknown   = "StoreUnknown"
	StoreDenied    = "StoreDenied"
	StoreInvalid   = "StoreInvalid"

	Delivered      = "Delivered"
	DeliveryFailed = "DeliveryFailed"
	SetAside       = "SetAside"
	Parked         = "Parked"
	Queued         = "Queued"
	CompleterTries = "CompleterTries"
	NotMine        = "NotMine"
	ExpiredOpen    = "ExpiredOpen"
	Unreadable     = "Unreadable"

	Abandoned     = "Abandoned"
	Undelivered   = "Undelivered"
	OpenAge       = "OpenAge"
	SweepRuns     = "SweepRuns"
	SweepFailed   = "SweepFailed"
	SweepCoverage = "SweepCoverage"
	SweepAge      = "SweepAge"
	SweepOverdue  = "SweepOverdue"
)

// Unit is a unit of CloudWatch.
type Unit string

// The units of the metrics.
const (
	Count        Unit = "Count"
	Milliseconds Unit = "Milliseconds"
	Seconds      Unit = "Seconds"
	Percent      Unit = "Percent"
)

// Source says which hooks emit a metric.
type Source string

// The sources.
const (
	OfRequest Source = "request" // [Metrics.Hooks], in the line of a request
	OfStore   Source = "store"   // the line of a request, and [Metrics.StoreHooks] outside of requests
	OfStream  Source = "stream"  // [Metrics.StreamHooks]
	OfSweep   Source = "sweep"   // [Metrics.StreamHooks], once for each run of the sweep, 0 included
	OfCount   Source = "count"   // [Metrics.StreamHooks], each time a worker counts what waits for people, 0 included
)

// Metric is a metric and what it measures.
type Metric struct {
	Name    string
	Unit    Unit
	Source  Source
	Meaning string
	// Alarm says that an alarm of the stack is on it (docs/operate/runbook.md).
	Alarm bool
}

// All returns the metrics.
func All() []Metric {
	return []Metric{
		{Requests, Count, OfRequest, "a request with a key was answered or refused", false},
		{Claimed, Count, OfRequest, "a new operation began: a first run", false},
		{Replayed, Count, OfRequest, "a stored answer was given", false},
		{InFlight, Count, OfRequest, "refused: another attempt was at work", false},
		{TakenOver, Count, OfRequest, "a client's retry took over an abandoned operation", false},
		{Resumed, Count, OfRequest, "a completer took over an abandoned operation", false},
		{Mismatch, Count, OfRequest, "refused: the key was used for another request", true},
		{Limited, Count, OfRequest, "refused: the caller's quota of new operations is used up", false},
		{Refused, Count, OfRequest, "refused for another reason: no or a wrong key, the caller, a stuck or expired operation, too little time", false},
		{LeaseLost, Count, OfRequest, "an attempt was overtaken", false},
		{Unstored, Count, OfRequest, "an answer was given that could not be stored", true},
		{Stuck, Count, OfRequest, "an operation was given up, and waits for people (also from the sweep)", false},
		{Blocked, Count, OfRequest, "the deployed code refuses to go on with an operation", false},
		{Failed, Count, OfRequest, "the table failed, or a record is corrupt or can't be compared", true},
		{FailedOpen, Count, OfRequest, "a handler ran unprotected, because the table could not be reached", false},
		{Observed, Count, OfRequest, "a request of an engine that only observes", false},
		{Duration, Milliseconds, OfRequest, "a request, from its key to its answer", false},
		{PhaseDuration, Milliseconds, OfRequest, "a stored phase, from its begin until it was stored", false},
		{JobsStaged, Count, OfRequest, "jobs that were staged", false},

		{StoreCalls, Count, OfStore, "DynamoDB calls; the average of a request's is its price in calls", false},
		{StoreRetries, Count, OfStore, "calls that the client sent again", false},
		{ReadUnits, Count, OfStore, "read units, with dynamo.Options.Units", false},
		{WriteUnits, Count, OfStore, "write units, with dynamo.Options.Units", false},
		{StoreThrottled, Count, OfStore, "calls that were throttled to the end", false},
		{StoreConflict, Count, OfStore, "calls refused because of another write in progress", false},
		{StoreUnknown, Count, OfStore, "calls without an answer, or with an error of the service", false},
		{StoreDenied, Count, OfStore, "calls that role, credentials or encryption key don't allow", true},
		{StoreInvalid, Count, OfStore, "malformed calls, and calls to a table that is missing", false},

		{Delivered, Count, OfStream, "a job was handed on", false},
		{DeliveryFailed, Count, OfStream, "a delivery failed, and may be tried again", false},
		{SetAside, Count, OfStream, "jobs of an operation could not be handed on, and are tried again", false},
		{Parked, Count, OfStream, "a job was given up, and waits for people", false},
		{Queued, Count, OfStream, "an abandoned operation got a ticket for the completer", false},
		{CompleterTries, Count, OfStream, "a completer tried to finish an abandoned operation", false},
		{NotMine, Count, OfStream, "no handler was found for an abandoned operation", true},
		{ExpiredOpen, Count, OfStream, "an operation, or a parked job, was forgotten unfinished", true},
		{Unreadable, Count, OfStream, "an item of the table, or of its stream, is not understood", false},

		{Abandoned, Count, OfSweep, "operations that nobody has ended in time", true},
		{Undelivered, Count, OfSweep, "jobs that nobody has handed on in time", true},
		{OpenAge, Seconds, OfSweep, "age of the oldest open operation, in flight or abandoned; 0 without one", false},
		{SweepRuns, Count, OfSweep, "1: the sweep has run", true},
		{SweepFailed, Count, OfSweep, "1 if the run left work undone", false},
		{SweepCoverage, Percent, OfSweep, "share of the table that the pass has seen", false},
		{SweepAge, Seconds, OfSweep, "time since the last complete pass", false},
		{SweepOverdue, Count, OfSweep, "1 if no pass over the whole table has ended in time", true},

		{Waiting, Count, OfCount, "records that wait for people, by the index; the next five are its parts", true},
		{WaitingUnknown, Count, OfCount, "stuck records with a call that may have been made", true},
		{WaitingStuck, Count, OfCount, "other stuck records", true},
		{WaitingBlocked, Count, OfCount, "open records whose program refuses to go on", true},
		{WaitingParked, Count, OfCount, "other records with parked jobs", true},
		{WaitingUnreadable, Count, OfCount, "items that are not understood", true},
		{WaitingAge, Seconds, OfCount, "how long the oldest of these has waited; 0 without one", false},
	}
}

// units returns the units of the metrics by their names.
func units() map[string]Unit {
	m := make(map[string]Unit)
	for _, metric := range All() {
		m[metric.Name] = metric.Unit
	}
	return m
}

// RetryRate returns the share of requests, from 0 to 1, that were repetitions of
// another: replays, refusals in flight, and take-overs by a client. Each argument is
// the sum of the metric of its name over the same time. Without requests it is 0.
func RetryRate(requests, replayed, inFlight, takenOver float64) float64 {
	if requests <= 0 {
		return 0
	}
	return (replayed + inFlight + takenOver) / requests
}

// RetryRateMath is [RetryRate] as CloudWatch's metric math, in percent, of metrics with
// the ids requests, replayed, inflight and takenover, each with the statistic Sum.
const RetryRateMath = "100 * (FILL(replayed, 0) + FILL(inflight, 0) + FILL(takenover, 0)) / requests"
