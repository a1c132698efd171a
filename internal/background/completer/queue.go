package completer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/idem/jobs"
)

// QueueAPI is the part of *sqs.Client that a [Queue] uses.
type QueueAPI interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var _ QueueAPI = (*sqs.Client)(nil)

// Queue keeps tickets in an SQS queue. A new ticket is hidden until it is due, but for
// at most 15 minutes, which is the limit of SQS. If a ticket arrives too early,
// [Handler] hides the ticket again. The queue must be a standard queue, since FIFO
// queues don't delay single messages.
//
// If [QueueOptions.Schedule] is set and a job is due in more than 15 minutes, the job's
// ticket becomes a schedule of EventBridge Scheduler. When the job is due, the schedule
// sends the ticket once and deletes itself. The schedule's name is made of the
// operation and the due time. So a ticket that is put again doesn't make a second
// schedule. If the schedule can't be made, the ticket goes to the queue.
type Queue struct {
	api QueueAPI
	url string
	opt QueueOptions
	now func() time.Time

	arn atomic.Pointer[string] // the queue's ARN; nil until it is needed

	mu    sync.Mutex
	asked time.Time // when the queue was last asked how many messages wait
	full  bool
}

// QueueOptions are the options of [NewQueue].
type QueueOptions struct {
	// Schedule is the method CreateSchedule of a *scheduler.Client. If Schedule is nil,
	// tickets of jobs that are due in more than 15 minutes wait in the queue as
	// messages in flight. If the job is due after the queue's retention, SQS deletes
	// the ticket, and a sweep does the ticket's work.
	Schedule func(context.Context, *scheduler.CreateScheduleInput, ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error)
	// Role is the ARN of the role by which a schedule sends to the queue. If Schedule
	// is set, Role is required.
	Role string
	// Logger gets a warning for each schedule that isn't made. Default: slog.Default().
	Logger *slog.Logger
}

// NewQueue returns the queue at url. It panics if api is nil, if url is empty or names a FIFO
// queue, or if Schedule is set without a Role.
func NewQueue(api QueueAPI, url string, optFns ...func(*QueueOptions)) *Queue {
	opt := QueueOptions{Logger: slog.Default()}
	for _, fn := range optFns {
		fn(&opt)
	}
	if opt.Schedule != nil && opt.Role == "" {
		panic("completer: NewQueue: Schedule without a Role") //nolint:forbidigo // a mistake in the program
	}
	if api == nil || url == "" || strings.HasSuffix(url, ".fifo") {
		panic("completer: NewQueue: want a client and the URL of a standard queue") //nolint:forbidigo // a mistake in the program
	}
	return &Queue{api: api, url: url, opt: opt, now: time.Now}
}

const (
	maxDelay   = 15 * time.Minute
	maxEntries = 10

	// maxHidden is the longest time for which a message is hidden. SQS allows 12 hours
	// from the receive. maxHidden is shorter, because Lambda may wait after the receive
	// before it calls the handler.
	maxHidden = 11*time.Hour + 30*time.Minute
	// maxWaiting is half of the messages in flight that SQS allows in a standard queue.
	maxWaiting = 60_000
	askEvery   = time.Minute
)

type message struct {
	PK        string `json:"pk"`
	Operation string `json:"id"`
	Jobs      bool   `json:"jobs,omitempty"`
	DueMS     int64  `json:"due_ms"`
}

func body(t jobs.Ticket) string {
	b, err := json.Marshal(message{t.PK, t.Operation, t.Jobs, t.Due.UnixMilli()})
	if err != nil {
		panic(err) //nolint:forbidigo // can't happen: a ticket has only strings and numbers
	}
	return string(b)
}

// Put implements stream.TicketQueue. It sends up to ten tickets in each call to SQS. If
// a call fails as a whole, Put doesn't try the remaining tickets ([jobs.ErrHeldBack]),
// because the queue must be at fault: tickets are small and alike.
func (q *Queue) Put(ctx context.Context, tickets []jobs.Ticket) []error {
	scheduled := q.schedule(ctx, tickets)
	left := make([]jobs.Ticket, 0, len(tickets))
	for i, t := range tickets {
		if !scheduled[i] {
			left = append(left, t)
		}
	}
	sent := q.sendAll(ctx, left)
	errs := make([]error, len(tickets))
	for i := range tickets {
		if !scheduled[i] {
			errs[i], sent = sent[0], sent[1:]
		}
	}
	return errs
}

func (q *Queue) sendAll(ctx context.Context, tickets []jobs.Ticket) []error {
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

// Queue.send returns an error or nil for each ticket. The second result is the error of
// the call.
func (q *Queue) send(ctx context.Context, tickets []jobs.Ticket) ([]error, error) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: make([]types.SendMessageBatchRequestEntry, len(tickets))}
	errs := make([]error, len(tickets))
	for i, t := range tickets {
		in.Entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(body(t)), DelaySeconds: q.delay(t.Due),
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

// Queue.delay returns for how many seconds to hide a new message.
func (q *Queue) delay(due time.Time) int32 { return seconds(min(due.Sub(q.now()), maxDelay)) }

// seconds rounds d up to whole seconds, since a ticket that arrives too early must wait
// again.
func seconds(d time.Duration) int32 { return int32((max(d, 0) + time.Second - 1) / time.Second) }

func (q *Queue) hide(ctx context.Context, receipt string, d time.Duration) error {
	_, err := q.api.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &q.url, ReceiptHandle: &receipt, VisibilityTimeout: seconds(d),
	})
	return err
}

// Queue.crowded reports whether too many messages wait. If the queue doesn't answer,
// crowded uses the queue's previous answer.
func (q *Queue) crowded(ctx context.Context) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.now(); now.Sub(q.asked) >= askEvery {
		q.asked = now
		const hidden = types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
		out, err := q.api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{hidden}})
		if err == nil {
			n, err := strconv.Atoi(out.Attributes[string(hidden)])
			q.full = err == nil && n > maxWaiting
		}
	}
	return q.full
}

// parse reads a message of a Queue. It ignores fields of later versions.
func parse(body string) (jobs.Ticket, error) {
	var m message
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return jobs.Ticket{}, fmt.Errorf("completer: not a ticket: %w", err)
	}
	if m.PK == "" || m.Operation == "" {
		return jobs.Ticket{}, errors.New("completer: not a ticket: it names no operation")
	}
	return jobs.Ticket{PK: m.PK, Operation: m.Operation, Jobs: m.Jobs, Due: time.UnixMilli(m.DueMS)}, nil
}
