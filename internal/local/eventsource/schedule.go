package eventsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// Schedule invokes a function at set times. Two fields are required: Function, and either
// Expression or Every.
type Schedule struct {
	// Function is invoked with Input.
	Function lambdarun.Invoker
	// Async, if not nil, replaces Function in scheduled runs. Async may retry failed
	// runs, as Lambda does with asynchronous events. Timer.Tick always invokes
	// Function.
	Async lambdarun.Invoker
	// Name is the schedule's name in the event. Default "schedule".
	Name string
	// Expression is an EventBridge expression: rate(…), cron(…) or at(…). If Rule is
	// true, at(…) is an error.
	Expression string
	// Timezone is the IANA name of the time zone of cron(…) and at(…). Default UTC.
	Timezone string
	// Every, if positive, is the interval between runs. Expression then has no effect, but
	// must be valid or empty.
	Every time.Duration
	// Input is the payload. If Input is nil, the payload is the event that an
	// EventBridge rule or EventBridge Scheduler sends (see Rule).
	Input []byte
	// Rule is true for an EventBridge rule (SAM's Schedule), and false for EventBridge
	// Scheduler (SAM's ScheduleV2).
	Rule bool
	// Disabled turns scheduled runs off. Timer.Tick still works.
	Disabled bool

	Hooks Hooks
	// Logger gets a line for each failed run. If it is nil, nothing is logged.
	Logger *slog.Logger
}

// Timer is a running [Schedule]. Runs that are due during a pause are skipped. Tick works
// during a pause, too.
type Timer struct {
	*Mapping
	schedule Schedule
	observer observer
}

// Start checks s's fields and starts the schedule. With rate(…) or Every, the first run
// is one interval after Start. An at(…) in the past never runs. Runs may overlap,
// because a schedule, like EventBridge, doesn't wait for the function. The timer stops
// when ctx ends.
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
	}
	ctx, t.cancel = context.WithCancel(ctx)
	if !s.Disabled {
		t.wg.Go(func() { t.watch(ctx, next) })
	}
	return t, nil
}

// Schedule.plan returns the schedule's plan. The plan is a function that returns the
// time of the next run after a given time, or false if there are no more runs.
func (s Schedule) plan() (func(time.Time) (time.Time, bool), error) {
	switch {
	case s.Function == nil:
		return nil, errors.New("no Function")
	case s.Every < 0:
		return nil, fmt.Errorf("interval %s is negative", s.Every)
	case s.Every > 0 && s.Expression == "":
		return every(s.Every), nil
	}
	plan, err := parseExpression(s.Expression, s.Timezone, s.Rule)
	if err == nil && s.Every > 0 {
		plan = every(s.Every)
	}
	return plan, err
}

func (t *Timer) watch(ctx context.Context, next func(time.Time) (time.Time, bool)) {
	for after := time.Now(); ; {
		due, more := next(after)
		if !more || !sleep(ctx, time.Until(due)) {
			return
		}
		// If the machine slept through several runs, only one is made.
		if after = due; time.Now().After(due) {
			after = time.Now()
		}
		if t.Paused() {
			continue
		}
		invoker := t.schedule.Async
		if invoker == nil {
			invoker = t.schedule.Function
		}
		t.wg.Go(func() { _ = t.run(ctx, invoker, due) })
	}
}

// Tick invokes the function now, even if other runs are active. It waits for the
// function's answer or the end of ctx, and returns the invocation's error.
func (t *Timer) Tick(ctx context.Context) error {
	if err := t.run(ctx, t.schedule.Function, time.Now()); err != nil {
		return fmt.Errorf("eventsource: tick %s: %w", t.schedule.Name, err)
	}
	return nil
}

func (t *Timer) run(ctx context.Context, invoker lambdarun.Invoker, at time.Time) error {
	_, err := invoker.Invoke(ctx, t.schedule.payload(at))
	if ctx.Err() == nil {
		t.observer.invoked(ctx, Invocation{Err: err})
	}
	return err
}
