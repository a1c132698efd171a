package lambda_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// logged has do write to the default log, and returns what it wrote.
func logged(t *testing.T, do func()) string {
	t.Helper()
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	do()
	return log.String()
}

// What the source must do about failures is said once, with the first of them; and what wasn't
// tried only if no hook is told.
func TestWarningsOfABatch(t *testing.T) {
	w := &worker{}
	w.failing("2", "a1")
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), w.message)
	handle := func(messages ...events.SQSMessage) func() {
		return func() { _, _ = h.Handle(t.Context(), batch(messages...)) }
	}
	const takes = "takes ReportBatchItemFailures"
	if log := logged(t, handle(message("1", ""))); strings.Contains(log, takes) || strings.Contains(log, "not tried") {
		t.Errorf("without a failure: %s", log)
	}
	for i, want := range []int{1, 0} {
		if log := logged(t, handle(message("1", ""), message("2", ""))); strings.Count(log, takes) != want || strings.Contains(log, "not tried") {
			t.Errorf("failure %d: %s", i, log)
		}
	}
	b := quiet(lambda.SQS)
	b.NotRun = func(context.Context, events.SQSMessage, error) {}
	hooked := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.message)
	if log := logged(t, func() {
		_, _ = hooked.Handle(t.Context(), batch(inGroup("A", "a1"), inGroup("A", "a2"), message("1", "")))
	}); strings.Contains(log, "not tried") {
		t.Errorf("a hook is told, and the log says: %s", log)
	}
	b.Failed = func(context.Context, events.SQSMessage, error) { panic("a hook") }
	panics := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.message)
	log := logged(t, func() { _, _ = panics.Handle(t.Context(), batch(message("1", ""), message("2", ""))) })
	if !strings.Contains(log, "record failed") || !strings.Contains(log, "Batch.Failed") || !strings.Contains(log, "record=2") {
		t.Errorf("a hook panics, and the log says: %s", log)
	}
}

// An event of one's own may have no records: then all of them are done.
func TestBatchWithoutRecords(t *testing.T) {
	t.Parallel()
	b := lambda.SQS
	b.Records = func(events.SQSEvent) ([]events.SQSMessage, error) { return nil, nil }
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(context.Context, events.SQSMessage) error { return errors.New("ran") })
	re, err := h.Handle(t.Context(), events.SQSEvent{})
	reported(t, re, err)
}

// A record that can't be read isn't run, also where a key is optional; its key function isn't
// asked.
func TestUnreadableRecordIsNotRun(t *testing.T) {
	t.Parallel()
	w, unread := &worker{}, errors.New("it can't be read")
	b := quiet(lambda.SQS)
	b.Request = func(context.Context, events.SQSMessage) (idem.Request, error) {
		return idem.Request{Source: "q"}, unread
	}
	b.Key = func(events.SQSMessage) (string, error) { t.Error("the key function is asked"); return "", nil }
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyOptional }), b, w.message)
	if _, err := h.Handle(t.Context(), batch(message("1", ""))); !errors.Is(err, unread) {
		t.Errorf("got %v", err)
	}
	w.ran(t)
}

// Only a source whose redrive changes the id of a record refuses calls under that id.
func TestCallsUnderAnID(t *testing.T) {
	t.Parallel()
	call := func(ctx context.Context) error {
		_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
		return err
	}
	bus := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.EventBridge, func(ctx context.Context, _ events.EventBridgeEvent) error { return call(ctx) })
	if _, err := bus.Handle(t.Context(), events.EventBridgeEvent{ID: "1", Source: "s", DetailType: "d", Detail: []byte("{}")}); err != nil {
		t.Errorf("a bus: %v", err)
	}
	queue := func(mod func(*lambda.Batch[events.SQSEvent, events.SQSMessage, events.SQSEventResponse])) error {
		b := quiet(lambda.SQS)
		mod(&b)
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(ctx context.Context, _ events.SQSMessage) error { return call(ctx) })
		_, err := h.Handle(t.Context(), batch(message("1", "")))
		return err
	}
	type b = lambda.Batch[events.SQSEvent, events.SQSMessage, events.SQSEventResponse]
	if err := queue(func(*b) {}); !errors.Is(err, idem.ErrDeliveryKey) {
		t.Errorf("a queue: %v, want ErrDeliveryKey", err)
	}
	if err := queue(func(b *b) { b.Key = func(events.SQSMessage) (string, error) { return "order-7", nil } }); err != nil {
		t.Errorf("a queue whose key names the work: %v", err)
	}
	if err := queue(func(b *b) { b.CallsAgainAfterRedrive = true }); err != nil {
		t.Errorf("a queue whose program accepts it: %v", err)
	}
}

// An overdue handler that fails in the end has failed once.
func TestOverdueHandlerFailsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, free := newHanging(), make(chan struct{})
		b := w.hooked(lambda.SQS)
		b.RecordTimeout = time.Second
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(context.Context, events.SQSMessage) error {
			<-free
			return errors.New("late")
		})
		if _, err := h.Handle(t.Context(), batch(keyed(message("1", ""), "k"), keyed(message("2", ""), "k"))); !errors.Is(err, lambda.ErrOverdue) {
			t.Errorf("got %v", err)
		}
		if why := w.why["2"]; !errors.Is(why, lambda.ErrNotRun) || !strings.Contains(why.Error(), "with its key") {
			t.Errorf("the second of its key isn't run: %v", why)
		}
		close(free)
		synctest.Wait()
		w.told.ran(t, "failed 1", "not tried 2")
		if !errors.Is(w.why["1"], lambda.ErrOverdue) {
			t.Errorf("it is told as %v", w.why["1"])
		}
	})
}

// Sets come in no order: a change of an item that comes again with another is the same.
func TestSetsHaveNoOrder(t *testing.T) {
	t.Parallel()
	runs := 0
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.DynamoDBStream, func(context.Context, events.DynamoDBEventRecord) error { runs++; return nil })
	for i, set := range []map[string]events.DynamoDBAttributeValue{
		{"s": events.NewStringSetAttribute([]string{"a", "b"}), "n": events.NewNumberSetAttribute([]string{"1", "2"}), "b": events.NewBinarySetAttribute([][]byte{{1}, {2}})},
		{"s": events.NewStringSetAttribute([]string{"b", "a"}), "n": events.NewNumberSetAttribute([]string{"2", "1"}), "b": events.NewBinarySetAttribute([][]byte{{2}, {1}})},
	} {
		r := change("1")
		r.Change.NewImage = set
		if _, err := h.Handle(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{r}}); err != nil || runs != 1 {
			t.Errorf("delivery %d: %v, %d runs", i, err, runs)
		}
	}
}

// How long the sources keep a record, by AWS's own limits.
func TestKeepsOfSources(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tt := range map[string]struct{ got, want time.Duration }{
		"EventBridge": {lambda.EventBridge.Keeps, 30 * time.Hour}, "Kinesis": {lambda.Kinesis.Keeps, 365 * day}, "Kafka": {lambda.Kafka.Keeps, 7 * day},
		"DynamoDBStream": {lambda.DynamoDBStream.Keeps, day}, "SQS": {lambda.SQS.Keeps, 14 * day},
	} {
		if tt.got != tt.want {
			t.Errorf("%s keeps a record for %v, want %v", name, tt.got, tt.want)
		}
	}
}
