package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda/completer"
)

// stubSink takes as long as it is told to, or as its context lets it.
type stubSink struct{ takes time.Duration }

func (s *stubSink) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	select {
	case <-ctx.Done():
		errs := make([]error, len(batch))
		for i := range errs {
			errs[i] = jobs.ErrSinkDown
		}
		return errs
	case <-time.After(s.takes):
		return nil
	}
}

// A sink that hangs gets less and less of the time, and all of it soon after it is
// there again.
func TestShareOfASinkThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const never = time.Hour
		hanging := &stubSink{never}
		route := shareOut(jobs.Route{"a": hanging, "b": hanging, "c": &stubSink{}}, 4*time.Second).(jobs.Route)
		var took []time.Duration
		deliver := func(ctx context.Context) {
			began := time.Now()
			route.Deliver(ctx, []jobs.Delivery{{Kind: "a"}, {Kind: "b"}, {Kind: "c"}})
			took = append(took, time.Since(began))
		}
		for range 6 {
			deliver(t.Context())
		}
		hanging.takes = 100 * time.Millisecond
		for range 5 {
			deliver(t.Context())
		}
		hanging.takes = never
		deliver(t.Context())
		want := []time.Duration{4 * time.Second, 2 * time.Second, time.Second, 500 * time.Millisecond, 250 * time.Millisecond, 250 * time.Millisecond}
		for range 5 {
			want = append(want, 100*time.Millisecond)
		}
		if diff := cmp.Diff(append(want, 4*time.Second), took); diff != "" {
			t.Errorf("times of the batches (-want +got):\n%s", diff)
		}
		if !route.Together("a", "b") || route.Together("a", "c") {
			t.Error("kinds of one sink are not together, or others are")
		}
	})
}

// A sink that is out of time for all has not used up its own.
func TestShareIsNotCutForTheTimeOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare(4 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.use(ctx, func(ctx context.Context) { <-ctx.Done() })
		if s.now != s.full {
			t.Errorf("its share is %v", s.now)
		}
	})
}

// A drain began to wait for its queue a moment before the share was handed out: the
// queue has used the share up all the same.
func TestShareIsCutWhereItsCallerEndsABitEarlier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare(4 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), s.full-time.Millisecond)
		defer cancel()
		s.use(ctx, func(ctx context.Context) { <-ctx.Done() })
		if s.now != s.full/2 {
			t.Errorf("its share is %v", s.now)
		}
	})
}

// A sink that takes longer for a job than what is left of its share doesn't have its
// jobs parked, and delivers them where the stream doesn't wait.
func TestShareOfASlowSink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := jobs.SinkFunc(func(ctx context.Context, _ jobs.Delivery) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(2 * leastShare):
				return nil
			}
		})
		sink := shareOut(slow, 4*time.Second)
		many := make([]jobs.Delivery, 20)
		for range 6 {
			for i, err := range sink.Deliver(t.Context(), many) {
				if err != nil && !errors.Is(err, jobs.ErrSinkDown) && !errors.Is(err, jobs.ErrHeldBack) {
					t.Fatalf("the error of job %d counts against it: %v", i, err)
				}
			}
		}
		if errs := sink.Deliver(t.Context(), many[:1]); errs[0] == nil {
			t.Fatal("the share is not used up: the test shows nothing")
		}
		if errs := sink.Deliver(atEase(t.Context()), many[:1]); errs[0] != nil {
			t.Errorf("from the queue: %v", errs)
		}
	})
}

// A sink for all kinds that panics is unavailable, as one of a route is.
func TestPanicOfASinkForAll(t *testing.T) {
	t.Parallel()
	errs := shareOut(panicking{}, time.Minute).Deliver(t.Context(), make([]jobs.Delivery, 2))
	if len(errs) != 2 || !errors.Is(errs[0], jobs.ErrSinkDown) || !errors.Is(errs[1], jobs.ErrSinkDown) {
		t.Errorf("errors %v", errs)
	}
}

type panicking struct{}

func (panicking) Deliver(context.Context, []jobs.Delivery) []error { panic("boom") }

// askedFor is a resumer that keeps the context it was called with.
type askedFor struct{ ctx context.Context }

func (a *askedFor) Resume(ctx context.Context, _ jobs.Ticket) completer.TicketOutcome {
	a.ctx = ctx
	return completer.TicketOutcome{Kind: completer.TicketDone}
}

type oneRecord struct{ store.Store }

func (oneRecord) Load(context.Context, string) (*store.Record, error) {
	return &store.Record{ID: "i", State: store.Open, Keep: store.KeepOpen, Input: &store.Input{}}, nil
}

type noQueue struct{ completer.QueueAPI }

// An event of the queue doesn't hurry: nothing waits behind it.
func TestTicketsAreAtEase(t *testing.T) {
	t.Parallel()
	asked := &askedFor{}
	w := &Worker{tickets: completer.New(oneRecord{}, completer.NewQueue(noQueue{}, "url"), asked)}
	body := `{"Records":[{"messageId":"1","eventSource":"aws:sqs","body":"{\"pk\":\"v1##k\",\"id\":\"i\",\"due_ms\":1}"}]}`
	if out, err := w.Invoke(t.Context(), []byte(body)); err != nil || asked.ctx == nil || asked.ctx.Value(atEaseKey{}) == nil {
		t.Errorf("answered %s, %v, with the context %v", out, err, asked.ctx)
	}
}
