package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Times and limits of the worker's retries. See also DefaultGrace and
// defaults.MaxTries.
const (
	maxBackOff = time.Hour // see BackOff

	// withheldFor is the pause after the first look-up that decided nothing. BackOff
	// doubles the pause with each such look-up. After a withheld answer, the pause is
	// withheldFor doubled with each try, so it begins at two seconds.
	withheldFor = time.Second

	// MaxGrace is the longest grace. It must be short, since tickets and keys expire
	// after some days.
	MaxGrace = 24 * time.Hour
	// NoTicket begins the name of a message in the ticket queue that is not a ticket.
	// Such a message waits for people, and is listed under NoTicket followed by the
	// message's id. No record's partition key begins with NoTicket.
	NoTicket = "samekey#ticket#"
	// TicketLife is the greatest age of a ticket. It is below 14 days, because a queue
	// deletes a message of that age without moving it to the dead-letter queue.
	TicketLife = 10 * 24 * time.Hour
	// LeftToSweep is how long an operation may be due before the completer drops its
	// surplus tickets. Tickets become surplus because each sweep makes another one.
	LeftToSweep = 3 * time.Hour

	// JobPause is the pause before the next try of a job that could not be delivered. The pause
	// is short, since no client retries a job.
	JobPause = 10 * time.Second
	// HeldPause is the pause before the next try of jobs that were only held back
	// behind an earlier job. It is longer than JobPause, because the earlier job's
	// ticket usually delivers the jobs held back too. A ticket for the jobs held back
	// also tries the earlier job. If this ticket came every few seconds, each refusal
	// of the earlier job would be counted twice, and that job would be parked early.
	HeldPause = 2 * time.Minute
	// MaxRefusals is the number of failed deliveries after which a job is parked.
	MaxRefusals = 5

	// SweepLate is how long work must be overdue before a sweep does it in place of the
	// stream's readers.
	SweepLate = 15 * time.Minute
	// SweepWithin is how long the table may go without a complete pass of a sweep.
	SweepWithin = 24 * time.Hour
)

// DefaultGrace is how long a completer leaves an operation to its client.
const DefaultGrace = 5 * time.Minute

// Due returns the time from which an operation may be taken up. The wait begins at the
// end of the lease, or at the time seen if seen is later. The wait lasts for the grace,
// because the client may still retry. Each try doubles the grace as in [BackOff].
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

// BackOff returns the parameter grace, doubled with each try up to an hour. A grace
// over an hour is not changed. The parameter tries is a record's Tries, or any other
// count that begins at 0. BackOff applies to abandoned operations, waiting jobs and
// withheld answers.
func BackOff(grace time.Duration, tries int) time.Duration {
	pause := grace
	for range min(tries, 42) { // 42 doublings exceed an hour even from a nanosecond
		pause = max(grace, min(2*pause, maxBackOff))
	}
	return pause
}

// TicketBackOff returns the pause after a failed try of a ticket for jobs: JobPause,
// doubled with each try up to an hour. No record counts these tries, so TicketBackOff
// takes the lower of two estimates. The first comes from receives, the number of times
// the ticket was received; it is too high if the ticket sometimes only waited. The
// second is the number of tries that, with their pauses, fit into since, the time since
// the ticket was due.
func TicketBackOff(since time.Duration, receives int) time.Duration {
	tries := 0
	for sum := JobPause; sum <= since && tries < receives-1; sum += BackOff(JobPause, tries) {
		tries++
	}
	return BackOff(JobPause, tries)
}
