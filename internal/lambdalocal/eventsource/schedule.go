package eventsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/samekey/samekey/internal/lambdalocal"
)

// Schedule invokes a function by the clock. Function and one of Expression and
// Every are required.
type Schedule struct {
	// Function is invoked with Input.
	Function lambdalocal.Invoker
	// Name is the schedule's, told in the event. Default "schedule".
	Name string
	// Expression is rate(…) or cron(…) as EventBridge writes it; at(…) isn't
	// known.
	Expression string
	// Timezone is the IANA name of the zone that a cron expression is meant in.
	// Default UTC.
	Timezone string
	// Every, if positive, is used in place of Expression.
	Every time.Duration
	// Input is the payload. Default: the event of EventBridge Scheduler or, with
	// Rule, of an EventBridge rule.
	Input []byte
	// Rule says that this is an EventBridge rule (SAM's Schedule), not a
	// schedule of EventBridge Scheduler (SAM's ScheduleV2).
	Rule bool
	// Disabled makes a schedule that runs by Tick only.
	Disabled bool

	// Hooks are told what happens.
	Hooks Hooks
	// Logger gets a line for each failed run; nil discards them.
	Logger *slog.Logger
}

// Timer is a running [Schedule]. Runs that are due while it is paused are left
// out; Tick works all the same.
type Timer struct {
	*Mapping
	schedule Schedule
	observer observer
	running  chan struct{} // holds a token while the function runs
}

// Start checks the description and begins. The first run of a rate is one
// interval from now. Runs don't overlap: one that is due while another goes on
// is left out, and a failed one isn't repeated. The source ends when ctx does.
func (s Schedule) Start(ctx context.Context) (*Timer, error) {
	if s.Name == "" {
		s.Name = "schedule"
	}
	next, err := s.plan()
	if err != nil {
		return nil, fmt.Errorf("eventsource: schedule %s: %w", s.Name, err)
	}
	t := &Timer{
		Mapping:  &Mapping{},
		schedule: s,
		observer: newObserver(s.Hooks, s.Logger, s.Name),
		running:  make(chan struct{}, 1),
	}
	ctx, t.cancel = context.WithCancel(ctx)
	if !s.Disabled {
		t.wg.Go(func() { t.watch(ctx, next) })
	}
	return t, nil
}

// plan returns what tells the next run after a time; false is none.
func (s Schedule) plan() (func(time.Time) (time.Time, bool), error) {
	switch {
	case s.Function == nil:
		return nil, errors.New("no Function")
	case s.Every < 0:
		return nil, fmt.Errorf("interval %s is negative", s.Every)
	case s.Every > 0:
		return every(s.Every), nil
	}
	return parseExpression(s.Expression, s.Timezone)
}

func (t *Timer) watch(ctx context.Context, next func(time.Time) (time.Time, bool)) {
	for after := time.Now(); ; {
		due, more := next(after)
		if !more || !sleep(ctx, time.Until(due)) {
			return
		}
		// A machine that slept has one run to make up for, not all of them.
		if after = due; time.Now().After(due) {
			after = time.Now()
		}
		if t.Paused() {
			continue
		}
		select {
		case t.running <- struct{}{}:
			t.wg.Go(func() { _ = t.run(ctx, due) })
		default:
		}
	}
}

// Tick invokes the function now and returns when it has answered, with the
// function's error. It waits for a run that is under way first. ctx bounds how
// long Tick waits, not the function.
func (t *Timer) Tick(ctx context.Context) error {
	select {
	case t.running <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("eventsource: tick %s: %w", t.schedule.Name, ctx.Err())
	}
	if err := t.run(ctx, time.Now()); err != nil {
		return fmt.Errorf("eventsource: tick %s: %w", t.schedule.Name, err)
	}
	return nil
}

// run invokes the function, for which the caller holds the token.
func (t *Timer) run(ctx context.Context, at time.Time) error {
	defer func() { <-t.running }()
	t.gate.count()
	defer t.gate.end()
	_, err := t.schedule.Function.Invoke(ctx, t.schedule.payload(at))
	if ctx.Err() == nil {
		t.observer.invoked(ctx, Invocation{Err: err})
	}
	return err
}
