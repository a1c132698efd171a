package lambda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// hanging is a handler of messages that hang until their contexts end ("hang"),
// or until they are let go ("ignore").
type hanging struct {
	worker
	told worker // what the hooks were told
	why  map[string]error
	free chan struct{}
}

func newHanging() *hanging {
	return &hanging{why: make(map[string]error), free: make(chan struct{})}
}

func (h *hanging) handle(ctx context.Context, m events.SQSMessage) error {
	_ = h.do(m.MessageId)
	switch m.Body {
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "ignore":
		<-h.free
	}
	return nil
}

// hooked is b with hooks that note what they are told: "failed 1", "not tried 2".
func (h *hanging) hooked(b lambda.Batch[events.SQSEvent, events.SQSMessage, events.SQSEventResponse]) lambda.Batch[events.SQSEvent, events.SQSMessage, events.SQSEventResponse] {
	note := func(what string) func(context.Context, events.SQSMessage, error) {
		return func(_ context.Context, m events.SQSMessage, err error) {
			_ = h.told.do(what + " " + m.MessageId)
			h.told.mu.Lock()
			defer h.told.mu.Unlock()
			h.why[m.MessageId] = err
		}
	}
	b.Failed, b.NotRun = note("failed"), note("not tried")
	return b
}

func of(m events.SQSMessage, body string) events.SQSMessage { m.Body = body; return m }

// Each record of an event that hangs as a whole is tried, and its key is free then.
func TestRecordsShareTheTime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		concurrency int
		records     int
	}{{0, 10}, {0, 60}, {1, 5}, {3, 10}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newHanging()
				b := w.hooked(lambda.SQS)
				b.Concurrency = tc.concurrency
				h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.handle)
				var messages []events.SQSMessage
				var all []string
				for i := range tc.records {
					all = append(all, fmt.Sprintf("%02d", i))
					messages = append(messages, message(all[i], "hang"))
				}
				for range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					_, err := h.Handle(ctx, batch(messages...))
					if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
						t.Errorf("got %v, %v", err, ctx.Err())
					}
					cancel()
					w.ran(t, all...)
				}
				for told := range slices.Values(w.told.did) {
					if !strings.HasPrefix(told, "failed ") {
						t.Errorf("told: %s", told)
					}
				}
			})
		})
	}
}

// With a worker for each, nobody waits, and each has all the time.
func TestRecordsWithAWorkerEachHaveAllTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), func(ctx context.Context, m events.SQSMessage) error {
			if ends, ok := ctx.Deadline(); !ok || time.Until(ends) != 20*time.Second-defaults.Reserve {
				t.Errorf("%s has %v", m.MessageId, time.Until(ends))
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var messages []events.SQSMessage
		for i := range 10 {
			messages = append(messages, message(fmt.Sprint(i), ""))
		}
		re, err := h.Handle(ctx, batch(messages...))
		reported(t, re, err)
	})
}

// One record that hangs takes its own time, and no more.
func TestRecordTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newHanging()
		b := w.hooked(lambda.SQS)
		b.Concurrency, b.RecordTimeout = 1, 2*time.Second
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.handle)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		re, err := h.Handle(ctx, batch(message("1", ""), message("2", "hang"), message("3", "")))
		reported(t, re, err, "2")
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
		w.ranInOrder(t, "1", "2", "3")
		re, err = h.Handle(ctx, batch(message("2", ""))) // its key is free
		reported(t, re, err)
	})
}

