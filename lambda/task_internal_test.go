package lambda

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
)

func newTask(lane time.Time) *task {
	return &task{lane: lane, begun: make(chan struct{}), done: make(chan struct{})}
}

// A handler begins once, in its time. It begins again only after it has returned, without more
// time; and not after the report has left without it.
func TestHandlerBeginsInItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		begins := func(tk *task, ctx context.Context) bool {
			_, cancel, ok := tk.enter(ctx)
			if ok {
				cancel()
			}
			return ok
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if begins(newTask(time.Time{}), ended) {
			t.Error("it begins though the event's time is over")
		}
		if begins(newTask(now), t.Context()) {
			t.Error("it begins at the end of its lane")
		}
		for name, tt := range map[string]struct {
			lane  time.Time
			limit time.Duration
			until time.Time
		}{
			"for ever":                {time.Time{}, 0, time.Time{}},
			"its lane's time":         {now.Add(time.Minute), 0, now.Add(time.Minute)},
			"its own limit":           {now.Add(time.Minute), time.Second, now.Add(time.Second)},
			"a limit beyond the lane": {now.Add(time.Minute), time.Hour, now.Add(time.Minute)},
			"only a limit":            {time.Time{}, time.Second, now.Add(time.Second)},
		} {
			tk := newTask(tt.lane)
			tk.limit = tt.limit
			ctx, cancel, ok := tk.enter(t.Context())
			deadline, _ := ctx.Deadline()
			if !ok || !deadline.Equal(tt.until) || !tk.until.Equal(tt.until) {
				t.Errorf("%s: begins %v, until %v, want %v", name, ok, deadline, tt.until)
			}
			cancel()
		}
		tk := newTask(now.Add(time.Minute))
		if !begins(tk, t.Context()) || begins(tk, t.Context()) {
			t.Error("it doesn't begin once")
		}
		if tk.leave(); !begins(tk, t.Context()) || !tk.until.Equal(now.Add(time.Minute)) {
			t.Error("it doesn't begin again after it has returned")
		}
		tk.leave()
		tk.lane = time.Time{}   // as if the next lane's
		time.Sleep(time.Minute) //nolint:forbidigo // virtual
		if begins(tk, t.Context()) {
			t.Error("it begins again when its time is over")
		}
	})
}

// What becomes of a handler when the report is made.
func TestReportWithoutAHandler(t *testing.T) {
	t.Parallel()
	notTried := &idem.Error{Op: "start", Err: ErrNotRun}
	for name, tt := range map[string]struct {
		before                     func(*task)
		gaveUp, ran, given, enters bool
	}{
		"not begun": {func(*task) {}, false, false, false, false},
		"running":   {func(tk *task) { tk.enter(t.Context()) }, true, true, true, false},
		"returned":  {func(tk *task) { tk.enter(t.Context()); tk.leave() }, false, true, false, true},
	} {
		tk := newTask(time.Time{})
		if tk.ran() || tk.givenUp() || !tk.untried(notTried) || tk.untried(errors.New("x")) {
			t.Errorf("%s: it was tried before it began", name)
		}
		tt.before(tk)
		if got := tk.giveUp(); got != tt.gaveUp || tk.ran() != tt.ran || tk.givenUp() != tt.given || tk.untried(notTried) == tt.ran {
			t.Errorf("%s: given up %v, ran %v, overdue %v", name, got, tk.ran(), tk.givenUp())
		}
		tk.leave()
		if tk.givenUp() != tt.given {
			t.Errorf("%s: it comes back into the report", name)
		}
		if _, _, enters := tk.enter(t.Context()); enters != tt.enters {
			t.Errorf("%s: it begins after the report: %v", name, enters)
		}
	}
	now := time.Now()
	if a := earliest(time.Time{}, now); !a.Equal(now) {
		t.Errorf("of none and now the earliest is %v", a)
	}
	if a := earliest(now, now.Add(1)); !a.Equal(now) {
		t.Errorf("the earliest is %v", a)
	}
	if a := earliest(now.Add(1), now); !a.Equal(now) {
		t.Errorf("the earliest is %v", a)
	}
}
