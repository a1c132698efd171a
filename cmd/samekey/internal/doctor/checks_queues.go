package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/samekey/samekey/internal/state"
)

func queueChecks() []Check {
	queues := []Source{Functions, Mappings, Queues}
	return []Check{
		{
			ID: "queue-missing", Severity: Error, Needs: []Source{Functions, Queues}, find: queueMissing,
			Looks:  "all queues in the worker's SAMEKEY_TICKETS_URL and SAMEKEY_SINKS exist",
			Causes: "tickets and jobs for the missing queue can't be sent; the sweep tries again every hour",
			Mend:   "correct SAMEKEY_TICKETS_URL or SAMEKEY_SINKS, or deploy the queue",
		},
		{
			ID: "bus-missing", Severity: Error, Needs: []Source{Functions, Buses}, find: busMissing,
			Looks:  "the EventBridge buses of SAMEKEY_SINKS exist in the account and Region to which the worker sends",
			Causes: "jobs for the missing bus wait. samekey-worker checks the bus before it sends, because PutEvents reports success for a missing bus and loses the events",
			Mend:   "correct SAMEKEY_SINKS, or deploy the bus",
		},
		{
			ID: "machine-standard", Severity: Error, Needs: []Source{Functions, Machines}, find: machineStandard,
			Looks:  "the worker's state machines exist, and are STANDARD",
			Causes: "jobs for a missing or EXPRESS state machine wait. The worker starts no EXPRESS workflow, since each redelivery would start it again",
			Mend:   "correct SAMEKEY_SINKS, or deploy the state machine as STANDARD",
		},
		{
			ID: "tickets-reader", Severity: Error, Needs: queues, find: ticketsReader,
			Looks:  "the worker reads its queue of tickets, and the mapping is enabled",
			Causes: "abandoned requests are never completed, and jobs that failed once are not tried again",
			Mend:   "deploy WorkerTickets of samekey.yaml",
		},
		{
			ID: "tickets-fifo", Severity: Error, Needs: queues, find: ticketsFIFO,
			Looks:  "the queue of tickets is a standard queue",
			Causes: "a FIFO queue can't delay single messages, so the worker doesn't start",
			Mend:   "deploy Tickets of samekey.yaml, a standard queue",
		},
		{
			ID: "tickets-wait", Severity: Error, Needs: queues, find: ticketsWait,
			Looks:  "the queue of tickets keeps a message for at least 11 days and allows at least 1000 receives",
			Causes: "a ticket may wait ten days in an outage of a provider or sink. The queue loses the ticket earlier",
			Mend:   "set maxReceiveCount: 1000 and MessageRetentionPeriod: 1209600, as in Tickets of samekey.yaml",
		},
		{
			ID: "tickets-filters", Severity: Error, Needs: queues, find: ticketsFilters,
			Looks:  "the mapping from the queue of tickets to the worker has no filter",
			Causes: "Lambda deletes tickets that don't pass the filter, and the operations and jobs of these tickets wait for the sweep",
			Mend:   "remove FilterCriteria from WorkerTickets, as in samekey.yaml",
		},
		{
			ID: "queue-visibility", Severity: Warning, Needs: queues, find: queueVisibility,
			Looks:  "a queue's VisibilityTimeout is at least six times its function's Timeout, as AWS recommends",
			Causes: "messages are delivered again while their batch still runs or waits, so even good messages may become dead letters",
			Mend:   "VisibilityTimeout: six times the function's Timeout",
		},
		{
			ID: "queue-redrive", Severity: Error, Needs: queues, find: queueRedrive,
			Looks:  "a queue has a redrive policy, and its dead-letter queue exists",
			Causes: "a message that always fails is delivered again until it expires and is lost",
			Mend:   "RedrivePolicy: {deadLetterTargetArn: …, maxReceiveCount: 5}",
		},
		{
			ID: "queue-receives", Severity: Warning, Needs: queues, find: queueReceives,
			Looks:  "a queue's maxReceiveCount is at least 3",
			Causes: "a good message whose function was throttled twice becomes a dead letter",
			Mend:   "maxReceiveCount: 5",
		},
		{
			ID: "dead-letters-kept", Severity: Warning, Needs: queues, find: deadLettersKept,
			Looks:  "a dead-letter queue keeps messages at least as long as its source queue",
			Causes: "a dead letter has the age of the original message, so SQS may delete the dead letter before anybody sees it",
			Mend:   "MessageRetentionPeriod: 1209600 on the dead-letter queue",
		},
		{
			ID: "queue-kept", Severity: Error, Needs: queues, find: queueKept,
			Looks:  "a queue keeps a message for at least maxReceiveCount times the VisibilityTimeout",
			Causes: "a message that fails is deleted before it becomes a dead letter",
			Mend:   "MessageRetentionPeriod: 1209600",
		},
	}
}

func (q *Queue) wrong(format string, args ...any) wrong {
	name := q.ARN[strings.LastIndexByte(q.ARN, ':')+1:]
	if name == "" {
		name = q.URL
	}
	return wrong{where: "queue " + name, what: fmt.Sprintf(format, args...)}
}

