package stream

import (
	"context"
	"log/slog"

	"github.com/samekey/samekey/idem/jobs"
)

// Log returns hooks that log deliveries, tickets and tries at level Debug. If an operation becomes
// stuck, the hooks log it at level Error. Drain, completer and sweep themselves log failures to
// their own Logger, and a sweep also logs each of its runs. A nil logger means slog.Default().
//
// The lines name the record by its short hash, and never contain the arguments of a job.
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
