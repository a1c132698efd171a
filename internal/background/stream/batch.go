package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
)

type batch struct {
	n    int
	at   func(i int) (*events.DynamoDBEventRecord, error) // the record i
	size func(i int) int                                  // the size of record i in bytes; 0 if it is decoded already
}

func batchOf(ev events.DynamoDBEvent) batch {
	return batch{
		n: len(ev.Records), at: func(i int) (*events.DynamoDBEventRecord, error) { return &ev.Records[i], nil }, size: func(int) int { return 0 },
	}
}

// mostAtOnce is the maximum number of bytes that are decoded together, because the
// images of a whole event of 6 MB would take 100 MB of memory. A larger record is
// decoded alone.
const mostAtOnce = 1 << 20

// batch.part returns the index after the last record of the part that begins at from.
// The records of a part are decoded together.
func (b batch) part(from int) (to int) {
	size := b.size(from)
	for to = from + 1; to < b.n; to++ {
		if size += b.size(to); size > mostAtOnce {
			break
		}
	}
	return to
}

// invokeStream calls handle with the batch of an event, and encodes the report that handle returns.
// A record is decoded only when handle reads it.
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
		// Without this check, a record of another source would be skipped and lost,
		// because such a record has no images.
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
