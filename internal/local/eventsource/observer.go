package eventsource

import (
	"context"
	"log/slog"
	"time"
)

// observer calls the hooks and writes the log.
type observer struct {
	hooks Hooks
	log   *slog.Logger
}

func newObserver(hooks Hooks, log *slog.Logger, source string) observer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return observer{hooks, log.With("source", source)}
}

func (o observer) invoked(ctx context.Context, i Invocation) {
	switch {
	case i.Err != nil:
		o.log.WarnContext(ctx, "invocation failed", "records", i.Records, "failed", i.Failed, "error", i.Err)
	case i.Failed > 0:
		o.log.WarnContext(ctx, "records failed", "records", i.Records, "failed", i.Failed)
	}
	if o.hooks.Invoked != nil {
		o.hooks.Invoked(i)
	}
}

// observer.ignored logs that a report of failed records was ignored, as Lambda would
// ignore it.
func (o observer) ignored(ctx context.Context, records int) {
	if records > 0 {
		o.log.WarnContext(ctx, "records were reported as failed and count as done: the mapping has no ReportBatchItemFailures", "failed", records)
	}
}

func (o observer) filtered(records int) {
	if records > 0 && o.hooks.Filtered != nil {
		o.hooks.Filtered(records)
	}
}

func (o observer) discarded(ctx context.Context, f Failure) {
	o.log.ErrorContext(ctx, "batch given up", "condition", f.RequestContext.Condition,
		"records", f.Batch.BatchSize, "first", f.Batch.StartSequenceNumber)
	if o.hooks.Discarded != nil {
		o.hooks.Discarded(f)
	}
}

// observer.failed reports an error of the source, not of the function. After the end of
// ctx it reports nothing.
func (o observer) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	o.log.WarnContext(ctx, "event source failed", "error", err)
	if o.hooks.Error != nil {
		o.hooks.Error(err)
	}
}

// sleep waits for d and returns true, or returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// growing returns base, doubled for each failure after the first, but at most base times
// limit.
func growing(base time.Duration, failures, limit int) time.Duration {
	factor := 1
	for range failures - 1 {
		if factor *= 2; factor >= limit {
			return base * time.Duration(limit)
		}
	}
	return base * time.Duration(factor)
}
