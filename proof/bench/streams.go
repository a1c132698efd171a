package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/jobs"
)

// Streaming is how fast a background function works on stream records, in batches of 100.
type Streaming struct {
	Does    string `json:"does"`
	On      string `json:"on"`
	Records int    `json:"records"`
	// PerSecond is the median of the batches.
	PerSecond float64 `json:"records_per_second"`
	// Floor is as many of the same updates by the SDK, as many at once, batch by batch in
	// turns; 0 where nothing is called.
	Floor float64 `json:"floor_per_second,omitempty"`
}

const (
	batchSize = 100
	atOnce    = 8 // updates, as a drain's default is
)

// measureStreams has drains and a completer work on n batches.
func measureStreams(ctx context.Context, db *dynamotest.DB, n int) ([]Streaming, error) {
	b, err := newBed(ctx, db)
	if err != nil {
		return nil, err
	}
	b.now = time.Now().Truncate(time.Millisecond)
	if err := fill(ctx, b, 2*n*batchSize, staging(1)(b)); err != nil {
		return nil, err
	}
	batches, err := b.batches(ctx)
	if err != nil {
		return nil, err
	}
	items, err := b.items(ctx)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]item)
	for _, it := range items {
		byKey[pkOf(it)] = it
	}
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	client := db.Client(dynamo.Tune)
	stub := stubAPI{items: byKey}
	onStub, err := interleaved(n, 1, nil, drainOf(ctx, stub, b.table, batches))
	if err != nil {
		return nil, err
	}

	// The second half's updates are recorded, then sent without the drain.
	rec := &recorder{API: stub}
	record := drainOf(ctx, rec, b.table, batches[n:])
	var updates [][]*dynamodb.UpdateItemInput
	for i := range n {
		rec.updates = nil
		if err := record(i); err != nil {
			return nil, err
		}
		updates = append(updates, rec.updates)
	}
	onLocal, err := interleaved(n, 1, nil, drainOf(ctx, client, b.table, batches), func(i int) error { return sendAll(ctx, client, updates[i]) })
	if err != nil {
		return nil, err
	}

	open, err := newBed(ctx, db)
	if err != nil {
		return nil, err
	}
	tickets, err := completing(ctx, open, n)
	if err != nil {
		return nil, err
	}
	perSecond := func(s Spread) float64 { return math.Round(batchSize / s.P50 * 1e9) }
	return []Streaming{
		{Does: "drain, a job in each record", On: "a stub", Records: n * batchSize, PerSecond: perSecond(onStub[0])},
		{Does: "drain, a job in each record", On: "DynamoDB Local", Records: n * batchSize, PerSecond: perSecond(onLocal[0]), Floor: perSecond(onLocal[1])},
		{Does: "completer, a ticket for each record", On: "a stub", Records: n * batchSize, PerSecond: perSecond(tickets)},
	}, nil
}

// batches are all records of the table as the stream's batches.
func (b *bed) batches(ctx context.Context) (all []events.DynamoDBEvent, _ error) {
	ev, err := b.event(ctx)
	if err != nil {
		return nil, err
	}
	for len(ev.Records) >= batchSize {
		all = append(all, events.DynamoDBEvent{Records: ev.Records[:batchSize]})
		ev.Records = ev.Records[batchSize:]
	}
	return all, nil
}

// drainOf hands batches to a drain over api. Each run has a drain of its own: a drain
// doesn't deliver a job twice.
func drainOf(ctx context.Context, api dynamo.API, table string, batches []events.DynamoDBEvent) op {
	return func(i int) error {
		s, err := dynamo.New(api, table)
		if err != nil {
			return err
		}
		delivered := make(chan struct{}, batchSize)
		drain := stream.NewDrain(s, jobs.SinkFunc(func(context.Context, jobs.Delivery) error {
			delivered <- struct{}{}
			return nil
		}), func(o *stream.DrainOptions) { o.Logger = quiet })
		re, err := drain.Handle(ctx, batches[i])
		if err == nil && (len(re.BatchItemFailures) > 0 || len(delivered) != batchSize) {
			err = fmt.Errorf("%d jobs of %d were delivered, %d failures", len(delivered), batchSize, len(re.BatchItemFailures))
		}
		return err
	}
}

func sendAll(ctx context.Context, client *dynamodb.Client, updates []*dynamodb.UpdateItemInput) error {
	if len(updates) != batchSize {
		return fmt.Errorf("a drain made %d updates of %d records", len(updates), batchSize)
	}
	failed := make(chan error, len(updates))
	slots := make(chan struct{}, atOnce)
	for _, in := range updates {
		slots <- struct{}{}
		go func() {
			_, err := client.UpdateItem(ctx, in)
			failed <- err
			<-slots
		}()
	}
	var all error
	for range updates {
		all = errors.Join(all, <-failed)
	}
	return all
}

// completing has a completer make tickets of n batches of held records.
func completing(ctx context.Context, b *bed, n int) (Spread, error) {
	if err := b.abandon(ctx, request(), resumable); err != nil {
		return Spread{}, err
	}
	all, err := b.items(ctx)
	if err != nil {
		return Spread{}, err
	}
	var ev events.DynamoDBEvent
	for i := range batchSize { // one held record under many keys
		it := maps.Clone(all[0])
		it["pk"] = str(samePK(i))
		ev.Records = append(ev.Records, streamed(it, i, b.now))
	}
	q := &tickets{}
	c := stream.NewCompleter(q, func(o *stream.CompleterOptions) { o.Now, o.Logger = func() time.Time { return b.now }, quiet })
	times, err := interleaved(n, 1, nil, func(int) error {
		_, err := c.Handle(ctx, ev)
		return err
	})
	switch {
	case err != nil:
		return Spread{}, err
	case q.n != n*batchSize:
		return Spread{}, fmt.Errorf("%d tickets of %d records", q.n, n*batchSize)
	}
	return times[0], nil
}
