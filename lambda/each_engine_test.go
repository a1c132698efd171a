package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// What the engine says of a record, where it isn't plainly new or a replay.

// A stream's event doesn't tell that it comes again: its first record, done before, tells
// it of the next, and so on to the first that is new.
func TestRecordAfterADoneOneIsReadFirst(t *testing.T) {
	t.Parallel()
	st := idemtest.Faulty(&idem.MemoryStore{}, nil)
	w := &worker{}
	h := lambda.WrapEach(idem.New(st, callertest.Anybody), quiet(lambda.Kinesis), func(_ context.Context, r events.KinesisEventRecord) error {
		return w.do(string(r.Kinesis.Data))
	})
	var ev events.KinesisEvent
	for _, step := range []struct{ records, reads, claims int }{{3, 0, 3}, {5, 3, 3}, {5, 4, 1}} {
		for len(ev.Records) < step.records {
			ev.Records = append(ev.Records, position(strconv.Itoa(len(ev.Records))))
		}
		st.Reset(nil)
		if _, err := h.Handle(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
		if reads, claims := st.Calls(idemtest.Load), st.Calls(idemtest.Claim); reads != step.reads || claims != step.claims {
			t.Errorf("%+v: %d reads, %d claims", step, reads, claims)
		}
	}
	w.ran(t, "0", "1", "2", "3", "4")
}

func TestWrapEachPanicsOnNil(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	h := func(context.Context, events.SQSMessage) error { return nil }
	without := func(edit func(*lambda.Batch[events.SQSEvent, events.SQSMessage, events.SQSEventResponse])) func() {
		b := lambda.SQS
		edit(&b)
		return func() { lambda.WrapEach(e, b, h) }
	}
	type sqs = lambda.Batch[events.SQSEvent, events.SQSMessage, events.SQSEventResponse]
	for name, wrap := range map[string]func(){
		"engine":               func() { lambda.WrapEach(nil, lambda.SQS, h) },
		"handler":              func() { lambda.WrapEach(e, lambda.SQS, nil) },
		"batch":                func() { lambda.WrapEach(e, sqs{}, h) },
		"Records":              without(func(b *sqs) { b.Records = nil }),
		"ID":                   without(func(b *sqs) { b.ID = nil }),
		"Key":                  without(func(b *sqs) { b.Key = nil }),
		"Request":              without(func(b *sqs) { b.Request = nil }),
		"negative concurrency": without(func(b *sqs) { b.Concurrency = -1 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if r := recover(); r == nil {
					t.Error("no panic")
				}
			}()
			wrap()
		})
	}
}

// Without an engine at work, also records without a key are handed on.
func TestDisabledEngine(t *testing.T) {
	t.Parallel()
	store := &watched{}
	w := &worker{}
	b := quiet(lambda.SQS.WithKey(func(events.SQSMessage) (string, error) { return "", nil }))
	h := lambda.WrapEach(idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOff }), b, w.message)
	w.failing("2")
	for range 2 {
		re, err := h.Handle(t.Context(), batch(message("1", ""), message("2", ""), message("3", "")))
		reported(t, re, err, "2")
		w.ran(t, "1", "2", "3")
	}
	store.untouched(t)
}

// Work that was done is done, whether or not its answer is still there: a source
// waits for none.
func TestDoneWithoutAnswerIsDone(t *testing.T) {
	t.Parallel()
	w := &worker{}
	m := message("1", "body")
	request := func(t *testing.T) idem.Request {
		req, err := lambda.SQS.Request(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		req.Key = "1"
		return req
	}
	t.Run("not kept", func(t *testing.T) {
		t.Parallel()
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.MaxBody = 1 })
		if _, err := e.Do(t.Context(), request(t), func(context.Context) (idem.Response, error) {
			return idem.Response{Body: []byte("too large")}, nil
		}); err != nil {
			t.Fatal(err)
		}
		re, err := lambda.WrapEach(e, lambda.SQS, w.message).Handle(t.Context(), batch(m))
		reported(t, re, err)
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		st := &edited{edit: func(r *store.Record) { r.Until = time.Now().Add(-time.Minute) }}
		e := idem.New(st, callertest.Anybody)
		if _, err := e.Do(t.Context(), request(t), func(context.Context) (idem.Response, error) { return idem.Response{}, nil }); err != nil {
			t.Fatal(err)
		}
		re, err := lambda.WrapEach(e, lambda.SQS, w.message).Handle(t.Context(), batch(m))
		reported(t, re, err)
	})
	w.ran(t)
}

