package lambda_test

import (
	"context"
	"errors"
	"fmt"
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
				h := lambda.WrapEach(anEngine(), b, w.handle)
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

// One record that hangs takes its own time, and no more.
func TestRecordTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newHanging()
		b := w.hooked(lambda.SQS)
		b.Concurrency, b.RecordTimeout = 1, 2*time.Second
		h := lambda.WrapEach(anEngine(), b, w.handle)
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
				h := lambda.WrapEach(anEngine(), b, w.handle)
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
		h := lambda.WrapEach(anEngine(), b, func(_ context.Context, m events.SQSMessage) error {
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

// Who calls Handle in a function of his own can't have the program begin anew.
func TestOverdueHandlerOfHandleInAFunctionEndsIt(t *testing.T) {
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	synctest.Test(t, func(t *testing.T) { // by the real clock a slow machine may not begin the handler in time
		w := newHanging()
		b := w.hooked(lambda.SQS)
		b.RecordTimeout = time.Second
		h := lambda.WrapEach(anEngine(), b, w.handle)
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, lambda.ErrOverdue) {
				t.Errorf("panicked %t, with %v", ok, err)
			}
			close(w.free)
		}()
		_, _ = h.Handle(t.Context(), batch(message("1", "ignore"), message("2", "")))
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

// As many records are at work as Concurrency allows, ten by default; one group is one order, however
// much is allowed, and each record has all the time if none waits.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		concurrency, records, groups int
		took                         time.Duration
		most                         int
	}{
		"of five": {5, 20, 0, 4 * time.Second, 5}, "by default": {0, 11, 0, 2 * time.Second, 10}, "of groups": {100, 30, 3, 10 * time.Second, 3},
		"a worker for each": {0, 10, 0, time.Second, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				now, most := 0, 0
				order := make(map[string][]string)
				b := lambda.SQS
				b.Concurrency, b.RecordTimeout = tc.concurrency, time.Hour // more than there is
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				h := lambda.WrapEach(anEngine(), b, func(ctx context.Context, m events.SQSMessage) error {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					if ends, ok := ctx.Deadline(); name == "a worker for each" && (!ok || time.Until(ends) != time.Minute-defaults.Reserve) {
						t.Errorf("%s has %v", m.MessageId, time.Until(ends))
					}
					time.Sleep(time.Second) //nolint:forbidigo // virtual
					mu.Lock()
					defer mu.Unlock()
					now--
					g := m.Attributes["MessageGroupId"]
					order[g] = append(order[g], m.MessageId)
					return nil
				})
				var messages []events.SQSMessage
				for i := range tc.records {
					m := message(fmt.Sprint(100+i), "")
					if tc.groups > 0 {
						m = inGroup(fmt.Sprint(i%tc.groups), fmt.Sprint(100+i))
					}
					messages = append(messages, m)
				}
				begun := time.Now()
				re, err := h.Handle(ctx, batch(messages...))
				reported(t, re, err)
				if took := time.Since(begun); took != tc.took || most != tc.most {
					t.Errorf("took %v, at most %d at once; want %v, %d", took, most, tc.took, tc.most)
				}
				for g, ids := range order {
					if tc.groups > 0 && (len(ids) != tc.records/tc.groups || !slices.IsSorted(ids)) {
						t.Errorf("group %s was done as %v", g, ids)
					}
				}
			})
		})
	}
}

// Records of one key wait for a handler that doesn't come back, and are not tried; what it fails
// with in the end is told no more.
func TestSameKeyWaitsForAnOverdueHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, free := newHanging(), make(chan struct{})
		b := w.hooked(lambda.SQS)
		b.RecordTimeout = time.Second
		h := lambda.WrapEach(anEngine(), b, func(_ context.Context, m events.SQSMessage) error {
			if _ = w.do(m.MessageId); m.MessageId == "1" {
				<-free
				return errors.New("late")
			}
			return nil
		})
		re, err := h.Handle(t.Context(), batch(keyed(message("1", ""), "k"), keyed(message("2", ""), "k"), message("3", "")))
		reported(t, re, err, "1", "2")
		if why := w.why["2"]; !errors.Is(why, lambda.ErrNotRun) || !strings.Contains(why.Error(), "with its key") {
			t.Errorf("the second of its key isn't run: %v", why)
		}
		close(free)
		synctest.Wait()
		w.ran(t, "1", "3")
		w.told.ran(t, "failed 1", "not tried 2")
		if !errors.Is(w.why["1"], lambda.ErrOverdue) {
			t.Errorf("the first is told as %v", w.why["1"])
		}
	})
}

// Records without a key are not one another's: they don't wait for each other.
func TestEachWithoutKeyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := lambda.SQS.WithKey(func(events.SQSMessage) (string, error) { return "", nil })
		b.Concurrency = 2
		var both sync.WaitGroup
		both.Add(b.Concurrency)
		h := lambda.WrapEach(anEngine(func(o *idem.Options) { o.Key = idem.KeyOptional }), b,
			func(context.Context, events.SQSMessage) error {
				both.Done()
				both.Wait() // for ever, one after the other
				return nil
			})
		re, err := h.Handle(t.Context(), batch(message("1", ""), message("2", "")))
		reported(t, re, err)
	})
}
