package eventsource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// streamRun is a running [Stream]. Its method watch finds shards, its method read reads one
// shard, and its method deliver passes a batch to the function.
type streamRun struct {
	Stream
	filters  filters
	observer observer
	mapping  *Mapping
	tree     *shardTree
	shards   []types.Shard           // the latest listing; needs no lock, because one goroutine at a time uses it
	latest   map[string]*shardReader // for LATEST: readers of the shards that were open at the start
	ended    chan struct{}           // gets a value when a shard has been read to its end
}

// streamRun.locate lists the shards for the first time. For LATEST it also gets an
// iterator at the end of each open shard, so that no record written after Start is
// missed.
func (r *streamRun) locate(ctx context.Context) error {
	var err error
	if r.shards, err = r.describe(ctx); err != nil {
		return err
	}
	if r.StartingPosition != Latest {
		return nil
	}
	since := time.Now().Truncate(time.Minute) // because DynamoDB Local gives records' times in whole minutes
	for _, s := range r.shards {
		id := aws.ToString(s.ShardId)
		if s.SequenceNumberRange != nil && s.SequenceNumberRange.EndingSequenceNumber != nil {
			r.tree.pass(id) // closed: the shard gets no more records
			continue
		}
		reader := &shardReader{api: r.API, arn: r.ARN, id: id, latest: true, since: since}
		if err := reader.take(ctx); err != nil {
			return fmt.Errorf("iterator of shard %s: %w", id, err)
		}
		r.latest[id] = reader
	}
	return nil
}

// streamRun.watch starts to read each new shard as soon as its parent is done.
func (r *streamRun) watch(ctx context.Context) {
	tick := time.NewTicker(describeEvery)
	defer tick.Stop()
	for failures := 0; ; {
		for _, id := range r.tree.list(r.shards) {
			reader := r.latest[id]
			if reader == nil {
				// Read this shard from its beginning. This is right for LATEST too,
				// because the shard was opened after the source started.
				reader = &shardReader{api: r.API, arn: r.ARN, id: id}
			}
			r.mapping.wg.Go(func() { r.read(ctx, reader) })
		}
		select {
		case <-ctx.Done():
			return
		case <-r.ended:
		case <-tick.C:
		}
		shards, err := r.describe(ctx)
		if err == nil {
			r.shards, failures = shards, 0
			continue
		}
		r.observer.failed(ctx, err)
		failures++
		if !sleep(ctx, r.pollWait(failures)) {
			return
		}
	}
}

func (r *streamRun) read(ctx context.Context, reader *shardReader) {
	batch := streamBatch{size: r.BatchSize, window: r.MaximumBatchingWindow}
	failures := 0
	for end := false; !end; {
		if r.mapping.gate.wait(ctx) != nil {
			return
		}
		records, closed, err := reader.read(ctx)
		end = closed || r.gone(reader.id, err)
		failures++
		if err == nil || end {
			failures = 0
		} else {
			r.observer.failed(ctx, fmt.Errorf("eventsource: read shard %s: %w", reader.id, err))
		}
		r.add(&batch, records)
		for next := batch.next(end); len(next) > 0; next = batch.next(end) {
			if !r.deliver(ctx, reader.id, next) {
				return
			}
		}
		if len(records) == 0 && !end && !sleep(ctx, batch.wait(r.pollWait(failures))) {
			return
		}
	}
	r.tree.finish(reader.id)
	select {
	case r.ended <- struct{}{}:
	default: // watch hasn't received the previous signal yet
	}
}

// streamRun.gone reports whether a shard couldn't be read because it no longer exists.
// A shard disappears when its last record is a day old.
func (r *streamRun) gone(shard string, err error) bool {
	_, notFound := errors.AsType[*types.ResourceNotFoundException](err)
	return notFound && !r.tree.listed(shard)
}

// streamRun.add adds to the batch the records that pass the filters.
func (r *streamRun) add(batch *streamBatch, records []types.Record) {
	unwanted := 0
	for _, record := range records {
		made := newStreamRecord(r.ARN, record)
		if !r.wanted(made) {
			unwanted++
			continue
		}
		batch.add(made)
	}
	r.observer.filtered(unwanted)
}

func (r *streamRun) wanted(record streamRecord) bool {
	if len(r.filters) == 0 {
		return true
	}
	v, err := decodeJSON(record.json)
	return err == nil && r.filters.match(v)
}

// pollWait returns the pause before the next read. The parameter failures is how many reads
// in a row have failed.
func (r *streamRun) pollWait(failures int) time.Duration { return growing(r.PollEvery, failures, 50) }
