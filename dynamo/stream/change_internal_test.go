package stream

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// People free an operation by a decision that ends the lease of its attempt.
func TestFreed(t *testing.T) {
	t.Parallel()
	lease := time.Now()
	first, second := store.Decision{By: "jane", What: "retry", At: lease}, store.Decision{By: "joe", What: "retry", At: lease.Add(time.Second)}
	rec := func(lease time.Time, settled ...store.Decision) *store.Record {
		return &store.Record{ID: "a", Lease: lease, Settled: settled}
	}
	other := rec(lease)
	other.ID = "b"
	for name, tt := range map[string]struct {
		old, new *store.Record
		want     bool
	}{
		"a decision ends the lease":       {rec(lease), rec(time.Time{}, first), true},
		"another decision ends the lease": {rec(lease, first), rec(time.Time{}, first, second), true},
		"the attempt gives it back":       {rec(lease), rec(time.Time{}), false},
		"it gives it back, after one":     {rec(lease, first), rec(time.Time{}, first), false},
		"there was no lease":              {rec(time.Time{}), rec(time.Time{}, first), false},
		"the lease goes on":               {rec(lease), rec(lease, first), false},
		"it is new":                       {nil, rec(time.Time{}, first), false},
		"another operation's":             {other, rec(time.Time{}, first), false},
	} {
		if got := (&change{old: tt.old, new: tt.new}).freed(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A part of a batch has as many records as there is room for, and one at least.
func TestPartOfABatch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sizes    []int
		from, to int
	}{
		"all of them":           {[]int{1, 1, 1}, 0, 3},
		"from one on":           {[]int{mostAtOnce, 1, 1}, 1, 3},
		"as many as fit":        {[]int{mostAtOnce - 2, 1, 1, 1}, 0, 3},
		"one that is too large": {[]int{2 * mostAtOnce, 1}, 0, 1},
		"before one like that":  {[]int{1, 2 * mostAtOnce}, 0, 1},
		"the last":              {[]int{1, 1}, 1, 2},
	} {
		b := batch{n: len(tt.sizes), size: func(i int) int { return tt.sizes[i] }}
		if got := b.part(tt.from); got != tt.to {
			t.Errorf("%s: to %d, want %d", name, got, tt.to)
		}
	}
}

// imaged is a stream record of an item, as it is now or was when it was removed.
func imaged(event string, it item.Map) events.DynamoDBEventRecord {
	image := streamimage.Of(it)
	rec := events.DynamoDBEventRecord{EventName: event, Change: events.DynamoDBStreamRecord{Keys: map[string]events.DynamoDBAttributeValue{"pk": image["pk"]}}}
	if event == "REMOVE" {
		rec.Change.OldImage = image
	} else {
		rec.Change.NewImage = image
	}
	return rec
}

// What is no record of this program is told of. An item that can't be read is listed for people
// as long as it is there; however many there are, the batch lists ten.
func TestSkippedRecordsAreTold(t *testing.T) {
	t.Parallel()
	var v item.Values
	companion := item.Map{"pk": v.Str("v1##c#o#1"), "v": v.Num(2)}
	unreadable := item.Map{"pk": v.Str("v1##u"), "v": v.Num(99), "st": v.Str("open")}
	for name, tt := range map[string]struct {
		event  string
		it     item.Map
		n      int
		refuse error
		listed int
		told   string // in the log
	}{
		"a companion":                    {"INSERT", companion, 1, nil, 0, "level=DEBUG msg=\"stream record skipped\" reason=companion"},
		"an item that can't be read":     {"MODIFY", unreadable, 1, nil, 1, "level=WARN msg=\"stream record skipped\" reason=unreadable"},
		"it is gone":                     {"REMOVE", unreadable, 1, nil, 0, "level=WARN msg=\"stream record skipped\" reason=unreadable"},
		"it can't be listed":             {"MODIFY", unreadable, 1, errors.New("down"), 1, "waits for the sweep"},
		"a batch of them, not yet known": {"MODIFY", unreadable, 12, nil, 10, "reason=unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			var skipped []Skipped
			listed := 0
			r := &reader{
				log:        slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
				hooks:      &Hooks{Skipped: func(_ context.Context, s Skipped) { skipped = append(skipped, s) }},
				unreadable: func(context.Context, finding, time.Time) error { listed++; return tt.refuse },
			}
			sound := imaged("INSERT", item.Map{"pk": new(item.Values).Str("v1##s")}) // v is not for several at once
			sound.Change.NewImage = streamimage.Of(soundItem(t))
			ev := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{sound}}
			for range tt.n {
				ev.Records = append(ev.Records, imaged(tt.event, tt.it))
			}
			read := 0
			re, err := r.inParts(t.Context(), batchOf(ev), func(changes []change) int { read += len(changes); return none })
			if err != nil || len(re.BatchItemFailures) != 0 || read != 1 || len(skipped) != tt.n || listed != tt.listed {
				t.Errorf("read %d, skipped %+v, listed %d, %+v, %v", read, skipped, listed, re, err)
			}
			if !strings.Contains(log.String(), tt.told) || (tt.refuse == nil) == strings.Contains(log.String(), "waits for the sweep") {
				t.Errorf("the log is\n%s", log.String())
			}
		})
	}
}

