package worker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
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

// Only who uses up a share, and for nothing, has less of it the next time.
func TestShareOfEachTurn(t *testing.T) {
	t.Parallel()
	const full = 4 * time.Second
	for name, tc := range map[string]struct {
		now      time.Duration // of the share; 0: all
		others   time.Duration // in which the time of all ends; 0: not before the share's
		takes    time.Duration
		progress bool
		want     time.Duration
	}{
		"it is used up for nothing":                 {takes: time.Hour, want: full / 2},
		"it is used up for something":               {takes: time.Hour, progress: true, want: full},
		"the time of others is up":                  {others: time.Second, takes: time.Hour, want: full},
		"its caller began to wait a bit earlier":    {others: full - time.Millisecond, takes: time.Hour, want: full / 2},
		"its caller ends a tenth earlier":           {others: full - full/10, takes: time.Hour, want: full / 2},
		"whoever fails at once doesn't use it up":   {now: time.Second, takes: time.Millisecond, want: full / 2},
		"whoever is there again has it twice":       {now: time.Second, takes: time.Millisecond, progress: true, want: full / 2},
		"nobody has less than what shows a service": {now: leastShare, takes: time.Hour, want: leastShare},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newShare(full)
				if tc.now > 0 {
					s.set(tc.now)
				}
				ctx := t.Context()
				if tc.others > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.others)
					defer cancel()
				}
				turns := 0
				s.use(ctx, func(ctx context.Context) (progress, left bool) {
					turns++
					sleep(ctx, tc.takes)
					return tc.progress, true
				})
				if s.get() != tc.want || turns != 1 {
					t.Errorf("its share is %v after %d turns, want %v after one", s.get(), turns, tc.want)
				}
			})
		})
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// At ease a share is handed out again, six times, to who makes progress and has more to do.
func TestTurnsAtEase(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		progress, left, gone bool
		want                 int
	}{
		"more to do":         {progress: true, left: true, want: 6},
		"all is done":        {progress: true, want: 1},
		"nothing is done":    {left: true, want: 1},
		"the time is all up": {progress: true, left: true, gone: true, want: 1},
	} {
		ctx, cancel := context.WithCancel(atEase(t.Context()))
		turns := 0
		newShare(time.Minute).use(ctx, func(context.Context) (progress, left bool) {
			if turns++; tc.gone {
				cancel()
			}
			return tc.progress, tc.left
		})
		if cancel(); turns != tc.want {
			t.Errorf("%s: %d turns, want %d", name, turns, tc.want)
		}
	}
}

// partial takes a job in its time, and none after it.
type partial struct{ asked []int }

func (p *partial) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	p.asked = append(p.asked, len(batch))
	<-ctx.Done()
	errs := make([]error, len(batch))
	for i := range errs[1:] {
		errs[i+1] = ctx.Err()
	}
	return errs
}

// A sink is asked again for what is left alone; what then has had no time says so.
func TestTurnsTakeWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sink := &partial{}
		errs := shareOut(sink, time.Second).Deliver(atEase(t.Context()), make([]jobs.Delivery, 3))
		if diff := cmp.Diff([]int{3, 2, 1}, sink.asked); diff != "" || errors.Join(errs...) != nil {
			t.Errorf("%v, asked for (-want +got):\n%s", errs, diff)
		}
		errs = shareOut(sink, time.Second).Deliver(t.Context(), make([]jobs.Delivery, 2))
		if errs[0] != nil || !errors.Is(errs[1], jobs.ErrSinkDown) || !errors.Is(errs[1], context.DeadlineExceeded) {
			t.Errorf("without ease: %v", errs)
		}
	})
}

// slowQueue takes one ticket of each call, in its time.
type slowQueue struct{ takes time.Duration }

func (q *slowQueue) Put(ctx context.Context, tickets []jobs.Ticket) []error {
	sleep(ctx, q.takes)
	return append(make([]error, 1), slices.Repeat([]error{ctx.Err()}, len(tickets)-1)...)
}

// The queue has a share, too: it answers for each ticket, and is asked once.
func TestShareOfTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &sharedQueue{&slowQueue{time.Hour}, newShare(4 * time.Second)}
		began := time.Now()
		errs := q.Put(atEase(t.Context()), make([]jobs.Ticket, 2))
		if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], context.DeadlineExceeded) || time.Since(began) != 4*time.Second {
			t.Errorf("%v after %v", errs, time.Since(began))
		}
		if q.Put(t.Context(), make([]jobs.Ticket, 2)); q.get() != 4*time.Second {
			t.Error("a queue that takes tickets has less time")
		}
	})
}

