package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Times and limits of the worker's retries. Two others are DefaultGrace and
// defaults.MaxTries.
const (
	maxBackOff = time.Hour // see BackOff

	// withheldFor is the pause before the next attempt after a withheld answer.
	withheldFor = time.Second

	// MaxGrace is the longest grace. It must be short, since tickets and keys expire
	// after some days.
	MaxGrace = 24 * time.Hour
	// NoTicket is the prefix of names in the index of waiting records. Messages in the
	// ticket queue that are not tickets get such names. No record's partition key has the
	// prefix.
	NoTicket = "samekey#ticket#"
	// TicketLife is the greatest age of a ticket. A queue deletes messages after 14 days,
	// without moving them to the dead-letter queue.
	TicketLife = 10 * 24 * time.Hour
	// LeftToSweep is how long an operation may be due without being taken up. After that, surplus
	// tickets for the operation are dropped, since each sweep makes another ticket.
	LeftToSweep = 3 * time.Hour

	// JobPause is the pause before the next try of a job that could not be delivered. The pause
	// is short, since no client retries a job.
	JobPause = 10 * time.Second
	// HeldPause is the pause before the next try of jobs that were only held back behind
	// an earlier job. The earlier job's ticket also delivers the jobs held back, if they
	// were committed before the ticket is delivered. If the jobs held back had a ticket of
	// their own every few seconds, each refusal of the earlier job would be counted twice,
	// and the earlier job would be parked early.
	HeldPause = 2 * time.Minute
	// MaxRefusals is the number of failed deliveries after which a job is parked.
	MaxRefusals = 5

	// SweepLate is how late the stream's readers must be before a sweep does their work.
	SweepLate = 15 * time.Minute
	// SweepWithin is the longest time without a pass over the whole table.
	SweepWithin = 24 * time.Hour
)

// DefaultGrace is how long a completer leaves an operation to its client.
const DefaultGrace = 5 * time.Minute

// Due returns the time from which an operation, last seen at seen, may be taken up. That
// time is after the end of the lease, and after the grace in which the client may still
// retry.
func Due(r *store.Record, seen time.Time, grace time.Duration) time.Time {
	if r.Lease.After(seen) {
		seen = r.Lease
	}
	return seen.Add(BackOff(grace, r.Tries))
}

// ResendWithin returns the longest pause before a write or a read of the table is sent again:
// 20 ms · 2^round, at most a second. Callers choose a random pause below this limit.
func ResendWithin(round int) time.Duration {
	const least, most = 20 * time.Millisecond, time.Second
	return min(least<<min(round, 10), most)
}

// BackOff returns grace, doubled with each try up to an hour. A grace over an hour is not
// changed. tries is a record's Tries, or the number of tries after the first. BackOff
// applies to abandoned operations, waiting jobs and withheld answers.
func BackOff(grace time.Duration, tries int) time.Duration {
	pause := grace
	for range min(tries, 42) { // 42 doublings of a nanosecond exceed an hour
		pause = max(grace, min(2*pause, maxBackOff))
	}
	return pause
}

// TicketBackOff returns the pause after a failed try of a ticket for jobs: JobPause, doubled with
// each try up to an hour. No record counts these tries, so TicketBackOff takes the lower of two
// estimates. The first is receives, although in some receives the ticket only waited. The second is
// the number of tries that fit, with their pauses, into the time since the ticket was due.
func TicketBackOff(since time.Duration, receives int) time.Duration {
	tries := 0
	for sum := JobPause; sum <= since && tries < receives-1; sum += BackOff(JobPause, tries) {
		tries++
	}
	return BackOff(JobPause, tries)
}