// A handler that ignores its context holds up neither other records nor the report,
// and its key stays with it.
func TestOverdueHandlerIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newHanging()
				b := w.hooked(lambda.SQS)
				b.Concurrency = concurrency
				h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.handle)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				re, err := h.Handle(ctx, batch(
					of(inGroup("A", "a1"), "ignore"), inGroup("A", "a2"),
					inGroup("B", "b1"), inGroup("B", "b2"), of(inGroup("C", "c1"), "ignore"), inGroup("B", "b3"), inGroup("D", "d1"),
				))
				reported(t, re, err, "a1", "a2", "c1")
				if left, _ := ctx.Deadline(); time.Until(left) < defaults.Reserve/2 {
					t.Errorf("the report came %v before the deadline", time.Until(left))
				}
				w.ran(t, "a1", "b1", "b2", "b3", "c1", "d1")
				w.told.ran(t, "failed a1", "failed c1", "not tried a2")
				if !errors.Is(w.why["a1"], lambda.ErrOverdue) || !errors.Is(w.why["a2"], lambda.ErrNotRun) || errors.Is(w.why["a2"], idem.ErrNoTime) {
					t.Errorf("told %v", w.why)
				}

				// Hours after its context's end it has its key still, and then its outcome counts.
				_, err = h.Handle(t.Context(), batch(of(inGroup("A", "a1"), "ignore")))
				if !errors.Is(err, idem.ErrInFlight) {
					t.Errorf("while the handler works on: %v", err)
				}
				close(w.free)
				synctest.Wait()
				w.ran(t)
				re, err = h.Handle(t.Context(), batch(of(inGroup("A", "a1"), "ignore"), inGroup("A", "a2")))
				reported(t, re, err)
				w.ran(t, "a2")
			})
		})
	}
}

// What comes back late counts as long as the report is not out.
func TestLateHandlerCountsUntilTheReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quiet(lambda.SQS)
		b.RecordTimeout = 2 * time.Second
		var mu sync.Mutex
		runs := 0
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(_ context.Context, m events.SQSMessage) error {
			mu.Lock()
			runs++
			mu.Unlock()
			if m.MessageId == "1" || m.MessageId == "2" {
				time.Sleep(4 * time.Second) //nolint:forbidigo // virtual
			} else {
				time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // virtual
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		messages := []events.SQSMessage{message("1", "")}
		for i := range 3 {
			messages = append(messages, inGroup("B", fmt.Sprint("b", i)))
		}
		begun := time.Now()
		re, err := h.Handle(ctx, batch(messages...))
		reported(t, re, err)
		if took := time.Since(begun); took != 4500*time.Millisecond || runs != 4 {
			t.Errorf("took %v, %d runs", took, runs)
		}
	})
}

// Records of one key wait for a handler that doesn't come back, and are not tried.
func TestSameKeyWaitsForAnOverdueHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newHanging()
		b := w.hooked(lambda.SQS)
		b.RecordTimeout = time.Second
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.handle)
		re, err := h.Handle(t.Context(), batch(keyed(message("1", "ignore"), "k"), keyed(message("2", "ignore"), "k"), message("3", "")))
		reported(t, re, err, "1", "2")
		w.ran(t, "1", "3")
		w.told.ran(t, "failed 1", "not tried 2")
		close(w.free)
		synctest.Wait()
	})
}

// What wasn't tried is one line of the log, and no failure.
func TestNotTriedIsLogged(t *testing.T) {
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(old) })
	w := &worker{}
	w.failing("a1")
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.SQS, w.message)
	re, err := h.Handle(t.Context(), batch(inGroup("A", "a1"), inGroup("A", "a2"), inGroup("A", "a3"), inGroup("B", "b1")))
	reported(t, re, err, "a1", "a2", "a3")
	const want = `level=WARN msg="records were not tried and come again" records=2 of=4 first=a2 error="not tried: an earlier record of its group failed"` + "\n"
	if got := log.String(); !strings.Contains(got, want) || strings.Count(got, "record failed") != 1 {
		t.Errorf("the log is\n%s", got)
	}
}

// Who calls Handle in a function of his own can't have the program begin anew.
//
//nolint:paralleltest // the environment is this process's
func TestOverdueHandlerOfHandleInAFunctionEndsIt(t *testing.T) {
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	synctest.Test(t, func(t *testing.T) { // by the real clock a slow machine may not begin the handler in time
		w := newHanging()
		b := w.hooked(lambda.SQS)
		b.RecordTimeout = time.Second
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.handle)
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, lambda.ErrOverdue) {
				t.Errorf("panicked %t, with %v", ok, err)
			}
			close(w.free)
		}()
		_, _ = h.Handle(t.Context(), batch(message("1", "ignore"), message("2", "")))
	})
}

