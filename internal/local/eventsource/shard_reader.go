package eventsource

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// readLimit is the most that GetRecords returns.
const readLimit = 1000

// shardReader reads one shard from beginning to end. It remembers where it is
// by the sequence number of the last record, since iterators don't last.
type shardReader struct {
	api     StreamAPI
	arn, id string
	latest  bool      // whether a shard without a last record begins at its end
	since   time.Time // when that was, in whole minutes: what was written in the same one may come too

	iterator string // empty: one has to be taken
	last     string // of the last record read; empty: none yet
	horizon  bool   // the next iterator is to be taken at the oldest record
	rewound  bool   // one was taken there, and nothing new has come since
}

// read returns the next records, or none if there aren't any yet. end says that
// the shard is closed and there will be no more. After an error the next call
// goes on at the same place.
func (r *shardReader) read(ctx context.Context) (records []types.Record, end bool, err error) {
	// A second try at once after an iterator has lost its validity; what fails
	// twice may wait.
	for range 2 {
		records, end, err = r.readOnce(ctx)
		if err == nil || !r.prepare(err) {
			break
		}
	}
	return records, end, err
}

// prepare makes ready for the next try after an error. It reports whether that
// may be made at once.
func (r *shardReader) prepare(err error) bool {
	// Whatever happened, a fresh iterator is right, and may be what it takes.
	r.iterator = ""
	// But an iterator at the end of a shard is gone for good: another would leave
	// out what was written in between.
	r.horizon = r.horizon || r.latest && r.last == ""
	if _, expired := errors.AsType[*types.ExpiredIteratorException](err); expired {
		return true
	}
	if _, trimmed := errors.AsType[*types.TrimmedDataAccessException](err); trimmed {
		// DynamoDB Local says so too when a shard gets its first record.
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

// take gets an iterator if there is none.
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

// seen reports whether the record was read before, or lies before the place
// where the reader began. Both come after going back to the oldest record, up to
// the first that is new.
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
