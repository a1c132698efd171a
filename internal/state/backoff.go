package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Times and limits of the worker's retries. DefaultGrace and defaults.MaxTries are such
// limits too.
const (
	maxBackOff = time.Hour // see BackOff

	// withheldFor is the pause before the next attempt after an answer was withheld or a
	// look-up decided nothing. BackOff doubles the pause with each try.
	withheldFor = time.Second

	// MaxGrace is the longest grace. It must be short, since tickets and keys expire
	// after some days.
	MaxGrace = 24 * time.Hour
	// NoTicket is a prefix for messages in the ticket queue that are not tickets. The list of
	// what waits for people names such a message by the prefix and the message's id. No
	// record's partition key has the prefix.
	NoTicket = "samekey#ticket#"
	// TicketLife is the greatest age of a ticket. It is below 14 days, since at that age
	// a queue deletes a message without moving it to the dead-letter queue.
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
	// SweepWithin is how long the table may go without a sweep's complete pass.
	SweepWithin = 24 * time.Hour
)

// DefaultGrace is how long a completer leaves an operation to its client.
const DefaultGrace = 5 * time.Minute

// Due returns the time from which an operation may be taken up. The wait begins at the end of
// the lease, or at the time seen if that is later. It lasts for the grace (the client may still
// retry), doubled with each try as in [BackOff].
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

// BackOff returns the parameter grace, doubled with each try up to an hour. A grace over an
// hour is not changed. The parameter tries is a record's Tries, or the number of tries after
// the first one. BackOff applies to abandoned operations, waiting jobs and withheld answers.
func BackOff(grace time.Duration, tries int) time.Duration {
	pause := grace
	for range min(tries, 42) { // 42 doublings of a nanosecond exceed an hour
		pause = max(grace, min(2*pause, maxBackOff))
	}
	return pause
}

// TicketBackOff returns the pause after a failed try of a ticket for jobs: JobPause, doubled with
// each try up to an hour. No record counts these tries, so TicketBackOff takes the lower of two
// estimates. The first is how often the ticket was received (the parameter receives), although it
// only waited in some of these cases. The second is the number of tries that fit, with their
// pauses, into the time since the ticket was due (the parameter since).
func TicketBackOff(since time.Duration, receives int) time.Duration {
	tries := 0
	for sum := JobPause; sum <= since && tries < receives-1; sum += BackOff(JobPause, tries) {
		tries++
	}
	return BackOff(JobPause, tries)
}
