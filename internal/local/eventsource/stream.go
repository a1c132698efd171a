package eventsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// StreamAPI is the part of a client of DynamoDB Streams that a [Stream] uses.
type StreamAPI interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

var _ StreamAPI = (*dynamodbstreams.Client)(nil)

// Limits and defaults. They are Lambda's, except defaultPoll.
const (
	maxBatchSize    = 10_000
	maxRetries      = 10_000
	maxWindow       = 5 * time.Minute
	streamRetention = 24 * time.Hour
	defaultPoll     = 100 * time.Millisecond
)

// Starting positions of a [Stream].
const (
	TrimHorizon = "TRIM_HORIZON"
	Latest      = "LATEST"
)

// Stream is the event source mapping of a DynamoDB stream. The fields Function, API and
// ARN are required.
type Stream struct {
	// Function is invoked with batches. Invocations for the same shard never overlap.
	Function lambdarun.Invoker
	// FunctionARN is the function's ARN in a [Failure]. May be empty.
	FunctionARN string
	API         StreamAPI
	// ARN is the ARN of the stream, which ends with the stream's label.
	ARN string

	// StartingPosition is TrimHorizon (the default: the stream's oldest record) or Latest
	// (only records written after Start returned).
	StartingPosition string
	// BatchSize is the largest number of records of an invocation, 1 to 10000.
	// Default 100.
	BatchSize int
	// MaximumBatchingWindow is how long the source waits for a full batch after the batch's
	// first record: 0 (the default: no wait) to 5 min.
	MaximumBatchingWindow time.Duration
	// Filters are the patterns of the filter criteria. A record that matches no pattern is dropped.
	// If there are no filters, every record is delivered.
	Filters []string
	// ReportBatchItemFailures turns on Lambda's function response type of the same name.
	ReportBatchItemFailures bool
	// BisectBatchOnFunctionError splits a batch in two when the function fails.
	// Splitting uses up no retries.
	BisectBatchOnFunctionError bool
	// MaximumRetryAttempts is how often a batch is retried, 0 to 10000. If it is nil (the
	// default) or -1, a batch is retried until its records are older than MaximumRecordAge.
	MaximumRetryAttempts *int
	// MaximumRecordAge is the age beyond which a record is given up. 0 or a negative
	// value means 24 h, the time for which a stream keeps its records.
	MaximumRecordAge time.Duration
	// ParallelizationFactor must be 0 or 1, because only one invocation at a time gets
	// records of a shard.
	ParallelizationFactor int
	// OnFailure is the destination of batches that are given up. If OnFailure
	// returns an error, Hooks.Error gets this error and the batch is lost, as in Lambda.
	// May be nil.
	OnFailure func(context.Context, Failure) error

	// PollEvery is the pause after a read without records, and after a failed read. The
	// pause doubles with each further failed read in a row, up to fifty times
	// PollEvery. Default 100 ms.
	PollEvery time.Duration
	Hooks     Hooks
	// Logger gets a line for each failed invocation, for each batch that is given up and for
	// each error. If it is nil, nothing is logged.
	Logger *slog.Logger
}

// Start checks s's fields, looks up the stream and begins to read the stream. If a field is
// wrong or the stream can't be described, Start returns an error. Later failures of the
// endpoint don't end the source. The source ends when ctx does.
func (s Stream) Start(ctx context.Context) (*Mapping, error) {
	run, err := s.prepare()
	if err == nil {
		err = run.locate(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("eventsource: stream %s: %w", s.ARN, err)
	}
	ctx, run.mapping.cancel = context.WithCancel(ctx)
	run.mapping.wg.Go(func() { run.watch(ctx) })
	return run.mapping, nil
}

// Stream.prepare checks s's fields, sets defaults in them and returns a streamRun.
func (s Stream) prepare() (*streamRun, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	filters, err := parseFilters(s.Filters)
	if err != nil {
		return nil, err
	}
	if s.BatchSize == 0 {
		s.BatchSize = 100
	}
	if s.MaximumRecordAge <= 0 {
		s.MaximumRecordAge = streamRetention
	}
	if s.PollEvery == 0 {
		s.PollEvery = defaultPoll
	}
	return &streamRun{
		Stream:   s,
		filters:  filters,
		observer: newObserver(s.Hooks, s.Logger, s.ARN),
		mapping:  &Mapping{},
		tree:     newShardTree(),
		latest:   map[string]*shardReader{},
		ended:    make(chan struct{}, 1),
	}, nil
}

func (s Stream) check() error {
	switch {
	case s.Function == nil:
		return errors.New("no Function")
	case s.API == nil:
		return errors.New("no API")
	case s.ARN == "":
		return errors.New("no ARN")
	case !slices.Contains([]string{"", TrimHorizon, Latest}, s.StartingPosition):
		return fmt.Errorf("StartingPosition %q is neither %s nor %s", s.StartingPosition, TrimHorizon, Latest)
	case s.BatchSize < 0 || s.BatchSize > maxBatchSize:
		return fmt.Errorf("BatchSize %d is not within 1 and %d", s.BatchSize, maxBatchSize)
	case s.MaximumBatchingWindow < 0 || s.MaximumBatchingWindow > maxWindow:
		return fmt.Errorf("MaximumBatchingWindow %s is not within 0 and %s", s.MaximumBatchingWindow, maxWindow)
	case s.retries() < -1 || s.retries() > maxRetries:
		return fmt.Errorf("MaximumRetryAttempts %d is not within -1 and %d", s.retries(), maxRetries)
	case s.ParallelizationFactor < 0 || s.ParallelizationFactor > 1:
		return fmt.Errorf("ParallelizationFactor %d: only 1 is supported; the records of a shard come in order, one batch at a time", s.ParallelizationFactor)
	case s.PollEvery < 0:
		return fmt.Errorf("PollEvery %s is negative", s.PollEvery)
	}
	return nil
}

// Stream.retries returns how often a batch may be retried; -1 is no limit.
func (s Stream) retries() int {
	if s.MaximumRetryAttempts == nil {
		return -1
	}
	return *s.MaximumRetryAttempts
}
