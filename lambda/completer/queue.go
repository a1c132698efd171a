package completer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/idem/jobs"
)

// QueueAPI is the part of *sqs.Client that a [Queue] uses.
type QueueAPI interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

var _ QueueAPI = (*sqs.Client)(nil)

// Queue keeps tickets in an SQS queue, hidden until they are due, or for the 15
// minutes that SQS allows: [Handler] requeues tickets that come too early. The
// queue must be a standard queue, since FIFO queues don't delay single messages.
type Queue struct {
	api QueueAPI
	url string
	now func() time.Time
}

var _ jobs.TicketQueue = (*Queue)(nil)

// NewQueue returns the queue at url. It panics if api is nil, or url is empty or a
// FIFO queue's: mistakes in the program, which show at cold start.
func NewQueue(api QueueAPI, url string) *Queue {
	if api == nil || url == "" || strings.HasSuffix(url, ".fifo") {
		panic("completer: NewQueue: want a client and the URL of a standard queue") //nolint:forbidigo // a mistake in the program
	}
	return &Queue{api: api, url: url, now: time.Now}
}

const (
	maxDelay   = 15 * time.Minute
	maxEntries = 10
)

// message is a ticket in the queue.
type message struct {
	jobs.Ticket
	DueMS    int64  `json:"due_ms"`
	Tries    int    `json:"tries,omitempty"`
	Function string `json:"fn,omitempty"`
	Tenant   string `json:"tn,omitempty"`
}

// Put implements [jobs.TicketQueue], ten tickets a call. After a call that fails as
// a whole the rest isn't tried ([jobs.ErrHeldBack]): tickets are small and alike, so
// the queue is the cause.
func (q *Queue) Put(ctx context.Context, tickets []jobs.Ticket) []error {
	errs := make([]error, 0, len(tickets))
	var untried error
	for some := range slices.Chunk(tickets, maxEntries) {
		if untried == nil && ctx.Err() != nil {
			untried = fmt.Errorf("completer: sqs: %w: %w", jobs.ErrHeldBack, context.Cause(ctx))
		}
		if untried != nil {
			errs = append(errs, slices.Repeat([]error{untried}, len(some))...)
			continue
		}
		each, err := q.send(ctx, some)
		errs = append(errs, each...)
		if err != nil {
			untried = fmt.Errorf("completer: sqs: %w: the queue is unavailable to an earlier one", jobs.ErrHeldBack)
		}
	}
	return errs
}

// send returns the error of each ticket, and the error of the call.
func (q *Queue) send(ctx context.Context, tickets []jobs.Ticket) ([]error, error) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: make([]types.SendMessageBatchRequestEntry, len(tickets))}
	errs := make([]error, len(tickets))
	for i, t := range tickets {
		body, err := json.Marshal(message{t, t.Due.UnixMilli(), t.Tries, t.Function, t.Tenant})
		if err != nil {
			panic(err) //nolint:forbidigo // strings and numbers only
		}
		in.Entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body)), DelaySeconds: q.delay(t.Due),
		}
		errs[i] = errors.New("completer: sqs: the answer doesn't tell")
	}
	out, err := q.api.SendMessageBatch(ctx, in)
	if err != nil {
		for i := range errs {
			errs[i] = fmt.Errorf("completer: sqs: %w", err)
		}
		return errs, err
	}
	set := func(id *string, err error) {
		if i, e := strconv.Atoi(aws.ToString(id)); e == nil && i >= 0 && i < len(errs) {
			errs[i] = err
		}
	}
	for _, e := range out.Successful {
		set(e.Id, nil)
	}
	for _, e := range out.Failed {
		set(e.Id, fmt.Errorf("completer: sqs: %s: %s", aws.ToString(e.Code), aws.ToString(e.Message)))
	}
	return errs, nil
}

// delay returns for how many seconds to hide a message, rounded up, since a ticket
// that comes too early takes another round.
func (q *Queue) delay(due time.Time) int32 {
	wait := min(max(due.Sub(q.now()), 0), maxDelay)
	return int32((wait + time.Second - 1) / time.Second)
}

// parse reads a message of a Queue.
func parse(body string) (jobs.Ticket, error) {
	var m message
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return jobs.Ticket{}, fmt.Errorf("completer: not a ticket: %w", err)
	}
	ofJobs, ofOperation := m.Jobs != "" && m.Owner == "" && m.Ver == 0, m.Jobs == "" && m.Owner != "" && m.Ver >= 1
	if dec.More() || m.PK == "" || !ofJobs && !ofOperation || m.Tries < 0 {
		return jobs.Ticket{}, errors.New("completer: not a ticket: it is not complete, or not alone")
	}
	t := m.Ticket
	t.Due, t.Tries, t.Function, t.Tenant = time.UnixMilli(m.DueMS), m.Tries, m.Function, m.Tenant
	return t, nil
}
