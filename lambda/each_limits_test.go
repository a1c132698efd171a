package lambda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			now += n
			most = max(most, now)
		}
		b := lambda.SQS
		b.Concurrency = 5
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(context.Context, events.SQSMessage) error {
			count(1)
			time.Sleep(time.Second) //nolint:forbidigo // virtual
			count(-1)
			return nil
		})
		var messages []events.SQSMessage
		for i := range 20 {
			messages = append(messages, message(strconv.Itoa(i), ""))
		}
		begun := time.Now()
		re, err := h.Handle(t.Context(), batch(messages...))
		reported(t, re, err)
		if took := time.Since(begun); took != 4*time.Second || most != 5 {
			t.Errorf("20 records of a second took %v, at most %d at once; want 4s, 5", took, most)
		}
	})
}

// One group is one order, however much is allowed at once.
func TestConcurrencyKeepsGroupsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		order := make(map[string][]string)
		b := lambda.SQS
		b.Concurrency = 100
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(_ context.Context, m events.SQSMessage) error {
			time.Sleep(time.Second) //nolint:forbidigo // virtual
			mu.Lock()
			defer mu.Unlock()
			g := m.Attributes["MessageGroupId"]
			order[g] = append(order[g], m.MessageId)
			return nil
		})
		var messages []events.SQSMessage
		for i := range 30 {
			messages = append(messages, inGroup(strconv.Itoa(i%3), strconv.Itoa(100+i)))
		}
		begun := time.Now()
		re, err := h.Handle(t.Context(), batch(messages...))
		reported(t, re, err)
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("3 groups of 10 took %v, want 10s", took)
		}
		for g, ids := range order {
			if len(ids) != 10 || !slices.IsSorted(ids) {
				t.Errorf("group %s was done as %v", g, ids)
			}
		}
	})
}

func TestThousandRecords(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 16} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			t.Parallel()
			w := &worker{}
			b := quiet(lambda.SQS)
			b.Concurrency = concurrency
			h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.message)
			var messages []events.SQSMessage
			var all, bad []string
			for i := range 1000 {
				id := fmt.Sprintf("%04d", i)
				messages = append(messages, message(id, id))
				all = append(all, id)
				if i%10 == 0 {
					bad = append(bad, id)
				}
			}
			w.failing(bad...)
			re, err := h.Handle(t.Context(), batch(messages...))
			reported(t, re, err, bad...)
			w.ran(t, all...)

			w.failing()
			re, err = h.Handle(t.Context(), batch(messages...))
			reported(t, re, err)
			w.ran(t, bad...)
		})
	}
}

// A message that another invocation works on is not done: it comes again.
func TestInFlightElsewhereIsReported(t *testing.T) {
	t.Parallel()
	store := process{&idem.MemoryStore{}}
	var twin error
	inner := lambda.WrapEach(idem.New(store, callertest.Anybody), quiet(lambda.SQS), func(context.Context, events.SQSMessage) error {
		t.Error("worked on by two at once")
		return nil
	})
	outer := lambda.WrapEach(idem.New(store, callertest.Anybody), lambda.SQS, func(context.Context, events.SQSMessage) error {
		_, twin = inner.Handle(t.Context(), batch(message("1", ""))) // not in the handler's context: another invocation
		return nil
	})
	re, err := outer.Handle(t.Context(), batch(message("1", "")))
	reported(t, re, err)
	if !errors.Is(twin, idem.ErrInFlight) {
		t.Errorf("the twin got %v, want ErrInFlight", twin)
	}
}

func TestStoreDownFailsRecords(t *testing.T) {
	t.Parallel()
	w := &worker{}
	h := lambda.WrapEach(idem.New(downStore{}, callertest.Anybody), quiet(lambda.SQS), w.message)
	_, err := h.Handle(t.Context(), batch(message("1", ""), message("2", "")))
	if failed, ok := errors.AsType[*lambda.BatchError](err); !ok || len(failed.Records) != 2 || !errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("got %v, want both unavailable", err)
	}
	w.ran(t)
}

