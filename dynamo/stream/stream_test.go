package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/worker"
)

// image is an item of a stream record: m in DynamoDB's JSON.
func image(t testing.TB, m map[string]any) map[string]events.DynamoDBAttributeValue {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var it map[string]events.DynamoDBAttributeValue
	if err := json.Unmarshal(b, &it); err != nil {
		t.Fatal(err)
	}
	return it
}

func text(v string) map[string]any { return map[string]any{"S": v} }

func digits(v int64) map[string]any { return map[string]any{"N": fmt.Sprint(v)} }

// open is the image of an operation that was claimed a minute ago, and must be
// brought to an end.
func open(change map[string]any) map[string]any {
	ago := time.Now().Add(-time.Minute).UnixMilli()
	m := map[string]any{
		"pk": text("v1##open"), "v": digits(1), "st": text("open"), "owner": text("o"), "ver": digits(1), "lease_ms": digits(ago + 30_000), "keep": text("open"),
		"fp": text("f"), "id": text("i"), "jobs": map[string]any{"M": map[string]any{}}, "created_ms": digits(ago), "run_ms": digits(ago), "route": text("POST /orders"),
		"req": map[string]any{"M": map[string]any{"m": text("POST"), "p": text("/orders"), "h": map[string]any{"M": map[string]any{}}}},
	}
	for name, v := range change {
		if v == nil {
			delete(m, name)
		} else {
			m[name] = v
		}
	}
	return m
}

// staged is the same with a job in it.
func staged(change map[string]any) map[string]any {
	m := open(change)
	if _, other := change["jobs"]; !other {
		m["jobs"] = map[string]any{"M": map[string]any{"0.0": map[string]any{"M": map[string]any{"k": text("mail"), "a": text("1")}}}}
	}
	return m
}

// record is a stream record of these images; nil for none.
func record(t testing.TB, seq int, event string, oldImage, newImage map[string]any) events.DynamoDBEventRecord {
	t.Helper()
	rec := events.DynamoDBEventRecord{EventName: event, EventSource: "aws:dynamodb", Change: events.DynamoDBStreamRecord{
		SequenceNumber: fmt.Sprint(seq), ApproximateCreationDateTime: events.SecondsEpochTime{Time: time.Now()},
	}}
	for _, m := range []map[string]any{oldImage, newImage} {
		if pk, there := m["pk"]; there {
			rec.Change.Keys = image(t, map[string]any{"pk": pk})
		}
	}
	if oldImage != nil {
		rec.Change.OldImage = image(t, oldImage)
	}
	if newImage != nil {
		rec.Change.NewImage = image(t, newImage)
	}
	return rec
}

