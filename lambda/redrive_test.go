package lambda_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// bank is a provider that charges once for each key.
type bank struct {
	keys map[string]int // how often each was called with
	down error          // of the phase after the charge
}

func (b *bank) charge(ctx context.Context) error {
	if _, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (string, error) {
		if b.keys == nil {
			b.keys = make(map[string]int)
		}
		b.keys[tx.Key("payments")]++
		return "paid", nil
	}); err != nil {
		return err
	}
	_, err := idem.Atomic(ctx, "book", func(context.Context, *idem.Tx) (int, error) { return 0, b.down })
	return err
}

func (b *bank) message(ctx context.Context, _ events.SQSMessage) error { return b.charge(ctx) }

type queueBatch = lambda.Batch[events.SQSEvent, events.SQSMessage, events.SQSEventResponse]

func byBody(m events.SQSMessage) (string, error) { return m.Body, nil }

func withKeyAttribute(m events.SQSMessage, key string) events.SQSMessage {
	m.MessageAttributes = map[string]events.SQSMessageAttribute{lambda.KeyAttribute: {DataType: "String", StringValue: &key}}
	return m
}

// A charge is committed, and the next phase fails until the queue gives up. What
// comes back then, by whatever way, is the same operation: one charge.
func TestARedriveIsTheSameOperation(t *testing.T) {
	t.Parallel()
	queue := message("1", "order-7")
	moved := message("2", "order-7") // a move task gives it another id
	dead := queue                    // the id stays as it is in the dead-letter queue itself
	dead.EventSourceARN += "-dead"
	dead.Attributes = map[string]string{"DeadLetterQueueSourceArn": queue.EventSourceARN}
	elsewhere := moved
	elsewhere.EventSourceARN += "-repair"
	for name, tc := range map[string]struct {
		batch         queueBatch
		first, second events.SQSMessage
	}{
		"moved back, a key of one's own":            {lambda.SQS.WithKey(byBody), queue, moved},
		"moved back, a key in an attribute":         {lambda.SQS, withKeyAttribute(queue, "job-1"), withKeyAttribute(moved, "job-1")},
		"read where it lies, a key of one's own":    {lambda.SQS.WithKey(byBody), queue, dead},
		"read where it lies, a key in an attribute": {lambda.SQS, withKeyAttribute(queue, "job-1"), withKeyAttribute(dead, "job-1")},
		"read where it lies, by its id":             {knowing(lambda.SQS), queue, dead},
		"moved elsewhere, a scope":                  {lambda.SQS.WithKey(byBody).WithScope("orders"), queue, elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := anEngine()
			b := &bank{down: errBad}
			h := lambda.WrapEach(e, quiet(tc.batch), b.message)
			for range 2 {
				if _, err := h.Handle(t.Context(), batch(tc.first)); !errors.Is(err, errBad) {
					t.Fatalf("got %v", err)
				}
			}
			b.down = nil
			for range 2 {
				re, err := h.Handle(t.Context(), batch(tc.second))
				reported(t, re, err)
			}
			if calls := slices.Collect(maps.Values(b.keys)); !slices.Equal(calls, []int{1}) {
				t.Errorf("calls of the provider by key: %v, want one call", calls)
			}
		})
	}
}

// knowing is b in a program that knows what a redrive does.
func knowing(b queueBatch) queueBatch {
	b.CallsAgainAfterRedrive = true
	return b
}

