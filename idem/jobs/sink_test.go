package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/errlist"
)

// deliveries returns a delivery for each word: its kind, a slash, and its name,
// which is also its group.
func deliveries(words ...string) []jobs.Delivery {
	var batch []jobs.Delivery
	for _, w := range words {
		kind, name, _ := strings.Cut(w, "/")
		batch = append(batch, jobs.Delivery{JobID: w, Kind: kind, Group: name})
	}
	return batch
}

// A function whose receiver is down is called once, and not for each waiting job.
// A job that fails by itself delays only its group.
func TestSinkFuncThatIsDownIsCalledOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		calls string
		tried []bool
	}{
		"down":       {fmt.Errorf("mail server: %w", jobs.ErrSinkDown), "k/a k/b", []bool{true, true, false, false}},
		"a bad job":  {errors.New("no such address"), "k/a k/b k/c", []bool{true, true, false, true}},
		"all's well": {nil, "k/a k/b k/b k/c", []bool{true, true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			errs := jobs.SinkFunc(func(_ context.Context, d jobs.Delivery) error {
				calls = append(calls, d.JobID)
				if d.JobID == "k/b" {
					return tt.err
				}
				return nil
			}).Deliver(t.Context(), deliveries("k/a", "k/b", "k/b", "k/c"))
			var tried []bool
			for _, err := range errlist.Pad(errs, 4) {
				tried = append(tried, !errors.Is(err, jobs.ErrHeldBack))
			}
			if diff := cmp.Diff(tt.tried, tried); diff != "" || strings.Join(calls, " ") != tt.calls {
				t.Errorf("called %q, tried (-want +got):\n%s", calls, diff)
			}
		})
	}
}

type noted struct {
	got *[][]string
	err error
}

func (s *noted) Deliver(_ context.Context, batch []jobs.Delivery) []error {
	var ids []string
	for _, d := range batch {
		ids = append(ids, d.JobID)
	}
	*s.got = append(*s.got, ids)
	return slices.Repeat([]error{s.err}, len(batch))
}

// A sink of several kinds gets their jobs together: in their order, and only once
// if the sink is down. Other sinks continue.
func TestRouteHandsASinkItsKindsTogether(t *testing.T) {
	t.Parallel()
	var queue, topic [][]string
	shared := &noted{&queue, jobs.ErrSinkDown}
	plain := jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return nil }) // can't be compared
	route := jobs.Route{"a": shared, "b": shared, "c": &noted{&topic, nil}, "d": plain, "e": plain}
	errs := route.Deliver(t.Context(), deliveries("a/1", "c/1", "b/1", "d/1", "a/2", "x/1", "e/1"))
	if diff := cmp.Diff([][]string{{"a/1", "b/1", "a/2"}}, queue); diff != "" {
		t.Errorf("the shared one got (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"c/1"}}, topic); diff != "" {
		t.Errorf("the other one got (-want +got):\n%s", diff)
	}
	var ok []bool
	for _, err := range errs {
		ok = append(ok, err == nil)
	}
	if diff := cmp.Diff([]bool{false, true, false, true, false, false, true}, ok); diff != "" {
		t.Errorf("delivered (-want +got):\n%s: %v", diff, errs)
	}
}

// A sink that waits doesn't hold up another one, and one that panics is down.
func TestRouteWorksSideBySide(t *testing.T) {
	t.Parallel()
	called := make(chan struct{})
	route := jobs.Route{
		"patient": jobs.SinkFunc(func(ctx context.Context, _ jobs.Delivery) error {
			select {
			case <-called:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}),
		"quick": jobs.SinkFunc(func(context.Context, jobs.Delivery) error { close(called); return nil }),
		"bad":   panicking{},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	errs := route.Deliver(ctx, deliveries("patient/1", "quick/1", "bad/1", "bad/2"))
	for i, down := range []bool{false, false, true, true} {
		if (errs[i] != nil) != down || errors.Is(errs[i], jobs.ErrSinkDown) != down || down && strings.Contains(errs[i].Error(), "secret") {
			t.Errorf("job %d: %v", i, errs[i])
		}
	}
}

type panicking struct{}

func (panicking) Deliver(context.Context, []jobs.Delivery) []error { panic("secret") }

// A job whose time is over isn't handed out, and doesn't count as tried.
func TestSinkFuncStopsWithItsTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	errs := jobs.SinkFunc(func(context.Context, jobs.Delivery) error {
		calls++
		cancel()
		return nil
	}).Deliver(ctx, deliveries("k/a", "k/b"))
	if calls != 1 || errs[0] != nil || !errors.Is(errs[1], jobs.ErrHeldBack) || !errors.Is(errs[1], context.Canceled) {
		t.Errorf("%d calls, %v", calls, errs)
	}
}

// The text of a panic may hold the job's data, which no log and no record may have.
func TestSinkFuncTellsNoPanicsText(t *testing.T) {
	t.Parallel()
	for _, v := range []any{"card 4242", errors.New("card 4242")} {
		errs := jobs.SinkFunc(func(context.Context, jobs.Delivery) error { panic(v) }).Deliver(t.Context(), deliveries("k/a"))
		if errs[0] == nil || strings.Contains(errs[0].Error(), "4242") {
			t.Errorf("%T: %v", v, errs[0])
		}
	}
}
