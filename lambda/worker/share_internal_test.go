package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
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