// edited is a store that shows finished records otherwise than they are.
type edited struct {
	idem.MemoryStore
	edit func(*store.Record)
}

func (s *edited) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	held, err := s.MemoryStore.Claim(ctx, c)
	if held != nil && held.State == store.Done {
		s.edit(held)
	}
	return held, err
}

// Phases work in a record's handler; what they answer is that it is done.
func TestPhasesInARecord(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context) error{
		"nil":                 func(context.Context) error { return nil },
		"Respond":             func(context.Context) error { return idem.Respond("done") },
		"Respond, a response": func(context.Context) error { return idem.Respond(idem.Response{Status: 402}) },
		"Finish": func(ctx context.Context) error {
			_, err := idem.Finish(ctx, func(context.Context, *idem.Tx) (string, error) { return "done", nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, fail := 0, true
			h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), func(ctx context.Context, _ events.SQSMessage) error {
				_, err := idem.Atomic(ctx, "counted", func(context.Context, *idem.Tx) (int, error) {
					runs++
					return runs, nil
				})
				if err == nil && fail {
					err = errBad
				}
				if err != nil {
					return err
				}
				return end(ctx)
			})
			if _, err := h.Handle(t.Context(), batch(message("1", ""))); err == nil {
				t.Error("no error")
			}
			fail = false
			for range 2 {
				re, err := h.Handle(t.Context(), batch(message("1", "")))
				reported(t, re, err)
			}
			if runs != 1 {
				t.Errorf("the phase ran %d times", runs)
			}
		})
	}
}

// A handler that has seen a phase fail and says nil has not done the record's
// work: the record is reported and comes again. An answer by Respond is final.
func TestNilAfterAFailedPhase(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  error
		runs int
	}{
		"nil":     {nil, 2},
		"Respond": {idem.Respond(idem.Response{}), 1},
	} {
		runs := 0
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), func(ctx context.Context, _ events.SQSMessage) error {
			runs++
			if _, err := idem.Atomic(ctx, "paid", func(context.Context, *idem.Tx) (int, error) { return 0, errBad }); err == nil {
				t.Error("the phase did not fail")
			}
			return tc.end
		})
		for range 2 {
			re, err := h.Handle(t.Context(), batch(message("1", "")))
			if tc.end != nil {
				reported(t, re, err)
			} else if !errors.Is(err, errBad) {
				t.Errorf("%s: got %v, want the phase's error: the message would be gone", name, err)
			}
		}
		if runs != tc.runs {
			t.Errorf("%s: %d runs, want %d", name, runs, tc.runs)
		}
	}
}

// A batch of one's own may find that a record can't be read.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	b := quiet(lambda.SQS)
	b.Request = func(ctx context.Context, m events.SQSMessage) (idem.Request, error) {
		req, _ := lambda.SQS.Request(ctx, m)
		if m.Body == "bad" {
			return req, errBad
		}
		return req, nil
	}
	w := &worker{}
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.message)
	re, err := h.Handle(t.Context(), batch(message("1", ""), message("2", "bad"), message("3", "bad"), message("4", "")))
	reported(t, re, err, "2", "3")
	w.ran(t, "1", "4")
	if _, err := h.Handle(t.Context(), batch(message("2", "bad"))); !errors.Is(err, errBad) {
		t.Errorf("got %v, want its own error", err)
	}
}

// A phase may fail with an error that another operation's expiry would give. It says
// nothing of this message: taken for done, the message would be gone (R148).
func TestPhasesErrorIsNoReport(t *testing.T) {
	t.Parallel()
	for _, nested := range []error{idem.ErrExpired, idem.ErrNotKept, idem.ErrNoTime} {
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}), quiet(lambda.SQS), func(ctx context.Context, _ events.SQSMessage) error {
			_, _ = idem.Atomic(ctx, "paid", func(context.Context, *idem.Tx) (int, error) { return 0, fmt.Errorf("another operation: %w", nested) })
			return nil
		})
		if _, err := h.Handle(t.Context(), batch(message("1", ""))); !errors.Is(err, nested) || errors.Is(err, lambda.ErrNotRun) {
			t.Errorf("%v: got %v, want the phase's error", nested, err)
		}
	}
}
