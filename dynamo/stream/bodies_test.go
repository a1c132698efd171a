package stream_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// A request and an answer of 4 MB of one letter are items of some KB. Whoever sends a
// hundred of them doesn't take the worker's memory: its readers inflate no body.
//
//nolint:paralleltest // it counts the memory of the process
func TestReadersInflateNoBody(t *testing.T) {
	const table, each, largest = "bodies", 50, 64 << 20
	large := slices.Repeat([]byte("a"), 4<<20)
	db := &fakedynamo.DB{}
	store, err := dynamo.New(db, table, func(o *dynamo.Options) { o.Inline = 16 << 10 })
	if err != nil {
		t.Fatal(err)
	}
	engine := idem.New(store, idem.OneScope, func(o *idem.Options) {
		o.Function, o.Resumable, o.CallerFromOp, o.MaxBody, o.MaxInput = "f", true, true, len(large), len(large)
	})
	down := errors.New("down")
	for key, want := range map[string]error{"open": down, "done": nil} {
		req := tabletest.Post(key, "")
		if req.Body = large; want == nil {
			req.Body = nil
		}
		if _, err := engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Stage(idem.NewJob("mail", 1))
				return 1, nil
			})
			return idem.Response{Status: 201, Body: large}, errors.Join(err, want)
		}); !errors.Is(err, want) {
			t.Fatal(err)
		}
	}
	if n := len(db.Items(table)); n != 2 {
		t.Fatalf("%d items: a body lies beside its record", n)
	}
	var ev events.DynamoDBEvent
	for i, it := range slices.Repeat(db.Items(table), each) {
		it = maps.Clone(it)
		it["pk"] = tabletest.Str("v1##" + strconv.Itoa(i))
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: it}); err != nil {
			t.Fatal(err)
		}
		image := streamimage.Of(it)
		ev.Records = append(ev.Records, events.DynamoDBEventRecord{
			EventName: "INSERT", EventSource: "aws:dynamodb",
			Change: events.DynamoDBStreamRecord{SequenceNumber: strconv.Itoa(i), NewImage: image, Keys: map[string]events.DynamoDBAttributeValue{"pk": image["pk"]}},
		})
	}
	var delivered, ticketed int
	sink := jobs.SinkFunc(func(context.Context, jobs.Delivery) error { delivered++; return nil })
	fast := func(o *stream.SweepOptions) { o.PagesPerSecond = 1e6 }
	for name, read := range map[string]func() error{
		"completer": func() error {
			_, err := stream.NewCompleter(putter(func(all []jobs.Ticket) { ticketed += len(all) })).Handle(t.Context(), ev)
			return err
		},
		"list":  func() error { _, err := stream.NewSweep(db, store, fast).List(t.Context()); return err },
		"sweep": func() error { _, err := stream.NewSweep(db, store, fast).Run(t.Context()); return err },
		"drain": func() error {
			_, err := stream.NewDrain(store, sink, func(o *stream.DrainOptions) { o.Concurrency = 1 }).Handle(t.Context(), ev)
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > largest {
			t.Errorf("%s: %d MB were allocated for bodies of %d MB", name, (after.TotalAlloc-before.TotalAlloc)>>20, each*len(large)>>20)
		}
	}
	if delivered != 2*each || ticketed != each {
		t.Errorf("%d jobs were delivered, %d tickets put", delivered, ticketed)
	}
}

// putter is a queue that takes every ticket.
type putter func([]jobs.Ticket)

func (p putter) Put(_ context.Context, all []jobs.Ticket) []error { p(all); return nil }
