package stream

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

type reader struct {
	log   *slog.Logger
	hooks *Hooks

	unreadable func(context.Context, finding, time.Time) error // lists an unreadable item for people; if nil, the sweep lists it

	warned sync.Once // for the warning about ReportBatchItemFailures
}

// timeForPart is how much time must be left to begin another part of the batch. If a part began
// with less time, untried jobs would count as tried, and tickets would be left to the sweep.
const timeForPart = 2 * time.Second

// inParts calls the function work for each part of a batch, one part after another, and reports the
// first stream record that must be retried. All later stream records are retried too. If there is
// no time for a part, that part and all later parts are retried.
func (r *reader) inParts(ctx context.Context, b batch, work func([]change) (first int)) (events.DynamoDBEventResponse, error) {
	first, listed := none, 0
	for from := 0; from < b.n && first == none; {
		if deadline, ok := ctx.Deadline(); ok && from > 0 && time.Until(deadline) < timeForPart {
			first = from
			break
		}
		to := b.part(from)
		changes, err := r.changes(ctx, b, from, to, &listed)
		if err != nil {
			return events.DynamoDBEventResponse{}, err
		}
		first, from = work(changes), to
	}
	return r.report(ctx, b, first)
}

// changes returns the changes of one part of a batch, decoded from its stream records. Foreign and
// unreadable records are skipped and reported: they must not block later records.
func (r *reader) changes(ctx context.Context, b batch, from, to int, listed *int) ([]change, error) {
	changes := make([]change, 0, to-from)
	for i := from; i < to; i++ {
		rec, err := b.at(i)
		if err != nil {
			return nil, err
		}
		c, why, err := readChange(&rec.Change, rec.EventName)
		if why == "" {
			c.at = i
			changes = append(changes, c)
			continue
		}
		level := slog.LevelWarn
		if why == SkipCompanion {
			level = slog.LevelDebug
		}
		name := recordName(rec.Change.Keys)
		r.log.Log(ctx, level, "stream record skipped", "reason", why, "record", name,
			"sequence", rec.Change.SequenceNumber, "error", err)
		if r.hooks.Skipped != nil {
			r.hooks.Skipped(ctx, Skipped{Reason: why, Record: name, Sequence: rec.Change.SequenceNumber, Err: err})
		}
		if why == SkipUnreadable && r.unreadable != nil && rec.EventName != string(events.DynamoDBOperationTypeRemove) && *listed < mostListed {
			*listed++
			if err := r.unreadable(ctx, finding{pk: item.PK(plain(rec.Change.Keys)), why: err, reason: state.ReasonUnreadable}, time.Now()); err != nil {
				r.log.WarnContext(ctx, "an unreadable item waits for the sweep to be listed", "record", name, "error", err)
			}
		}
	}
	return changes, nil
}

// mostListed is how many unreadable items of a batch are listed; the sweep lists the others. If a
// later version of Samekey wrote the items, all may be unreadable, and listing them must not delay
// jobs.
const mostListed = 10

// report returns the report for Lambda. The report names the record at the index first, from which
// on the batch is retried. If this index is beyond the batch, the report names no record. A
// function can't find out whether its event source mapping reads the report, so each process logs
// once that the mapping needs ReportBatchItemFailures.
func (r *reader) report(ctx context.Context, b batch, first int) (events.DynamoDBEventResponse, error) {
	re := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	if first < b.n {
		r.warned.Do(func() {
			r.log.WarnContext(ctx, "records have to come again, which takes ReportBatchItemFailures on the event source mapping: "+
				"without it Lambda goes on behind them, and they wait for the sweep")
		})
		rec, err := b.at(first)
		if err != nil {
			return re, err
		}
		re.BatchItemFailures = append(re.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: rec.Change.SequenceNumber})
	}
	return re, nil
}
