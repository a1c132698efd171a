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

	unreadable func(context.Context, finding, time.Time) error // lists an unreadable item for people; nil: only the sweep lists such items

	warned sync.Once // for the warning about ReportBatchItemFailures
}

// timeForPart is how much time must be left to begin another part of the batch. With
// less time, deliveries could fail and count as tries although the sink is not at
// fault, and tickets could be left to the sweep.
const timeForPart = 2 * time.Second

// inParts calls work for one part of a batch after another, and stops after a part with
// a stream record that must be retried. It reports the first such record: Lambda then
// sends this record and all later ones again. If no time is left for a part, inParts
// reports the part's first record.
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

// reader.changes decodes the stream records of one part of a batch. It leaves out
// foreign and unreadable records, since they must not block later records. It logs each
// record that it leaves out, and calls Hooks.Skipped.
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

// mostListed is how many unreadable items of a batch are listed; the sweep lists the
// others. If a later version of Samekey wrote the items, all may be unreadable. Listing
// all of them would delay jobs.
const mostListed = 10

// reader.report returns the report for Lambda. It names the stream record with the
// index first, so that Lambda retries the batch from this record on. If nothing must be
// retried, first is beyond the batch, and the report names no record. A function can't
// find out whether its event source mapping reads the report. So, when a process first
// reports a record, it also logs a warning that the mapping needs
// ReportBatchItemFailures.
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
