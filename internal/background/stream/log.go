package stream

import (
	"context"
	"log/slog"

	"github.com/samekey/samekey/idem/jobs"
)

// Log returns hooks that log deliveries, tickets and tries at level Debug, and an
// operation that becomes stuck at level Error. A nil logger means slog.Default().
// Drain, completer and sweep log failures, each to its own Logger. A sweep also logs
// each of its runs.
//
// The lines name the record by its short hash, and never contain the arguments of a
// job.
func Log(logger *slog.Logger) Hooks {
	if logger == nil {
		logger = slog.Default()
	}
	return Hooks{
		Delivered: func(ctx context.Context, d jobs.Delivery) {
			logger.DebugContext(ctx, "job delivered", "operation", d.Operation, "job", d.JobID, "kind", d.Kind)
		},
		Delayed: func(ctx context.Context, t jobs.Ticket) {
			logger.DebugContext(ctx, "jobs delayed", "record", t.Record(), "operation", t.Operation, "due", t.Due)
		},
		Queued: func(ctx context.Context, t jobs.Ticket) {
			logger.DebugContext(ctx, "ticket queued", "record", t.Record(), "function", t.Function, "due", t.Due)
		},
		Tried: func(ctx context.Context, t Try) {
			logger.DebugContext(ctx, "ticket tried", "record", t.Ticket.Record(), "function", t.Ticket.Function,
				"outcome", t.Outcome, "error", t.Err)
		},
		MadeStuck: func(ctx context.Context, e Entry) {
			logger.ErrorContext(ctx, "operation is stuck: it waits for an operator", "record", e.Record, "operation", e.ID, "route", e.Route,
				"phase", e.Phase, "tries", e.Tries)
		},
	}
}
