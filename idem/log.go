package idem

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/base/redact"
)

// Log returns hooks that log one line at each call of [Hooks].Ended: when a request or
// a completer's try ends. At the level Debug, the hooks also log a line for each event
// as it happens. The line of a request has one of these levels:
//
//   - Error if people have to act: an operation got stuck or is blocked, a handler ran
//     without protection, an answer could not be stored, the store or the quota failed,
//     or a record is corrupt, can't be compared or lacks its answer;
//   - Warn if the request was refused (for any reason except that its key is in flight),
//     or an attempt took over, was overtaken, or ended without a stored answer;
//   - Info otherwise.
//
// The lines name the record by its short hash, and the engine puts no key, body, answer,
// header or query into them. The lines contain the first 256 bytes of a handler's error,
// without the query of a *url.Error. If logger is nil, Log uses slog.Default().
func Log(logger *slog.Logger) Hooks {
	if logger == nil {
		logger = slog.Default()
	}
	h := Hooks{Ended: func(ctx context.Context, s Summary) { logSummary(ctx, logger, &s) }}
	for _, one := range h.named() {
		*one.hook = func(ctx context.Context, ev Event) {
			if logger.Enabled(ctx, slog.LevelDebug) {
				logger.DebugContext(ctx, "request event", "event", ev.Name, "record", ev.Record, "operation", ev.ID, "route", ev.Route, "phase", ev.Phase,
					"status", ev.Status, "jobs", ev.Jobs, "resumed", ev.Resumed, "duration_ms", inMilliseconds(ev.Duration), "error", redact.Error(ev.Err))
			}
		}
	}
	return h
}

// The events that raise the level of a request's log line: grave ones to error, strange
// ones to warning.
var (
	grave   = []happening{evStuck, evBlocked, evUnstored, evFailed, evUnprotected}
	strange = []happening{evTakenOver, evMismatch, evLimited, evLeaseLost, evRefused, evReleased}
)

func logSummary(ctx context.Context, logger *slog.Logger, s *Summary) {
	level := slog.LevelInfo
	if s.happened(strange) {
		level = slog.LevelWarn
	}
	if s.happened(grave) {
		level = slog.LevelError
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	events, jobs := make([]string, 0, len(s.Happened)), 0
	for i := range s.Happened {
		events = append(events, s.Happened[i].Name)
		jobs += s.Happened[i].Jobs
	}
	logger.Log(ctx, level, "request ended", "events", strings.Join(events, " "), "record", s.Record, "operation", s.ID, "route", s.Route,
		"status", s.Status, "resumed", s.Resumed, "duration_ms", inMilliseconds(s.Duration), "jobs", jobs,
		"calls", s.Cost.Calls, "read_units", s.Cost.ReadUnits, "write_units", s.Cost.WriteUnits, "error", redact.Error(s.Err))
}

func (s *Summary) happened(names []happening) bool {
	return slices.ContainsFunc(s.Happened, func(ev Event) bool { return slices.Contains(names, happening(ev.Name)) })
}

func inMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
