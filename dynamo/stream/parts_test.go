package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

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

// An event of 4 MB is read in parts of 1 MB: the jobs of a part are delivered before the next
// part is read, and none behind a part with a record that has to come again.
func TestBatchIsReadInParts(t *testing.T) {
	t.Parallel()
	const n, size, most = 20, 150_000, 1 << 20
	store, payload := eventOfParts(t, n, size)
	sink := &sinkOfParts{}
	drain := stream.NewDrain(store, sink, func(o *stream.DrainOptions) { o.Concurrency = 1 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // time for all
	defer cancel()
	invoke := func() (again string) {
		out, err := drain.Invoke(ctx, payload)
		var re events.DynamoDBEventResponse
		if err == nil {
			err = json.Unmarshal(out, &re)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range re.BatchItemFailures {
			again += f.ItemIdentifier
		}
		return again
	}
	sink.down = "O9"
	if again := invoke(); again != "9" || slices.Contains(sink.delivered, "O9") || !slices.Contains(sink.delivered, "O8") || slices.Contains(sink.delivered, "O19") {
		t.Errorf("%q has to come again, want 9; delivered: %v", again, sink.delivered)
	}
	sink.down = ""
	if again := invoke(); again != "" {
		t.Errorf("%q has to come again", again)
	}
	slices.Sort(sink.delivered)
	if len(sink.delivered) != n || len(slices.Compact(sink.delivered)) != n || len(sink.parts) < n*size/most || slices.Max(sink.parts) > most {
		t.Errorf("%d jobs of %d were delivered, in parts of %d bytes", len(sink.delivered), n, sink.parts)
	}
}

// A part for which there is no time isn't begun: it comes again, and nothing in it counts as
// tried.
func TestPartBeginsWithTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, payload := eventOfParts(t, 20, 150_000)
		sink := &sinkOfParts{takes: 5 * time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 6900*time.Millisecond)
		defer cancel()
		out, err := stream.NewDrain(store, sink, func(o *stream.DrainOptions) { o.Concurrency = 1 }).Invoke(ctx, payload)
		var re events.DynamoDBEventResponse
		if err := errors.Join(err, json.Unmarshal(out, &re)); err != nil {
			t.Fatal(err)
		}
		if len(re.BatchItemFailures) != 1 || re.BatchItemFailures[0].ItemIdentifier != strconv.Itoa(len(sink.delivered)) || len(sink.parts) != 1 {
			t.Errorf("%v comes again; delivered: %v", re.BatchItemFailures, sink.delivered)
		}
	})
}

// eventOfParts is an event of n records, each with a job of size bytes, and their store.
func eventOfParts(t *testing.T, n, size int) (*dynamo.Store, []byte) {
	t.Helper()
	const table = "parts"
	db := &fakedynamo.DB{}
	store, err := dynamo.New(db, table)
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, size)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte('a' + random.IntN(26))
	}
	engine := idem.New(store, idem.OneScope)
	if _, err := engine.Do(t.Context(), tabletest.Post("k", ""), func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Stage(idem.NewJob("mail", string(noise)))
			return idem.Response{Status: 201}, nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	var ev events.DynamoDBEvent
	first := db.Items(table)[0]
	for i := range n {
		it := maps.Clone(first)
		it["pk"], it["id"] = tabletest.Str("v1##"+strconv.Itoa(i)), tabletest.Str("O"+strconv.Itoa(i))
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: it}); err != nil {
			t.Fatal(err)
		}
		image := streamimage.Of(it)
		ev.Records = append(ev.Records, events.DynamoDBEventRecord{
			EventName: "INSERT", EventSource: "aws:dynamodb",
			Change: events.DynamoDBStreamRecord{SequenceNumber: strconv.Itoa(i), NewImage: image, Keys: map[string]events.DynamoDBAttributeValue{"pk": image["pk"]}},
		})
	}
	payload, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	return store, payload
}

// sinkOfParts notes the bytes of each call.
type sinkOfParts struct {
	down      string        // the operation whose jobs it refuses
	takes     time.Duration // each call
	delivered []string
	parts     []int
}

func (s *sinkOfParts) Deliver(_ context.Context, batch []jobs.Delivery) []error {
	if s.takes > 0 {
		time.Sleep(s.takes) //nolint:forbidigo // virtual
	}
	errs, size := make([]error, len(batch)), 0
	for i, d := range batch {
		if size += len(d.Args); d.Operation == s.down {
			errs[i] = errors.New("refused")
			continue
		}
		s.delivered = append(s.delivered, d.Operation)
	}
	s.parts = append(s.parts, size)
	return errs
}
