package metrics

// Namespace is where the metrics are in CloudWatch.
const Namespace = "Samekey"

// The metrics' names. [All] says what they mean.
const (
	Claimed   = "Claimed"
	TakenOver = "TakenOver"
	Replayed  = "Replayed"
	InFlight  = "InFlight"
	Mismatch  = "Mismatch"
	LeaseLost = "LeaseLost"
	Stuck     = "Stuck"
	Blocked   = "Blocked"
	NotMine   = "NotMine"
	Failed    = "Failed"

	Delivered   = "Delivered"
	SetAside    = "SetAside"
	Parked      = "Parked"
	ExpiredOpen = "ExpiredOpen"
	Unreadable  = "Unreadable"

	Abandoned    = "Abandoned"
	Undelivered  = "Undelivered"
	Waiting      = "Waiting"
	SweepOverdue = "SweepOverdue"
)

// Metric is a metric and what it counts.
type Metric struct {
	Name, Meaning string
	// Alarm says that a person must hear of the first one.
	Alarm bool
}

// All returns the metrics. Each counts events, in the unit Count; the last four are
// written once for each run of a sweep, 0 included.
func All() []Metric {
	return []Metric{
		{Claimed, "a new operation began", false},
		{TakenOver, "an abandoned operation was taken over", false},
		{Replayed, "a stored answer was given", false},
		{InFlight, "refused: another attempt was at work", false},
		{Mismatch, "refused: the key was used for another request", false},
		{LeaseLost, "an attempt was overtaken", false},
		{Stuck, "an operation was given up, and waits for people", true},
		{Blocked, "the deployed code refuses to go on with an operation", true},
		{NotMine, "no handler was found for an abandoned operation", true},
		{Failed, "the table failed, or a record is corrupt", false},

		{Delivered, "a job was handed on", false},
		{SetAside, "jobs of an operation could not be handed on, and are tried again", false},
		{Parked, "a job was given up, and waits for people", true},
		{ExpiredOpen, "an operation, or a parked job, was forgotten unfinished", true},
		{Unreadable, "an item of the table, or of its stream, is not understood", true},

		{Abandoned, "operations that nobody has ended in time", false},
		{Undelivered, "jobs that nobody has handed on in time", false},
		{Waiting, "operations and jobs that wait for people", false},
		{SweepOverdue, "1 if no pass over the whole table has ended in time", true},
	}
}
