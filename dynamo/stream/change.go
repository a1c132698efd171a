package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
)

// change is a record of the table's stream, as far as it is about one of ours.
type change struct {
	at       int // its place in the batch
	time     time.Time
	old, new *store.Record // nil: there was, or is, none
}

// replaced reports whether old is gone: deleted, or claimed over.
func (c *change) replaced() bool { return c.old != nil && (c.new == nil || c.new.ID != c.old.ID) }

// before is the same operation's record before the change; nil if it is new.
func (c *change) before() *store.Record {
	if c.old == nil || c.replaced() {
		return nil
	}
	return c.old
}

// reader reads stream records, and tells of those it passes over.
type reader struct {
	log   *slog.Logger
	hooks *Hooks

	warned sync.Once // of what a report takes
}

// changes reads the records of a batch. What isn't ours or can't be read is
// skipped and told: it must not stand in the way of what comes after it.
func (r *reader) changes(ctx context.Context, recs []events.DynamoDBEventRecord) []change {
	changes := make([]change, 0, len(recs))
	for i := range recs {
		c, why, err := readChange(&recs[i].Change, recs[i].EventName)
		if why == "" {
			c.at = i
			changes = append(changes, c)
			continue
		}
		level := slog.LevelWarn
		if why == SkipCompanion {
			level = slog.LevelDebug
		}
		name := recordName(recs[i].Change.Keys)
		r.log.Log(ctx, level, "stream record skipped", "why", why, "record", name,
			"sequence", recs[i].Change.SequenceNumber, "error", err)
		if r.hooks.Skipped != nil {
			r.hooks.Skipped(ctx, Skipped{Why: why, Record: name, Sequence: recs[i].Change.SequenceNumber, Err: err})
		}
	}
	return changes
}

func readChange(rec *events.DynamoDBStreamRecord, event string) (c change, why Skip, err error) {
	c.time = rec.ApproximateCreationDateTime.Time
	removed := event == string(events.DynamoDBOperationTypeRemove)
	if !removed {
		if c.new, why, err = readImage(rec.NewImage); why != "" {
			return c, why, err
		}
		// What can't be read of the past makes everything in the new image new:
		// delivered once more rather than never.
		c.old, _, _ = readImage(rec.OldImage)
		return c, "", nil
	}
	c.old, why, err = readImage(rec.OldImage)
	return c, why, err
}

// readImage reads an item by the same rules as the store. why is empty for a
// record of ours.
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
	if rec, err = item.Decode(it); err != nil {
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

// plain is an item of the events package as one of the SDK.
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
	case events.DataTypeBinarySet:
		return &types.AttributeValueMemberBS{Value: v.BinarySet()}
	default:
		return &types.AttributeValueMemberNULL{Value: true}
	}
}

// invokeStream decodes an event, has it handled, and encodes the report.
func invokeStream(ctx context.Context, payload []byte, handle func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error)) ([]byte, error) {
	var ev events.DynamoDBEvent
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, fmt.Errorf("dynamo: not the event of a DynamoDB stream: %w", err)
	}
	if len(ev.Records) == 0 {
		return nil, errors.New("dynamo: not the event of a DynamoDB stream: it has no records")
	}
	for _, r := range ev.Records {
		// Another source's records have no images: to skip them would lose them.
		if r.EventSource != "aws:dynamodb" {
			return nil, fmt.Errorf("dynamo: not the event of a DynamoDB stream: a record is of %.40q", r.EventSource)
		}
	}
	re, err := handle(ctx, ev)
	if err != nil {
		return nil, err
	}
	return json.Marshal(re)
}

// report tells the source at which record to begin again; at none, if first is
// not one of them. Nothing tells a function whether its source listens, so the
// first such report of a process says in the log what it takes.
func (r *reader) report(ctx context.Context, ev events.DynamoDBEvent, first int) events.DynamoDBEventResponse {
	re := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	if first < len(ev.Records) {
		r.warned.Do(func() {
			r.log.WarnContext(ctx, "records have to come again, which takes ReportBatchItemFailures on the event source mapping: "+
				"without it Lambda goes on behind them, and they wait for the sweep")
		})
		re.BatchItemFailures = append(re.BatchItemFailures,
			events.DynamoDBBatchItemFailure{ItemIdentifier: ev.Records[first].Change.SequenceNumber})
	}
	return re
}
