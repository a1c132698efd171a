package eventsource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// attempt is the result of passing a batch to the function.
type attempt struct {
	failedFrom int    // index of the first record that is delivered again; all earlier records are done
	err        error  // the reason why the whole batch failed
	ran        bool   // the attempt counts: the function ran, or the request was too large
	unhandled  bool   // the function returned an error instead of an answer
	requestID  string // if known
}

// streamRun.deliver passes a batch to the function until each record is done or given
// up. It returns false if ctx ends first.
//
// A retry passes the same records. If the function reports failed records, the first
// failed record and all records after it become a new batch, whose retries are counted
// anew. Each half of a bisected batch also becomes a new batch. If the oldest records are
// given up because of their age, the rest remains the same batch: its records were in all
// counted attempts.
func (r *streamRun) deliver(ctx context.Context, shard string, records []streamRecord) bool {
	var last attempt // the latest attempt that counts (see attempt.ran)
	invoked := 0     // how many attempts with this batch count
	failures := 0
	for len(records) > 0 {
		if n := r.expired(records); n > 0 {
			r.discard(ctx, shard, records[:n], RecordAgeExceeded, invoked, last)
			records = records[n:]
			continue
		}
		if r.mapping.gate.wait(ctx) != nil {
			return false
		}
		a := r.invoke(ctx, records)
		if ctx.Err() != nil {
			return false
		}
		r.observer.invoked(ctx, Invocation{Records: len(records), Failed: len(records) - a.failedFrom, Err: a.err})
		if a.failedFrom > 0 {
			records = records[a.failedFrom:]
			last, invoked, failures = attempt{}, 0, 0
			continue
		}
		if a.ran {
			last = a
			invoked++
			if half := len(records) / 2; r.BisectBatchOnFunctionError && half > 0 {
				return r.deliver(ctx, shard, records[:half]) && r.deliver(ctx, shard, records[half:])
			}
			if limit := r.retries(); limit >= 0 && invoked > limit {
				r.discard(ctx, shard, records, RetryAttemptsExhausted, invoked, last)
				return ctx.Err() == nil
			}
		}
		failures++
		if !sleep(ctx, growing(r.PollEvery, failures, 10)) {
			return false
		}
	}
	return true
}

func (r *streamRun) invoke(ctx context.Context, records []streamRecord) attempt {
	response, err := r.Function.Invoke(ctx, streamEvent(records))
	if fe, ok := errors.AsType[*lambdarun.FunctionError](err); ok {
		return attempt{err: err, ran: true, unhandled: true, requestID: fe.RequestID}
	}
	if err != nil {
		// A request that is too large will fail again, so the attempt counts. Other
		// errors, such as throttling, are temporary.
		return attempt{err: err, ran: errors.Is(err, lambdarun.ErrRequestTooLarge)}
	}
	ids := make([]string, 0, len(records))
	for _, record := range records {
		ids = append(ids, record.sequence)
	}
	failed, err := failedItems(response, ids)
	switch {
	case !r.ReportBatchItemFailures:
		r.observer.ignored(ctx, len(failed))
	case err != nil:
		return attempt{err: err, ran: true}
	case len(failed) > 0:
		return attempt{failedFrom: failed[0], ran: true}
	}
	return attempt{failedFrom: len(records), ran: true}
}

func streamEvent(records []streamRecord) []byte {
	list := make([][]byte, 0, len(records))
	for _, record := range records {
		list = append(list, record.json)
	}
	return event(list)
}

// streamRun.expired returns how many records at the beginning of the batch are too old.
func (r *streamRun) expired(records []streamRecord) int {
	for i, record := range records {
		if record.created.IsZero() || time.Since(record.created) <= r.MaximumRecordAge {
			return i
		}
	}
	return len(records)
}

// streamRun.discard gives up records: it reports them to Hooks.Discarded and to
// OnFailure.
func (r *streamRun) discard(ctx context.Context, shard string, records []streamRecord, condition string, invoked int, last attempt) {
	f := newFailure(r.Stream, shard, records, condition, invoked, last)
	r.observer.discarded(ctx, f)
	if r.OnFailure == nil {
		return
	}
	if err := r.OnFailure(ctx, f); err != nil {
		r.observer.failed(ctx, fmt.Errorf("eventsource: on-failure destination: %w", err))
	}
}