// Queue.seconds returns the value of an attribute that AWS gives in seconds. If the
// attribute is missing, seconds returns 0.
func (q *Queue) seconds(attribute string) time.Duration {
	n, err := strconv.ParseInt(q.Attributes[attribute], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

func (q *Queue) kept() time.Duration { return q.seconds("MessageRetentionPeriod") }

func queueMissing(f *Facts) ([]wrong, string) {
	if f.worker() == nil {
		return nil, noWorker
	}
	var all []wrong
	for _, name := range slices.Sorted(maps.Keys(f.Queues)) {
		if q := f.Queues[name]; q.Gone {
			all = append(all, q.wrong("it doesn't exist"))
		}
	}
	return all, ""
}

const noTickets = "the queue of tickets was not found"

const noWorker = "the worker was not found: no function has the variable SAMEKEY_TICKETS_URL"

func ticketsReader(f *Facts) ([]wrong, string) {
	w, q := f.worker(), f.tickets()
	switch {
	case w == nil:
		return nil, noWorker
	case q == nil || q.Gone:
		return nil, noTickets
	}
	for _, r := range f.consumers() {
		if aws.ToString(r.mapping.EventSourceArn) == q.ARN && r.fn == w {
			if enabled(r.mapping) {
				return found()
			}
			return found(r.wrong("it is %s", aws.ToString(r.mapping.State)))
		}
	}
	return found(q.wrong("%s doesn't read the queue", w.Name))
}

func ticketsFIFO(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	if url := w.Env["SAMEKEY_TICKETS_URL"]; strings.HasSuffix(url, ".fifo") {
		return found(wrong{where: "function " + w.Name, what: "SAMEKEY_TICKETS_URL names a FIFO queue"})
	}
	return found()
}

func ticketsWait(f *Facts) ([]wrong, string) {
	q := f.tickets()
	if q == nil || q.Gone {
		return nil, noTickets
	}
	p, ok := q.redrive()
	n, err := p.Receives.Int64()
	kept := state.TicketLife + 24*time.Hour
	switch {
	case ok && err == nil && n < 1000:
		return found(q.wrong("maxReceiveCount is %d", n))
	case q.kept() < kept:
		return found(q.wrong("MessageRetentionPeriod is %s", span(q.kept())))
	}
	return found()
}

func ticketsFilters(f *Facts) ([]wrong, string) {
	w, q := f.worker(), f.tickets()
	switch {
	case w == nil:
		return nil, noWorker
	case q == nil:
		return nil, noTickets
	}
	var all []wrong
	for _, r := range f.consumers() {
		if r.fn == w && aws.ToString(r.mapping.EventSourceArn) == q.ARN && (r.mapping.FilterCriteria != nil || r.mapping.FilterCriteriaError != nil) {
			all = append(all, r.wrong("it has a filter"))
		}
	}
	return all, ""
}

// Facts.consumed calls look for each mapping of a queue to a function, and gathers the
// findings.
func (f *Facts) consumed(look func(*Queue, reader) []wrong) (all []wrong, why string) {
	readers := f.consumers()
	if len(readers) == 0 {
		return nil, "no function reads a queue"
	}
	for _, r := range readers {
		if q := f.Queues[aws.ToString(r.mapping.EventSourceArn)]; q != nil && !q.Gone {
			all = append(all, look(q, r)...)
		}
	}
	return all, ""
}

func queueVisibility(f *Facts) ([]wrong, string) {
	return f.consumed(func(q *Queue, r reader) []wrong {
		if hidden := q.seconds("VisibilityTimeout"); hidden < 6*r.fn.Timeout {
			return []wrong{q.wrong("VisibilityTimeout is %v, but %s may take %v: set at least %d seconds",
				hidden, r.fn.Name, r.fn.Timeout, int(6*r.fn.Timeout/time.Second))}
		}
		return nil
	})
}

func queueRedrive(f *Facts) ([]wrong, string) {
	return f.consumed(func(q *Queue, _ reader) []wrong {
		p, ok := q.redrive()
		if !ok || p.Target == "" {
			return []wrong{q.wrong("it has no redrive policy")}
		}
		if dead := f.Queues[p.Target]; dead != nil && dead.Gone {
			return []wrong{q.wrong("its dead-letter queue doesn't exist: %s", p.Target)}
		}
		return nil
	})
}

func queueReceives(f *Facts) ([]wrong, string) {
	return f.consumed(func(q *Queue, _ reader) []wrong {
		p, ok := q.redrive()
		if n, err := p.Receives.Int64(); ok && err == nil && n < 3 {
			return []wrong{q.wrong("maxReceiveCount is %d", n)}
		}
		return nil
	})
}

func deadLettersKept(f *Facts) ([]wrong, string) {
	return f.consumed(func(q *Queue, _ reader) []wrong {
		dead := f.Queues[q.deadLetters()]
		if dead == nil || dead.Gone || dead.kept() >= q.kept() {
			return nil
		}
		return []wrong{dead.wrong("MessageRetentionPeriod is %s, but the source queue's is %s", span(dead.kept()), span(q.kept()))}
	})
}

func queueKept(f *Facts) ([]wrong, string) {
	return f.consumed(func(q *Queue, _ reader) []wrong {
		p, ok := q.redrive()
		n, err := p.Receives.Int64()
		if !ok || err != nil || q == f.tickets() { // the queue of tickets is exempt, because tickets wait by being received
			return nil
		}
		if whole := time.Duration(n) * q.seconds("VisibilityTimeout"); q.kept() < whole {
			return []wrong{q.wrong("MessageRetentionPeriod is %s, but %d receives take up to %s", span(q.kept()), n, span(whole))}
		}
		return nil
	})
}