// soundItem is a record as its table has it.
func soundItem(t *testing.T) item.Map {
	t.Helper()
	db := &restless{}
	_, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}})
	for _, it := range db.Items(fakeTable) {
		if item.PK(it) == rec.PK {
			return it
		}
	}
	t.Fatal("it isn't there")
	return nil
}

// A part is begun with two seconds left, and not with less; the first is begun in any case.
func TestTimeForAPart(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{2 * time.Second: "", 2*time.Second - 1: "1", time.Minute: ""} {
		t.Run(left.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rec := imaged("INSERT", soundItem(t))
				b := batch{n: 2, size: func(int) int { return mostAtOnce }, at: func(i int) (*events.DynamoDBEventRecord, error) {
					rec := rec
					rec.Change.SequenceNumber = strconv.Itoa(i)
					return &rec, nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), left+time.Second)
				defer cancel()
				r := &reader{log: slog.New(slog.DiscardHandler), hooks: &Hooks{}}
				re, err := r.inParts(ctx, b, func([]change) int { time.Sleep(time.Second); return none }) //nolint:forbidigo // virtual
				again := ""
				for _, f := range re.BatchItemFailures {
					again += f.ItemIdentifier
				}
				if again != want || err != nil {
					t.Errorf("%q comes again, want %q, %v", again, want, err)
				}
			})
		})
	}
}

// A record that can't be read has no number to come again by.
func TestReportOfARecordThatIsNone(t *testing.T) {
	t.Parallel()
	broken := func(int) (*events.DynamoDBEventRecord, error) { return nil, errBroken }
	r := &reader{log: slog.New(slog.DiscardHandler)}
	if _, err := r.report(t.Context(), batch{n: 1, at: broken}, 0); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

// An image has what its item has, of whatever type.
func TestPlain(t *testing.T) {
	t.Parallel()
	var v item.Values
	want := item.Map{
		"text": v.Str("a"), "number": v.Num(7), "bytes": &types.AttributeValueMemberB{Value: []byte("b")}, "flag": &types.AttributeValueMemberBOOL{Value: true},
		"null": &types.AttributeValueMemberNULL{Value: true}, "map": &types.AttributeValueMemberM{Value: item.Map{"a": v.Str("b")}},
		"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{v.Str("a"), v.Num(1)}},
	}
	image := streamimage.Of(want)
	for name, set := range map[string]struct {
		event events.DynamoDBAttributeValue
		value item.Value
	}{
		"texts":   {events.NewStringSetAttribute([]string{"a"}), &types.AttributeValueMemberSS{Value: []string{"a"}}},
		"numbers": {events.NewNumberSetAttribute([]string{"1"}), &types.AttributeValueMemberNS{Value: []string{"1"}}},
		"blobs":   {events.NewBinarySetAttribute([][]byte{{1}}), &types.AttributeValueMemberBS{Value: [][]byte{{1}}}},
	} {
		image[name], want[name] = set.event, set.value
	}
	if diff := cmp.Diff(want, plain(image), cmpopts.IgnoreUnexported(
		types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberBOOL{}, types.AttributeValueMemberNULL{},
		types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberSS{}, types.AttributeValueMemberNS{}, types.AttributeValueMemberBS{},
	)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What an item is, by its key, its layout and its state.
func TestItemsAndRecords(t *testing.T) {
	t.Parallel()
	var v item.Values
	for name, tt := range map[string]struct {
		it  item.Map
		why Skip
	}{
		"a record":                   {soundItem(t), ""},
		"a companion":                {item.Map{"pk": v.Str("v1##x#o#1"), "v": v.Num(2)}, SkipCompanion},
		"another layout":             {item.Map{"pk": v.Str("v1##x"), "v": v.Num(99), "st": v.Str("open")}, SkipUnreadable},
		"somebody else's":            {item.Map{"pk": v.Str("order#1")}, SkipForeign},
		"somebody else's state":      {item.Map{"pk": v.Str("order#1"), "st": v.Str("open")}, SkipForeign},
		"another key's type":         {item.Map{"pk": v.Num(1), "v": v.Num(2), "st": v.Str("open")}, SkipForeign},
		"no key":                     {item.Map{"v": v.Num(2), "st": v.Str("open")}, SkipForeign},
		"another's of one attribute": {item.Map{"id": v.Str("x")}, SkipForeign},
		"nothing":                    {item.Map{}, SkipNoImage},
	} {
		image := streamimage.Of(tt.it)
		rec, why, err := readImage(image)
		if why != tt.why || (rec != nil) != (why == "") || (err != nil) != (why == SkipUnreadable) {
			t.Errorf("%s: %+v, %q, %v, want %q", name, rec, why, err, tt.why)
		}
		for _, event := range []string{"INSERT", "MODIFY", "REMOVE"} {
			change := &events.DynamoDBStreamRecord{NewImage: image}
			if event == "REMOVE" {
				change = &events.DynamoDBStreamRecord{OldImage: image}
			}
			c, why, err := readChange(change, event)
			if why != tt.why || (err != nil) != (why == SkipUnreadable) || why == "" && ((c.new == nil) != (event == "REMOVE") || (c.old == nil) != (event != "REMOVE")) {
				t.Errorf("%s, %s: %+v, %q, %v, want %q", name, event, c, why, err, tt.why)
			}
		}
	}
	if got := recordName(streamimage.Of(item.Map{"pk": v.Num(1)})); got != "" {
		t.Errorf("a key that is a number names the record %q", got)
	}
}
