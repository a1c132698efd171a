package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// A partition stops at its first failure, and the report names its place. The others
// go on.
func TestPartitionStopsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	w := &worker{}
	h := lambda.WrapEach(anEngine(), quiet(lambda.Kafka), func(_ context.Context, r lambda.KafkaRecord) error {
		return w.do(string(r.Data))
	})
	deliver := func(want string, records ...events.KafkaRecord) {
		t.Helper()
		payload, err := json.Marshal(partitions(records...))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := h.Invoke(t.Context(), payload); string(got) != want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	all := []events.KafkaRecord{
		moved(0, 100, "a1"), moved(0, 101, "a2"), moved(0, 102, "a3"), moved(0, 103, "a4"),
		moved(10, 7, "b1"), moved(10, 8, "b2"),
		moved(2, 0, "c1"), moved(2, 1, "c2"),
	}
	w.failing("a2", "a3", "c1")
	deliver(`{"batchItemFailures":[{"itemIdentifier":{"partition":"positions-0","offset":101}},{"itemIdentifier":{"partition":"positions-2","offset":0}}]}`, all...)
	w.ran(t, "a1", "a2", "b1", "b2", "c1")

	// Nothing done: the invocation fails, so that a mapping that bisects halves.
	_, err := h.Handle(t.Context(), partitions(all[1:4]...))
	failed, ok := errors.AsType[*lambda.BatchError](err)
	if !ok || len(failed.Records) != 3 || failed.Records[0].ID != "positions-0:101" || !errors.Is(failed.Records[1].Err, lambda.ErrNotRun) {
		t.Errorf("got %v, want all three to have failed", err)
	}
	w.ran(t, "a2")

	w.failing()
	deliver(`{"batchItemFailures":[]}`, all...) // the whole event again: what is done stays so
	w.ran(t, "a2", "a3", "a4", "c1", "c2")
}

// A topic's longest name, and the numbers' longest, make a key.
func TestLongestKafkaKey(t *testing.T) {
	t.Parallel()
	r := moved(1<<31-1, 1<<63-1, "x")
	r.Topic = strings.Repeat("t", 249)
	key, err := lambda.Kafka.Key(lambda.KafkaRecord{KafkaRecord: r})
	r.Offset--
	other, err2 := lambda.Kafka.Key(lambda.KafkaRecord{KafkaRecord: r})
	if err != nil || err2 != nil || len(key) > 255 || key == other {
		t.Errorf("got %q and %q, %v, %v", key, other, err, err2)
	}
}

// An event that isn't what Lambda sends is refused whole, with its reason: none of its
// records is done or passed over.
func TestUnreadableKafkaEvent(t *testing.T) {
	t.Parallel()
	edit := func(change func(*events.KafkaRecord)) events.KafkaEvent {
		ev := partitions(moved(0, 1, "1"), moved(0, 2, "2"))
		change(&ev.Records["positions-0"][1])
		return ev
	}
	for want, ev := range map[string]any{
		"it is of \"\"":                                          changed(own("a:1"), func(ev *events.KafkaEvent) { ev.EventSource = "" }),
		"it is of \"aws:msk\"":                                   changed(own("a:1"), func(ev *events.KafkaEvent) { ev.EventSource = "aws:msk" }),
		"it doesn't name its cluster":                            own(""),
		"it has no records":                                      partitions(),
		"the payload is records of \"aws:k":                      partitions(),
		"is of topic \"\", partition 0":                          edit(func(r *events.KafkaRecord) { r.Topic = "" }),
		"is of topic \"other\"":                                  edit(func(r *events.KafkaRecord) { r.Topic = "other" }),
		"topic \"positions\", partition 1":                       edit(func(r *events.KafkaRecord) { r.Partition = 1 }),
		"the value of record 1 of \"positions-0\" is not base64": edit(func(r *events.KafkaRecord) { r.Value = `{"ride":1}` }),
		// A registry's decoded values, if they ever come as objects.
		"cannot unmarshal object": json.RawMessage(`{"eventSource":"aws:kafka","eventSourceArn":"arn:x","records":{"t-0":[{"topic":"t","value":{"ride":1}}]}}`),
	} {
		w, store := &worker{}, &watched{}
		h := lambda.WrapEach(idem.New(store, callertest.Anybody), quiet(lambda.Kafka), func(_ context.Context, r lambda.KafkaRecord) error {
			return w.do(string(r.Data))
		})
		out, err := h.Invoke(t.Context(), []byte(marshalled(t, ev)))
		if !errors.Is(err, lambda.ErrEvent) || out != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %s, %v, want ErrEvent with %s", out, err, want)
		}
		w.ran(t)
		store.untouched(t)
	}
}

// Under one key of a producer's the record's key, value and headers must be the same,
// and a header can't pass for a key.
func TestSameKafkaRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change  func(*events.KafkaRecord)
		refused bool
	}{
		"elsewhere":     {func(r *events.KafkaRecord) { r.Partition, r.Offset = 7, 9 }, false},
		"traced":        {func(r *events.KafkaRecord) { *r = header(*r, "traceparent", "00-1") }, false},
		"another value": {func(r *events.KafkaRecord) { r.Value = "eA==" }, true},
		"no value":      {func(r *events.KafkaRecord) { r.Value = "" }, true},
		"a key":         {func(r *events.KafkaRecord) { r.Key = "eA==" }, true},
		"a header":      {func(r *events.KafkaRecord) { *r = header(*r, "kind", "moved") }, true},
		"an odd header": {func(r *events.KafkaRecord) { *r = header(*r, "@key", "") }, true},
	} {
		w := &worker{}
		h := lambda.WrapEach(anEngine(), quiet(lambda.Kafka), func(_ context.Context, r lambda.KafkaRecord) error { return w.do(string(r.Data)) })
		if _, err := h.Handle(t.Context(), partitions(namedRecord(moved(0, 1, "1"), "k"))); err != nil {
			t.Fatal(err)
		}
		_, err := h.Handle(t.Context(), partitions(changed(namedRecord(moved(0, 2, "1"), "k"), tc.change)))
		if errors.Is(err, idem.ErrMismatch) != tc.refused || !tc.refused && err != nil {
			t.Errorf("%s: got %v, refused: want %t", name, err, tc.refused)
		}
		w.ran(t, "1")
	}
}

func header(r events.KafkaRecord, name, value string) events.KafkaRecord {
	r.Headers = append(slices.Clone(r.Headers), map[string]events.JSONNumberBytes{name: []byte(value)})
	return r
}

// The report is what Lambda reads also if a copy has ids of its own: then Lambda
// repeats the event.
func TestKafkaReplyOfOtherIDs(t *testing.T) {
	t.Parallel()
	b := quiet(lambda.Kafka)
	b.ID = func(r lambda.KafkaRecord) string { return url.QueryEscape(string(r.Data)) }
	h := lambda.WrapEach(anEngine(), b, func(_ context.Context, r lambda.KafkaRecord) error {
		if string(r.Data) == "1" {
			return nil
		}
		return errBad
	})
	re, err := h.Handle(t.Context(), partitions(moved(0, 1, "1"), moved(0, 2, "2"), moved(1, 3, "3")))
	if got := marshalled(t, re); got != `{"batchItemFailures":[{"itemIdentifier":{"partition":"","offset":2}},{"itemIdentifier":{"partition":"","offset":3}}]}` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}
