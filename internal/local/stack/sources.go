package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/local/sam"
)

func (s *Stack) startSources(ctx context.Context, functions []*function) error {
	var errs []error
	for _, f := range functions {
		for _, e := range f.def.Events {
			var err error
			switch {
			case e.Stream != nil:
				f.tellUnreported(ctx, e.Name, e.Stream.Batching)
				err = s.startStream(ctx, f, e.Stream)
			case e.Queue != nil:
				f.tellUnreported(ctx, e.Name, e.Queue.Batching)
				err = s.startQueue(ctx, f, e.Queue)
			case e.Schedule != nil:
				err = s.startSchedule(ctx, f, e.Schedule)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("event %s of function %s: %w", e.Name, f.def.ID, err))
			}
		}
	}
	return errors.Join(errs...)
}

// tellUnreported warns if the event's mapping is enabled and doesn't set
// ReportBatchItemFailures. Without this setting, Lambda ignores the function's report of
// failed records.
func (f *function) tellUnreported(ctx context.Context, event string, b sam.Batching) {
	if !b.ReportItemFailures && !b.Disabled {
		f.log.WarnContext(ctx, "the mapping has no ReportBatchItemFailures: records that the function reports as failed count as done", "event", event)
	}
}

func (s *Stack) startStream(ctx context.Context, f *function, def *sam.StreamEvent) error {
	if s.db == nil {
		return fmt.Errorf("%s is no stream of this template's tables", def.ARN)
	}
	if def.Disabled {
		f.log.InfoContext(ctx, "the stream's mapping is disabled and isn't run")
		return nil
	}
	if def.ParallelizationFactor > 1 {
		f.log.InfoContext(ctx, "ParallelizationFactor is ignored: each shard of the stream has one invocation at a time")
	}
	source := eventsource.Stream{
		Function: f, FunctionARN: f.def.ARN, API: s.db.streams, ARN: def.ARN,
		StartingPosition: def.StartingPosition, BatchSize: def.BatchSize,
		MaximumBatchingWindow: orOverride(s.opts.Overrides.StreamWindow, def.Window),
		Filters:               def.Filters, ReportBatchItemFailures: def.ReportItemFailures,
		BisectBatchOnFunctionError: def.Bisect, MaximumRetryAttempts: def.Retries, MaximumRecordAge: def.MaxAge,
		Logger: f.log,
	}
	if def.OnFailure != "" {
		source.OnFailure = func(ctx context.Context, failure eventsource.Failure) error {
			return s.fail(ctx, f, def.OnFailure, failure.Message(), failure.Object())
		}
	}
	m, err := source.Start(ctx)
	if err != nil {
		return err
	}
	f.mappings = append(f.mappings, m)
	return nil
}

func (s *Stack) startQueue(ctx context.Context, f *function, def *sam.QueueEvent) error {
	if def.Disabled {
		f.log.InfoContext(ctx, "the queue's mapping is disabled and isn't run")
		return nil
	}
	queue := s.queues.made[def.Queue]
	m, err := eventsource.Queue{
		Function: f, FunctionName: f.def.Name, API: s.queues.client, URL: queue.url, ARN: queue.arn,
		BatchSize: def.BatchSize, MaximumBatchingWindow: def.Window, Filters: def.Filters,
		ReportBatchItemFailures: def.ReportItemFailures, MaximumConcurrency: def.MaxConcurrency,
		Dropped: func(ctx context.Context, body string) error {
			_, err := s.queues.send(ctx, queue.dead, []byte(body))
			return err
		},
		Logger: f.log,
	}.Start(ctx)
	if err != nil {
		return err
	}
	f.mappings = append(f.mappings, m)
	return nil
}

func (s *Stack) closeSources() error {
	running := s.running()
	errs := make([]error, 0, len(running))
	for _, f := range running {
		errs = append(errs, f.closeSources())
	}
	return errors.Join(errs...)
}

func (s *Stack) startSchedule(ctx context.Context, f *function, def *sam.ScheduleEvent) error {
	t, err := s.schedule(f, def).Start(ctx)
	if err != nil {
		return err
	}
	f.timers = append(f.timers, t)
	return nil
}

func (s *Stack) schedule(f *function, def *sam.ScheduleEvent) eventsource.Schedule {
	schedule := eventsource.Schedule{
		Function: f, Async: asyncFunction{s.async, f}, Name: def.Name, Expression: def.Expression, Timezone: def.Timezone,
		Every: orOverride(s.opts.Overrides.SweepEvery, 0), Rule: def.Rule, Disabled: def.Disabled,
		Logger: f.log,
	}
	if def.Input != "" {
		schedule.Input = []byte(def.Input)
	}
	return schedule
}

// Stack.fail reports a failed event of a function to the OnFailure destination. If the
// destination is a queue of the stack, fail sends message to the queue and adds message
// to the list of failures. For any other destination, fail adds object to the list and
// sends nothing. For a stream's batch, only object contains the event.
func (s *Stack) fail(ctx context.Context, f *function, destination string, message, object []byte) error {
	isQueue, err := s.queues.send(ctx, destination, message)
	record := object
	if isQueue {
		record = message
	}
	s.failed.add(Failed{Function: f.def.ID, Destination: destination, Time: time.Now().UTC(), Record: record})
	if err != nil {
		return fmt.Errorf("destination %s: %w", destination, err)
	}
	return nil
}

func orOverride(override *time.Duration, d time.Duration) time.Duration {
	if override != nil {
		return *override
	}
	return d
}