// Under the id of a message no phase calls anybody: once the message comes back
// under another id, the call would be made again, and nobody could tell.
func TestCallsUnderAMessagesIDAreRefused(t *testing.T) {
	t.Parallel()
	job := idem.NewJob("mail", "jane")
	staging := func(ctx context.Context, name string) error {
		_, err := idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(job)
			return 0, nil
		})
		return err
	}
	never := func(*bank) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) {
				t.Error("the call was made")
				return 0, nil
			}, idem.NotIdempotent())
			return err
		}
	}
	for name, tc := range map[string]struct {
		work func(*bank) func(context.Context) error
		ok   bool
	}{
		"a call":                        {func(b *bank) func(context.Context) error { return b.charge }, false},
		"a call that can't be repeated": {never, false},
		"a job, and something after it": {func(*bank) func(context.Context) error {
			return func(ctx context.Context) error { return staging(ctx, "first") }
		}, false},
		"a job that joins what comes next": {func(*bank) func(context.Context) error {
			return func(ctx context.Context) error {
				if err := idem.Stage(ctx, job); err != nil {
					return err
				}
				_, err := idem.Atomic(ctx, "first", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
				return err
			}
		}, false},
		"a job with the answer": {func(*bank) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					tx.Stage(job)
					return idem.Response{}, nil
				})
				return err
			}
		}, true},
		"an Atomic": {func(*bank) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := idem.Atomic(ctx, "first", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
				return err
			}
		}, true},
	} {
		for _, source := range []string{"SQS", "SNS"} {
			t.Run(name+", "+source, func(t *testing.T) {
				t.Parallel()
				store := &idem.MemoryStore{}
				e := idem.New(store, callertest.Anybody)
				b := &bank{}
				work := tc.work(b)
				var err error
				if source == "SQS" {
					h := lambda.WrapEach(e, quiet(lambda.SQS), func(ctx context.Context, _ events.SQSMessage) error { return work(ctx) })
					_, err = h.Handle(t.Context(), batch(message("1", "")))
				} else {
					h := lambda.WrapEach(e, quiet(lambda.SNS), func(ctx context.Context, _ events.SNSEventRecord) error { return work(ctx) })
					_, err = h.Handle(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{notification("1")}})
				}
				if tc.ok {
					if err != nil {
						t.Errorf("got %v", err)
					}
					return
				}
				if !errors.Is(err, idem.ErrDeliveryKey) {
					t.Errorf("got %v, want ErrDeliveryKey", err)
				}
				for _, remedy := range []string{"WithKey", "KeyAttribute", "CallsAgainAfterRedrive"} {
					if err != nil && !strings.Contains(err.Error(), remedy) {
						t.Errorf("%v: doesn't say %s", err, remedy)
					}
				}
				if len(b.keys) > 0 {
					t.Error("the provider was called")
				}
				for _, r := range store.Records() {
					if len(r.Phases)+len(r.Jobs) > 0 {
						t.Errorf("it wrote %+v, %+v", r.Phases, r.Jobs)
					}
				}
			})
		}
	}
}

// What was refused is finished once the program says that it knows.
func TestCallsUnderAMessagesIDGoOn(t *testing.T) {
	t.Parallel()
	reserve := func(b *bank) func(context.Context, events.SQSMessage) error {
		return func(ctx context.Context, _ events.SQSMessage) error {
			if _, err := idem.Atomic(ctx, "reserve", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
				return err
			}
			return b.charge(ctx)
		}
	}
	t.Run("refused in its second phase", func(t *testing.T) {
		t.Parallel()
		store := process{&idem.MemoryStore{}}
		blocked := 0
		e := func() *idem.Engine {
			return idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Hooks.Blocked = func(context.Context, idem.Event) { blocked++ } })
		}
		b := &bank{}
		strict := lambda.WrapEach(e(), quiet(lambda.SQS), reserve(b))
		for range 3 { // no delivery slips through, and people are told
			if _, err := strict.Handle(t.Context(), batch(message("1", ""))); !errors.Is(err, idem.ErrDeliveryKey) {
				t.Errorf("got %v, want ErrDeliveryKey", err)
			}
		}
		if blocked == 0 || len(b.keys) > 0 {
			t.Errorf("people were told %d times, the provider was called with %v", blocked, b.keys)
		}
		re, err := lambda.WrapEach(e(), knowing(lambda.SQS), reserve(b)).Handle(t.Context(), batch(message("1", "")))
		reported(t, re, err)
		if len(b.keys) != 1 {
			t.Errorf("%d charges", len(b.keys))
		}
	})
}

// A scope is shared by the sources that have it, and by no two functions that each
// get all records.
func TestWithScope(t *testing.T) {
	t.Parallel()
	e := anEngine()
	w := &worker{}
	queue := lambda.WrapEach(e, lambda.SQS.WithScope("orders"), w.message)
	topic := lambda.WrapEach(e, lambda.SNS.WithScope("orders"), func(_ context.Context, r events.SNSEventRecord) error { return w.do(r.SNS.MessageID) })
	twin := message("1", "")
	twin.EventSourceARN += "-2"
	re, err := queue.Handle(invoked(t.Context(), functionARN), batch(message("1", "")))
	reported(t, re, err)
	re, err = queue.Handle(invoked(t.Context(), functionARN+"-2"), batch(twin))
	reported(t, re, err)
	w.ran(t, "1")
	other := notification("1")
	other.SNS.TopicArn += "-2"
	for _, arn := range []string{functionARN, functionARN + "-2"} {
		for _, r := range []events.SNSEventRecord{notification("1"), other} {
			if _, err := topic.Handle(invoked(t.Context(), arn), events.SNSEvent{Records: []events.SNSEventRecord{r}}); err != nil {
				t.Error(err)
			}
		}
		w.ran(t, "1")
	}
}
