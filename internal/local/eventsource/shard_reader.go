package eventsource

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// readLimit is the largest number of records that GetRecords returns.
const readLimit = 1000

// shardReader reads a shard in order. Iterators expire, so shardReader remembers the
// sequence number of the last record that it has read.
type shardReader struct {
	api     StreamAPI
	arn, id string
	latest  bool      // begin at the shard's end
	since   time.Time // if latest: the beginning of the minute in which the source started; see the method seen

	iterator string // "" if the next read must get an iterator
	last     string // sequence number of the last record read; "" before the first
	horizon  bool   // get the next iterator at the oldest record
	rewound  bool   // the reader has returned to the oldest record, and has read no new record since
}

// shardReader.read returns the next records, if there are any yet. It returns end =
// true if the shard is closed and has no more records. After an error the next call
// continues at the same place.
func (r *shardReader) read(ctx context.Context) (records []types.Record, end bool, err error) {
	// If the iterator has become invalid, try once more at once. After a second failure
	// the caller waits.
	for range 2 {
		records, end, err = r.readOnce(ctx)
		if err == nil || !r.prepare(err) {
			break
		}
	}
	return records, end, err
}

// shardReader.prepare changes r for the next try after an error. It reports whether to
// try again at once.
func (r *shardReader) prepare(err error) bool {
	// Get a new iterator: it may help, and does no harm.
	r.iterator = ""
	// If the reader began at the shard's end and has read no record yet, a new iterator
	// at the end would miss all records written until now. Get one at the oldest record
	// instead.
	r.horizon = r.horizon || r.latest && r.last == ""
	if _, expired := errors.AsType[*types.ExpiredIteratorException](err); expired {
		return true
	}
	if _, trimmed := errors.AsType[*types.TrimmedDataAccessException](err); trimmed {
		// DynamoDB Local also returns this error when a shard gets its first record.
		r.horizon = true
		return true
	}
	return false
}

func (r *shardReader) readOnce(ctx context.Context) ([]types.Record, bool, error) {
	if err := r.take(ctx); err != nil {
		return nil, false, err
	}
	out, err := r.api.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{
		ShardIterator: aws.String(r.iterator),
		Limit:         aws.Int32(readLimit),
	})
	if err != nil {
		return nil, false, err
	}
	r.iterator = aws.ToString(out.NextShardIterator)
	records := make([]types.Record, 0, len(out.Records))
	for _, record := range out.Records {
		if r.seen(record) {
			continue
		}
		records = append(records, record)
		r.rewound = false
		if record.Dynamodb != nil && record.Dynamodb.SequenceNumber != nil {
			r.last = *record.Dynamodb.SequenceNumber
		}
	}
	return records, r.iterator == "", nil
}

// shardReader.take gets an iterator unless r has one.
func (r *shardReader) take(ctx context.Context) error {
	if r.iterator != "" {
		return nil
	}
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: aws.String(r.arn), ShardId: aws.String(r.id)}
	switch {
	case r.horizon:
		in.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
	case r.last != "":
		in.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
		in.SequenceNumber = aws.String(r.last)
	case r.latest:
		in.ShardIteratorType = types.ShardIteratorTypeLatest
	default:
		in.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
	}
	out, err := r.api.GetShardIterator(ctx, in)
	if err != nil {
		return err
	}
	r.iterator = aws.ToString(out.ShardIterator)
	r.horizon, r.rewound = false, r.rewound || r.horizon
	return nil
}

// shardReader.seen reports whether to skip the record. It skips records only after a
// return to the oldest record. It skips the records that were read before. If none was
// read, and the reader began at the shard's end, it skips the records that are older
// than r.since.
func (r *shardReader) seen(record types.Record) bool {
	change := record.Dynamodb
	if !r.rewound || change == nil {
		return false
	}
	if r.last != "" {
		return change.SequenceNumber != nil && !later(*change.SequenceNumber, r.last)
	}
	return r.latest && change.ApproximateCreationDateTime != nil && change.ApproximateCreationDateTime.Before(r.since)
}