// timed is a sink that takes so long for a job.
func timed(takes *time.Duration) jobs.SinkFunc {
	return func(ctx context.Context, _ jobs.Delivery) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(*takes):
			return nil
		}
	}
}

func delivered(t *testing.T, errs []error) (n int) {
	t.Helper()
	for i, err := range errs {
		switch {
		case err == nil:
			n++
		case !errors.Is(err, jobs.ErrSinkDown) && !errors.Is(err, jobs.ErrHeldBack):
			t.Fatalf("the error of job %d counts against it: %v", i, err)
		}
	}
	return n
}

// A sink that takes longer for a job than what is left of its share doesn't have its
// jobs parked, and delivers them where the stream doesn't wait.
func TestShareOfASlowSink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		takes := time.Hour
		sink := shareOut(timed(&takes), 4*time.Second)
		many := make([]jobs.Delivery, 20)
		for range 6 {
			delivered(t, sink.Deliver(t.Context(), many))
		}
		takes = 2 * leastShare
		if n := delivered(t, sink.Deliver(t.Context(), many[:1])); n != 0 {
			t.Fatal("the share is not used up: the test shows nothing")
		}
		if n := delivered(t, sink.Deliver(atEase(t.Context()), many)); n != len(many) {
			t.Errorf("from the queue: %d of %d", n, len(many))
		}
	})
}

// A sink that works gets its time back, also if there is more to do than it has time for.
func TestShareGrowsUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		takes := time.Hour
		sink := shareOut(timed(&takes), 4*time.Second)
		for range 5 {
			delivered(t, sink.Deliver(t.Context(), make([]jobs.Delivery, 50)))
		}
		takes = 19 * time.Millisecond
		var got []int
		for range 4 {
			got = append(got, delivered(t, sink.Deliver(t.Context(), make([]jobs.Delivery, 500))))
		}
		if diff := cmp.Diff([]int{13, 26, 52, 105}, got); diff != "" {
			t.Errorf("jobs of each batch (-want +got):\n%s", diff)
		}
	})
}

// A sink that hangs is waited for once at ease, and not for each page of a sweep.
func TestEaseOfASinkThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		takes := time.Hour
		sink, ctx, began := shareOut(timed(&takes), 4*time.Second), atEase(t.Context()), time.Now()
		for range 5 {
			delivered(t, sink.Deliver(ctx, make([]jobs.Delivery, 50)))
		}
		if took := time.Since(began); took != 4*time.Second+4*leastShare {
			t.Errorf("it took %v", took)
		}
		if sink.(*sharedSink).now != 4*time.Second {
			t.Error("the stream's share is cut")
		}
		takes = leastShare / 2
		if n := delivered(t, sink.Deliver(ctx, make([]jobs.Delivery, 50))); n != 50 {
			t.Errorf("%d of 50 after it is there again", n)
		}
	})
}

// A second turn is for those for which there was no time: it overtakes none of a group
// that failed by itself.
func TestTurnsKeepTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		bad := errors.New("550 no such user")
		sink := shareOut(jobs.SinkFunc(func(ctx context.Context, d jobs.Delivery) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
			if got = append(got, d.JobID); d.JobID == "a1" {
				return bad
			}
			return nil
		}), 2*time.Second)
		var batch []jobs.Delivery
		for _, id := range []string{"a1", "b1", "a2", "c1", "b2"} {
			batch = append(batch, jobs.Delivery{JobID: id, Group: id[:1]})
		}
		errs := sink.Deliver(atEase(t.Context()), batch)
		if diff := cmp.Diff([]string{"a1", "b1", "c1", "b2"}, got); diff != "" || !errors.Is(errs[0], bad) || errs[2] == nil || errs[1] != nil || errs[3] != nil || errs[4] != nil {
			t.Errorf("%v; tried (-want +got):\n%s", errs, diff)
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
	w := &Worker{handler: completer.New(oneRecord{}, completer.NewQueue(noQueue{}, "url"), asked)}
	body := `{"Records":[{"messageId":"1","eventSource":"aws:sqs","body":"{\"pk\":\"v1##k\",\"id\":\"i\",\"due_ms\":1}"}]}`
	if out, err := w.Invoke(t.Context(), []byte(body)); err != nil || asked.ctx == nil || easeOf(asked.ctx) == nil {
		t.Errorf("answered %s, %v, with the context %v", out, err, asked.ctx)
	}
}

// A kind of a route without a sink stays one.
func TestShareOfNoSink(t *testing.T) {
	t.Parallel()
	if got := shareOut(jobs.Route{"a": nil, "b": panicking{}}, time.Second).(jobs.Route); len(got) != 1 || got["b"] == nil {
		t.Errorf("got %v", got)
	}
}