// Bad input 31: whatever lies in the stream, it is counted and passed over, by
// the drain and by the completer, and what comes after it goes on.
func TestBadInput31StrangeStreamRecords(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for name, test := range map[string]struct {
		record events.DynamoDBEventRecord
		why    stream.Skip
	}{
		"insert without images":       {record(t, 1, "INSERT", nil, nil), stream.SkipNoImage},
		"change without a new image":  {record(t, 1, "MODIFY", staged(nil), nil), stream.SkipNoImage},
		"removal without an image":    {record(t, 1, "REMOVE", nil, nil), stream.SkipNoImage},
		"somebody else's item":        {record(t, 1, "INSERT", nil, map[string]any{"pk": text("order#1"), "total": digits(5)}), stream.SkipForeign},
		"somebody else's item, gone":  {record(t, 1, "REMOVE", map[string]any{"pk": text("order#1")}, nil), stream.SkipForeign},
		"another table's key":         {record(t, 1, "INSERT", nil, map[string]any{"pk": digits(7), "v": digits(1), "st": text("open")}), stream.SkipForeign},
		"no key at all":               {record(t, 1, "INSERT", nil, map[string]any{"x": text("y")}), stream.SkipForeign},
		"a companion":                 {record(t, 1, "INSERT", nil, map[string]any{"pk": text("v1##x#o#1"), "v": digits(1), "b": map[string]any{"B": "AAEC"}}), stream.SkipCompanion},
		"a companion that expired":    {record(t, 1, "REMOVE", map[string]any{"pk": text("v1##x#o#1"), "v": digits(1)}, nil), stream.SkipCompanion},
		"a layout of the future":      {record(t, 1, "MODIFY", nil, staged(map[string]any{"v": digits(2)})), stream.SkipUnreadable},
		"a layout that is no number":  {record(t, 1, "INSERT", nil, staged(map[string]any{"v": text("1")})), stream.SkipUnreadable},
		"an unknown state":            {record(t, 1, "INSERT", nil, staged(map[string]any{"st": text("paused")})), stream.SkipUnreadable},
		"an unknown state, removed":   {record(t, 1, "REMOVE", staged(map[string]any{"st": text("paused")}), nil), stream.SkipUnreadable},
		"a state of another type":     {record(t, 1, "INSERT", nil, staged(map[string]any{"st": digits(1)})), stream.SkipUnreadable},
		"neither kept nor to expire":  {record(t, 1, "INSERT", nil, staged(map[string]any{"keep": nil})), stream.SkipUnreadable},
		"jobs that are a list":        {record(t, 1, "INSERT", nil, open(map[string]any{"jobs": map[string]any{"L": []any{}}})), stream.SkipUnreadable},
		"jobs that are gone":          {record(t, 1, "INSERT", nil, staged(map[string]any{"st": text("done"), "keep": text("jobs"), "jobs": nil})), stream.SkipUnreadable},
		"null where an owner belongs": {record(t, 1, "INSERT", nil, staged(map[string]any{"owner": map[string]any{"NULL": true}})), stream.SkipUnreadable},
		"sets where text belongs":     {record(t, 1, "INSERT", nil, staged(map[string]any{"fp": map[string]any{"SS": []string{"a"}}, "id": map[string]any{"NS": []string{"1"}}})), stream.SkipUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sound := record(t, 2, "INSERT", nil, staged(map[string]any{"pk": text("v1##sound-" + strings.ReplaceAll(name, " ", "-"))}))
			ev := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{test.record, sound}}
			test.record.EventSource = "aws:dynamodb"
			var skipped []stream.Skipped
			hooks := stream.Hooks{Skipped: func(_ context.Context, s stream.Skipped) { skipped = append(skipped, s) }}
			out, all, queue := &outbox{}, &outbox{}, &tickets{}
			drain := stream.NewDrain(tab.Store, out, func(o *stream.DrainOptions) { o.Hooks = hooks })
			completer := stream.NewCompleter(queue, func(o *stream.CompleterOptions) { o.Hooks = hooks })
			for what, h := range map[string]interface {
				Invoke(context.Context, []byte) ([]byte, error)
			}{"drain": drain, "completer": completer, "both": stream.Both{Drain: drain, Completer: completer}, "worker": worker.New(tab.Client, tab.Store, asSQS(queue), func(o *worker.Options) {
				o.Sink, o.Hooks = all, hooks
			})} {
				skipped = nil
				if seq := handle(t, h, ev); seq != "" {
					t.Errorf("%s: %s is reported as failed", what, seq)
				}
				if len(skipped) != 1 || skipped[0].Reason != test.why || skipped[0].Sequence != "1" {
					t.Errorf("%s told %+v, want one %q", what, skipped, test.why)
				}
				if test.why == stream.SkipUnreadable && !errors.Is(skipped[0].Err, idem.ErrCorrupt) {
					t.Errorf("%s told why: %v", what, skipped[0].Err)
				}
			}
			if diff := cmp.Diff([]string{"mail"}, out.kinds()); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(out.kinds(), all.kinds()); diff != "" {
				t.Errorf("delivered by the worker (-drain +worker):\n%s", diff)
			}
			queued := queue.all()
			if len(queued) != 3 || slices.ContainsFunc(queued, func(t jobs.Ticket) bool { return t.PK != pkOf(sound) }) {
				t.Errorf("queued %+v, want the sound one's tickets", queued)
			}
		})
	}
}

// An old image that can't be read makes everything in the new one new: jobs are
// handed on once more rather than never.
func TestUnreadableOldImage(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		out := &outbox{}
		rec := record(t, 1, "MODIFY", staged(map[string]any{"v": digits(9)}), staged(nil))
		if seq := handle(t, newDrain(t, tab, out), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{rec}}); seq != "" {
			t.Errorf("reported %s", seq)
		}
		if diff := cmp.Diff(map[string]int{"i.0.0": 1}, out.byID); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// A payload that isn't a stream's must fail: to pass over its records would lose
// them in silence.
func TestOtherSourcesAreRefused(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	drain, completer := stream.NewDrain(tab.Store, &outbox{}), stream.NewCompleter(&tickets{})
	one := worker.New(tab.Client, tab.Store, asSQS(&tickets{}))
	for name, payload := range map[string]string{
		"nothing":           ``,
		"not JSON":          `{`,
		"null":              `null`,
		"no records":        `{"Records":[]}`,
		"a schedule":        `{"source":"aws.events","detail-type":"Scheduled Event"}`,
		"a queue":           `{"Records":[{"messageId":"1","eventSource":"aws:sqs","body":"{}"}]}`,
		"a bucket":          `{"Records":[{"eventSource":"aws:s3"}]}`,
		"one among ours":    `{"Records":[{"eventSource":"aws:dynamodb"},{"eventSource":"aws:kinesis"}]}`,
		"an image gone bad": `{"Records":[{"eventSource":"aws:dynamodb","dynamodb":{"NewImage":{"pk":{"L":["x"]}}}}]}`,
	} {
		for what, h := range map[string]interface {
			Invoke(context.Context, []byte) ([]byte, error)
		}{"drain": drain, "completer": completer, "both": stream.Both{Drain: drain, Completer: completer}, "worker": one} {
			if what == "worker" && (name == "a schedule" || name == "a queue") {
				continue // it takes both
			}
			if out, err := h.Invoke(t.Context(), []byte(payload)); err == nil {
				t.Errorf("%s, %s: answered %s", what, name, out)
			}
		}
	}
}
