package eventsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// QueueAPI is the part of a client of SQS that a [Queue] uses.
type QueueAPI interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

var _ QueueAPI = (*sqs.Client)(nil)

const (
	receiveLimit   = 10 // the largest number of messages that ReceiveMessage returns, and that a batch call accepts
	maxConcurrency = 1000
)

// Queue is the event source mapping of an SQS queue. The fields Function, API, URL and
// ARN are required.
type Queue struct {
	// Function is invoked with batches.
	Function lambdarun.Invoker
	// FunctionName identifies the function in trace headers. A message's trace header
	// counts how often the function was invoked in the chain that led to the message. If
	// the count is 16 or more, the message is part of a loop, and the function doesn't get
	// it. An empty FunctionName turns this check off.
	FunctionName string
	// Dropped is called with the body of a message that is part of a loop, before the
	// message is deleted. It may send the body to the dead-letter queue. Dropped may be nil.
	Dropped func(ctx context.Context, body string) error
	API     QueueAPI
	URL     string
	// ARN is the queue's ARN. The function gets it in each record of its event. A queue whose
	// ARN ends in ".fifo" is a FIFO queue.
	ARN string

	// BatchSize is the largest number of messages of an invocation, 1 to 10000. A size
	// above 10 needs a MaximumBatchingWindow of a second or more, and a standard queue.
	// Default 10.
	BatchSize int
	// MaximumBatchingWindow is how long, after the first message of a batch, the source
	// waits for the batch to fill: at most 5 min. Default 0: no wait. For a FIFO queue
	// it must be 0.
	MaximumBatchingWindow time.Duration
	// Filters are the patterns of the filter criteria. A message that matches no pattern is
	// deleted. If there are no filters, every message is delivered.
	Filters []string
	// ReportBatchItemFailures turns on Lambda's function response type of the same name.
	ReportBatchItemFailures bool
	// MaximumConcurrency is the largest number of invocations at once, 1 to 1000.
	// Default 5, Lambda's initial number of pollers.
	MaximumConcurrency int

	// PollEvery is the pause after a read without messages, and after a failed read. If
	// several reads in a row fail, the pause doubles after each, up to fifty times
	// PollEvery. The read itself also waits, up to a second, for a message (long poll).
	// Default 100 ms.
	PollEvery time.Duration
	Hooks     Hooks
	// Logger gets a line for each failed invocation and each error. If it is nil, nothing
	// is logged.
	Logger *slog.Logger
}

// Start checks q's fields and begins to read the queue. The queue need not exist yet. The
// source ends when ctx does.
func (q Queue) Start(ctx context.Context) (*Mapping, error) {
	run, err := q.prepare()
	if err != nil {
		return nil, fmt.Errorf("eventsource: queue %s: %w", q.ARN, err)
	}
	ctx, run.mapping.cancel = context.WithCancel(ctx)
	run.mapping.wg.Go(func() { run.read(ctx) })
	return run.mapping, nil
}

// Queue.prepare sets defaults in q's fields, checks the fields and returns a queueRun.
func (q Queue) prepare() (*queueRun, error) {
	if q.BatchSize == 0 {
		q.BatchSize = 10
	}
	if q.MaximumConcurrency == 0 {
		q.MaximumConcurrency = 5
	}
	if q.PollEvery == 0 {
		q.PollEvery = defaultPoll
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	filters, err := parseFilters(q.Filters)
	if err != nil {
		return nil, err
	}
	return &queueRun{
		Queue:    q,
		filters:  filters,
		observer: newObserver(q.Hooks, q.Logger, q.ARN),
		mapping:  &Mapping{},
		slots:    make(chan struct{}, q.MaximumConcurrency),
	}, nil
}

func (q Queue) check() error {
	fifo := strings.HasSuffix(q.ARN, ".fifo")
	switch {
	case q.Function == nil:
		return errors.New("no Function")
	case q.API == nil:
		return errors.New("no API")
	case q.URL == "":
		return errors.New("no URL")
	case q.ARN == "":
		return errors.New("no ARN")
	case q.BatchSize < 0 || q.BatchSize > maxBatchSize:
		return fmt.Errorf("BatchSize %d is not within 1 and %d", q.BatchSize, maxBatchSize)
	case q.BatchSize > receiveLimit && fifo:
		return fmt.Errorf("BatchSize %d: a FIFO queue has at most %d", q.BatchSize, receiveLimit)
	case q.BatchSize > receiveLimit && q.MaximumBatchingWindow < time.Second:
		return fmt.Errorf("BatchSize %d: above %d it takes a MaximumBatchingWindow of a second or more", q.BatchSize, receiveLimit)
	case q.MaximumBatchingWindow < 0 || q.MaximumBatchingWindow > maxWindow:
		return fmt.Errorf("MaximumBatchingWindow %s is not within 0 and %s", q.MaximumBatchingWindow, maxWindow)
	case q.MaximumBatchingWindow > 0 && fifo:
		return errors.New("MaximumBatchingWindow: a FIFO queue has none")
	case q.MaximumConcurrency < 0 || q.MaximumConcurrency > maxConcurrency:
		return fmt.Errorf("MaximumConcurrency %d is not within 1 and %d", q.MaximumConcurrency, maxConcurrency)
	case q.PollEvery < 0:
		return fmt.Errorf("PollEvery %s is negative", q.PollEvery)
	}
	return nil
}