// A queue delivers ten by default: none of them waits for another.
func TestConcurrencyByDefault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.SQS, func(context.Context, events.SQSMessage) error {
			time.Sleep(time.Second) //nolint:forbidigo // virtual
			return nil
		})
		var messages []events.SQSMessage
		for i := range 11 {
			messages = append(messages, message(fmt.Sprint(i), ""))
		}
		begun := time.Now()
		re, err := h.Handle(t.Context(), batch(messages...))
		reported(t, re, err)
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("%d records of a second took %v, want 2s", len(messages), took)
		}
	})
}

// slowStore takes its time: for its first claim, and for each commit.
type slowStore struct {
	idem.MemoryStore
	claim, commit time.Duration
	claims        atomic.Int32
}

func (s *slowStore) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	if s.claims.Add(1) == 1 {
		time.Sleep(s.claim) //nolint:forbidigo // virtual
	}
	return s.MemoryStore.Claim(ctx, c)
}

func (s *slowStore) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	time.Sleep(s.commit) //nolint:forbidigo // virtual
	return s.MemoryStore.Commit(ctx, c)
}

// A handler whose share of the time has gone into its claim is not run, and its key
// is freed.
func TestSlowClaimDoesNotBeginTheHandler(t *testing.T) {
	t.Parallel()
	for _, each := range []time.Duration{0, time.Second} { // the event ends before the claim does, or after it
		t.Run(fmt.Sprint("others take ", each), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newHanging()
				b := w.hooked(lambda.SQS)
				b.Concurrency = 1
				h := lambda.WrapEach(idem.New(&slowStore{claim: 6 * time.Second}, callertest.Anybody), b, func(ctx context.Context, m events.SQSMessage) error {
					time.Sleep(each) //nolint:forbidigo // virtual
					return w.handle(ctx, m)
				})
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a fourth of it for A
				defer cancel()
				messages := []events.SQSMessage{inGroup("A", "a1"), inGroup("A", "a2")}
				for i := range 6 {
					messages = append(messages, inGroup("B", fmt.Sprint("b", i)))
				}
				re, err := h.Handle(ctx, batch(messages...))
				reported(t, re, err, "a1", "a2")
				w.ran(t, "b0", "b1", "b2", "b3", "b4", "b5")
				w.told.ran(t, "not tried a1", "not tried a2")
				if !errors.Is(w.why["a1"], lambda.ErrNotRun) || !errors.Is(w.why["a1"], idem.ErrNoTime) {
					t.Errorf("a1 was not tried because %v", w.why["a1"])
				}
				re, err = h.Handle(t.Context(), batch(messages...))
				reported(t, re, err)
				w.ran(t, "a1", "a2")
			})
		})
	}
}

// A record's own limit is its handler's: a store that is slow doesn't use it up.
func TestRecordTimeoutBeginsWithTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quiet(lambda.SQS)
		b.RecordTimeout = 2 * time.Second
		h := lambda.WrapEach(idem.New(&slowStore{claim: 5 * time.Second}, callertest.Anybody), b, func(ctx context.Context, _ events.SQSMessage) error {
			if ends, _ := ctx.Deadline(); time.Until(ends) != 2*time.Second {
				t.Errorf("the handler has %v", time.Until(ends))
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		re, err := h.Handle(ctx, batch(message("1", "")))
		reported(t, re, err)
	})
}

// What a handler has done counts, also where storing it takes longer than it may
// hold others up for.
func TestReportWaitsForWhatIsBeingStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newHanging()
		b := w.hooked(lambda.SQS)
		b.RecordTimeout = 2 * time.Second
		h := lambda.WrapEach(idem.New(&slowStore{commit: 5 * time.Second}, callertest.Anybody), b, w.handle)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		re, err := h.Handle(ctx, batch(message("1", ""), message("2", "")))
		reported(t, re, err)
		w.told.ran(t)
	})
}
