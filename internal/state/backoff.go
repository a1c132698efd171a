package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// When the background tries again, and how often. (Programs know two more: an operation
// is left to its client for DefaultGrace, and stuck after defaults.MaxTries take-ups.)
const (
	maxBackOff = time.Hour // see BackOff

	// withheldFor is how long an answer that nobody heard holds up the next attempt.
	withheldFor = time.Second

	// MaxGrace is the longest grace: tickets live for days, and keys too.
	MaxGrace = 24 * time.Hour
	// NoTicket begins the name of a message of the tickets' queue that is no ticket, on the
	// list of what waits for people. No record has such a partition key.
	NoTicket = "samekey#ticket#"
	// TicketLife is how old a ticket gets. A queue keeps it for 14 days, and what expires
	// there is no dead letter.
	TicketLife = 10 * 24 * time.Hour
	// LeftToSweep is for how long an operation may be due, and not taken up, before its
	// tickets are counted: each sweep makes another, and they must not multiply.
	LeftToSweep = 3 * time.Hour

	// JobPause is how long a job that could not be delivered waits for its next try:
	// for no client, so it is short.
	JobPause = 10 * time.Second
	// HeldPause is how long jobs wait that were only held back. The earlier job's ticket
	// delivers them as well. They need their own only if that ticket came before their
	// commit. A second ticket every few seconds would count each refusal twice, and
	// park the earlier job early.
	HeldPause = 2 * time.Minute
	// MaxRefusals is how many failed deliveries park a job.
	MaxRefusals = 5

	// SweepLate is how late the stream must be before a sweep acts in its stead.
	SweepLate = 15 * time.Minute
	// SweepWithin is the longest time without a pass over the whole table.
	SweepWithin = 24 * time.Hour
)

// DefaultGrace is how long a completer leaves an operation to its client.
const DefaultGrace = 5 * time.Minute

// Due returns when an operation, last seen at seen, may be taken up: after the
// end of its lease, and after the time in which its client may still come back.
func Due(r *store.Record, seen time.Time, grace time.Duration) time.Time {
	if r.Lease.After(seen) {
		seen = r.Lease
	}
	return seen.Add(BackOff(grace, r.Tries))
}

// ResendWithin bounds the pause before a write or a read of the table is sent again: 20 ms ·
// 2^round, at most a second. The pause is drawn below it.
func ResendWithin(round int) time.Duration {
	const least, most = 20 * time.Millisecond, time.Second
	return min(least<<min(round, 10), most)
}

// BackOff returns grace, doubled with each try up to an hour. A longer grace is
// not changed. tries are a record's Tries, or those after the first. Abandoned operations,
// jobs that wait and withheld answers have it.
func BackOff(grace time.Duration, tries int) time.Duration {
	pause := grace
	for range min(tries, 42) { // a nanosecond is more than an hour by then
		pause = max(grace, min(2*pause, maxBackOff))
	}
	return pause
}

// TicketBackOff returns the pause after a failed try of a ticket for jobs, whose tries
// nothing counts: JobPause, doubled with each try up to an hour. There were no more tries than
// receives, by some of which the ticket only waited, and no more than fit with their pauses
// into the time since the ticket was due.
func TicketBackOff(since time.Duration, receives int) time.Duration {
	tries := 0
	for sum := JobPause; sum <= since && tries < receives-1; sum += BackOff(JobPause, tries) {
		tries++
	}
	return BackOff(JobPause, tries)
}
