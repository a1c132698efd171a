package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// change is a stream record about a record of this package.
type change struct {
	at       int // its place in the batch
	time     time.Time
	old, new *store.Record // nil: the item didn't exist before, or doesn't after
}

// replaced reports whether old is gone: deleted, or replaced by a new claim.
func (c *change) replaced() bool { return c.old != nil && (c.new == nil || c.new.ID != c.old.ID) }

// before returns the same operation's record before the change; nil if the record is
// new.
func (c *change) before() *store.Record {
	if c.replaced() {
		return nil
	}
	return c.old
}

// leaseEnded reports whether people have ended the lease of an attempt: an attempt that gives its
// record back writes no decision.
func (c *change) leaseEnded() bool {
	before := c.before()
	if before == nil || before.Lease.IsZero() || !c.new.Lease.IsZero() || len(c.new.Settled) == 0 {
		return false
	}
	last := c.new.Settled[len(c.new.Settled)-1]
	return !slices.ContainsFunc(before.Settled, last.Equal)
}

// reader reads stream records, and reports skipped records.
type reader struct {
	log   *slog.Logger
	hooks *Hooks

	unreadable func(context.Context, finding, time.Time) error // lists an item for people; nil: the sweep does

	warned sync.Once // the warning about ReportBatchItemFailures
}

// batch is a batch of the stream.
type batch struct {
	n    int
	at   func(i int) (*events.DynamoDBEventRecord, error) // the record i
	size func(i int) int                                  // its bytes, as far as its values are not in memory
}

func batchOf(ev events.DynamoDBEvent) batch {
	return batch{
		n: len(ev.Records), at: func(i int) (*events.DynamoDBEventRecord, error) { return &ev.Records[i], nil }, size: func(int) int { return 0 },
	}
}

// mostAtOnce is how many bytes of a batch are read at once: as values, the images of an
// event of 6 MB take 100 MB.
const mostAtOnce = 1 << 20

// part returns the end of the part of a batch that begins with a record.
func (b batch) part(from int) (to int) {
	size := b.size(from)
	for to = from + 1; to < b.n; to++ {
		if size += b.size(to); size > mostAtOnce {
			break
		}
	}
	return to
}

// timeForPart is what a part needs at least. With less, jobs would count as tried that
// nobody has tried, and tickets would be left to the sweep.
const timeForPart = 2 * time.Second

// inParts has work done on one part of a batch after the other, and reports the first
// record that has to come again: the parts behind it come with it. So do those for which
// there is no time.
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

// changes reads the records of a part of a batch. Foreign and unreadable records are skipped
// and reported: they must not block later records.
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

// mostListed is how many unreadable items of a batch are listed at once. If a later
// version of Samekey writes them all, jobs don't wait for the list; the sweep lists the
// others.
const mostListed = 10

func readChange(rec *events.DynamoDBStreamRecord, event string) (c change, why Skip, err error) {
	c.time = rec.ApproximateCreationDateTime.Time
	removed := event == string(events.DynamoDBOperationTypeRemove)
	if !removed {
		if c.new, why, err = readImage(rec.NewImage); why != "" {
			return c, why, err
		}
		// If the old image is unreadable, everything in the new image counts as new:
		// delivered once more rather than never.
		c.old, _, _ = readImage(rec.OldImage)
		return c, "", nil
	}
	c.old, why, err = readImage(rec.OldImage)
	return c, why, err
}

// readImage reads an item by the same rules as the store, without bodies. why is empty
// for a record of this package.
func readImage(image map[string]events.DynamoDBAttributeValue) (rec *store.Record, why Skip, err error) {
	if len(image) == 0 {
		return nil, SkipNoImage, nil
	}
	return readItem(plain(image))
}

func readItem(it item.Map) (rec *store.Record, why Skip, err error) {
	_, keyed := it[item.AttrPK].(*types.AttributeValueMemberS)
	_, versioned := it[item.AttrVersion]
	_, stated := it[item.AttrState]
	switch {
	case !keyed || !versioned:
		return nil, SkipForeign, nil
	case !stated:
		return nil, SkipCompanion, nil
	}
	if rec, err = item.Glance(it); err != nil {
		return nil, SkipUnreadable, err
	}
	return rec, "", nil
}

func recordName(it map[string]events.DynamoDBAttributeValue) string {
	pk := it[item.AttrPK]
	if pk.DataType() != events.DataTypeString || pk.IsNull() {
		return ""
	}
	return redact.Record(pk.String())
}

// plain converts an item of the events package to the SDK's type.
func plain(it map[string]events.DynamoDBAttributeValue) item.Map {
	out := make(item.Map, len(it))
	for name, v := range it {
		out[name] = plainValue(v)
	}
	return out
}

func plainValue(v events.DynamoDBAttributeValue) item.Value {
	if v.IsNull() {
		return &types.AttributeValueMemberNULL{Value: true}
	}
	switch v.DataType() {
	case events.DataTypeString:
		return &types.AttributeValueMemberS{Value: v.String()}
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}
	case events.DataTypeBinary:
		return &types.AttributeValueMemberB{Value: v.Binary()}
	case events.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}
	case events.DataTypeMap:
		return &types.AttributeValueMemberM{Value: plain(v.Map())}
	case events.DataTypeList:
		list := make([]item.Value, len(v.List()))
		for i, el := range v.List() {
			list[i] = plainValue(el)
		}
		return &types.AttributeValueMemberL{Value: list}
	case events.DataTypeStringSet:
		return &types.AttributeValueMemberSS{Value: v.StringSet()}
	case events.DataTypeNumberSet:
		return &types.AttributeValueMemberNS{Value: v.NumberSet()}
	default: // the only type that is left
		return &types.AttributeValueMemberBS{Value: v.BinarySet()}
	}
}

// invokeStream calls handle with the batch of an event, whose records are decoded as they are
// read, and encodes the report.
func invokeStream(ctx context.Context, payload []byte, handle func(context.Context, batch) (events.DynamoDBEventResponse, error)) ([]byte, error) {
	var ev struct {
		Records []json.RawMessage `json:"Records"`
	}
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, fmt.Errorf("dynamo: not the event of a DynamoDB stream: %w", err)
	}
	if len(ev.Records) == 0 {
		return nil, errors.New("dynamo: not the event of a DynamoDB stream: it has no records")
	}
	at := func(i int) (*events.DynamoDBEventRecord, error) {
		var rec events.DynamoDBEventRecord
		if err := json.Unmarshal(ev.Records[i], &rec); err != nil {
			return nil, fmt.Errorf("dynamo: not the event of a DynamoDB stream: %w", err)
		}
		// A record of another source has no images: skipping it would lose it.
		if rec.EventSource != "aws:dynamodb" {
			return nil, fmt.Errorf("dynamo: not the event of a DynamoDB stream: a record is of %.40q", rec.EventSource)
		}
		return &rec, nil
	}
	re, err := handle(ctx, batch{n: len(ev.Records), at: at, size: func(i int) int { return len(ev.Records[i]) }})
	if err != nil {
		return nil, err
	}
	return json.Marshal(re)
}

// report returns the report that names the record to begin again with; no record if
// first is beyond the batch. A function can't find out whether its source reads the
// report, so the first such report of a process logs what the source needs.
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