// What can't be begun in time is not begun, not even claimed.
func TestNoTimeLeft(t *testing.T) {
	t.Parallel()
	t.Run("after two of four records", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store := &watched{}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			n := 0
			var why []error
			b := lambda.SQS
			b.Failed = func(_ context.Context, _ events.SQSMessage, err error) {
				t.Errorf("told %v of what was not tried", err)
			}
			b.NotRun = func(_ context.Context, m events.SQSMessage, err error) {
				why = append(why, fmt.Errorf("%s: %w", m.MessageId, err))
			}
			h := lambda.WrapEach(idem.New(store, callertest.Anybody), b, func(context.Context, events.SQSMessage) error {
				n++
				time.Sleep(4700 * time.Millisecond) //nolint:forbidigo // virtual
				return nil
			})
			re, err := h.Handle(ctx, batch(inGroup("A", "1"), inGroup("A", "2"), inGroup("A", "3"), inGroup("A", "4")))
			reported(t, re, err, "3", "4")
			if n != 2 || store.claims.Load() != 2 {
				t.Errorf("%d runs, %d claims, want 2 of each", n, store.claims.Load())
			}
			if len(why) != 2 || !strings.HasPrefix(why[0].Error(), "3: ") || !strings.HasPrefix(why[1].Error(), "4: ") {
				t.Errorf("not tried: %q", why)
			}
			for _, err := range why {
				if !errors.Is(err, idem.ErrNoTime) || !errors.Is(err, lambda.ErrNotRun) {
					t.Errorf("not tried because %v, want ErrNoTime", err)
				}
			}
		})
	})
	t.Run("from the begin", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store, w := &watched{}, &worker{}
			h := lambda.WrapEach(idem.New(store, callertest.Anybody), quiet(lambda.SQS), w.message)
			ctx, cancel := context.WithTimeout(t.Context(), defaults.Reserve*3/2-time.Millisecond)
			defer cancel()
			_, err := h.Handle(ctx, batch(message("1", ""), message("2", "")))
			if !errors.Is(err, idem.ErrNoTime) || !errors.Is(err, lambda.ErrNotRun) {
				t.Errorf("got %v", err)
			}
			store.untouched(t)
			w.ran(t)
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		store := &watched{}
		w := &worker{}
		h := lambda.WrapEach(idem.New(store, callertest.Anybody), quiet(lambda.SQS), w.message)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := h.Handle(ctx, batch(message("1", "")))
		if !errors.Is(err, idem.ErrNoTime) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		store.untouched(t)
		w.ran(t)
	})
}

// A record nobody can work on doesn't keep the others from being done, and its
// content doesn't get out.
func TestPanicIsTheRecordsFailure(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 3} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			t.Parallel()
			var why error
			b := lambda.SQS
			b.Concurrency = concurrency
			b.Failed = func(_ context.Context, _ events.SQSMessage, err error) { why = err }
			w := &worker{}
			panicking := true
			h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(ctx context.Context, m events.SQSMessage) error {
				if m.MessageId == "2" && panicking {
					panic("can't parse " + m.Body)
				}
				return w.message(ctx, m)
			})
			ev := batch(message("1", ""), message("2", "s3cr3t"), message("3", ""))
			re, err := h.Handle(t.Context(), ev)
			reported(t, re, err, "2")
			w.ran(t, "1", "3")
			p, ok := errors.AsType[*lambda.PanicError](why)
			if !ok || p.Value != "can't parse s3cr3t" || !strings.Contains(string(p.Stack), "TestPanicIsTheRecordsFailure") {
				t.Errorf("failed because %#v", why)
			}
			if want := "lambda: handler panicked with a string"; ok && p.Error() != want {
				t.Errorf("got %q, want %q", p.Error(), want)
			}
			panicking = false
			re, err = h.Handle(t.Context(), ev)
			reported(t, re, err)
			w.ran(t, "2")
		})
	}
	t.Run("of the Go runtime", func(t *testing.T) {
		t.Parallel()
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), func(_ context.Context, m events.SQSMessage) error {
			_ = m.MessageAttributes["none"].StringListValues[len(m.Body)]
			return nil
		})
		_, err := h.Handle(t.Context(), batch(message("1", "")))
		const want = "lambda: handler panicked: runtime error: index out of range [0] with length 0"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, ok := errors.AsType[runtime.Error](err); !ok {
			t.Errorf("%v is no runtime.Error", err)
		}
	})
}

// runtime.Goexit takes a goroutine away in the middle of its records.
func TestGoexitLeavesNothingDone(t *testing.T) {
	t.Parallel()
	b := quiet(lambda.SQS)
	b.Concurrency = 2
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(_ context.Context, m events.SQSMessage) error {
		if m.MessageId != "1" {
			runtime.Goexit()
		}
		return nil
	})
	re, err := h.Handle(t.Context(), batch(message("1", ""), message("2", ""), message("3", ""), message("4", "")))
	reported(t, re, err, "2", "3", "4")
}

// The answer of an invocation that reports failures looks fine, so somebody must
// say what went wrong.
func TestFailuresAreLogged(t *testing.T) {
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(old) })
	w := &worker{}
	w.failing("1")
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.SQS, func(ctx context.Context, m events.SQSMessage) error {
		if m.MessageId == "2" {
			panic(m.Body)
		}
		return w.message(ctx, m)
	})
	re, err := h.Handle(t.Context(), batch(message("1", "s3cr3t"), message("2", "s3cr3t"), message("3", "s3cr3t")))
	reported(t, re, err, "1", "2")
	for _, want := range []string{
		`level=ERROR msg="record failed" record=1 error="bad record"` + "\n",
		`level=WARN msg="records have to come again, which takes ReportBatchItemFailures on the event source mapping: `,
		`level=ERROR msg="record failed" record=2 error="lambda: handler panicked with a string" stack="goroutine `,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
	if strings.Contains(log.String(), "s3cr3t") || strings.Contains(log.String(), "record=3") {
		t.Errorf("the log says too much:\n%s", &log)
	}
}
