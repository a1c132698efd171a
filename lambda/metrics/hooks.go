package metrics

import (
	"context"
	"errors"
	"strings"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/meter"
	"github.com/samekey/samekey/internal/metrictable"
	"github.com/samekey/samekey/internal/state"
)

// Hooks returns an engine's hooks, which write a line when a request ends. In
// [idem.ModeObserve] and [idem.ModeOff], the hooks instead write a line for each event
// Observed or Unprotected.
func (m *Metrics) Hooks() idem.Hooks {
	return idem.Hooks{Ended: m.ended, Observed: m.observed, Unprotected: m.unprotected}
}

func (m *Metrics) ended(_ context.Context, s idem.Summary) {
	l := &line{route: m.route(s.Route)}
	if s.Record != "" && !s.Resumed {
		l.count("Requests", 1)
	}
	l.measure("Duration", milliseconds(s.Duration))
	events := make([]string, 0, len(s.Happened))
	phases := make(map[string]float64)
	for i := range s.Happened {
		ev := &s.Happened[i]
		events = append(events, ev.Name)
		switch {
		case ev.Name == "TakenOver" && s.Resumed:
			l.count("Resumed", 1)
		case metrictable.Named(ev.Name).Source == metrictable.OfRequest: // the metric has the event's name
			l.count(ev.Name, 1)
		case ev.Phase != "":
			l.measure("PhaseDuration", milliseconds(ev.Duration))
			phases[ev.Phase] = milliseconds(ev.Duration)
		}
		if ev.Jobs > 0 {
			l.count("JobsStaged", float64(ev.Jobs))
		}
	}
	cost(l, s.Cost)
	l.property("record", s.Record)
	l.property("operation", s.ID)
	l.property("route", s.Route)
	l.property("events", strings.Join(events, " "))
	if s.Status != 0 {
		l.property("status", s.Status)
	}
	if len(phases) > 0 {
		l.property("phases", phases)
	}
	m.write(l)
}

func (m *Metrics) observed(_ context.Context, ev idem.Event) {
	l := &line{route: m.route(ev.Route)}
	l.count("Observed", 1)
	l.property("route", ev.Route)
	l.property("would", would(ev.Err))
	m.write(l)
}

// Metrics.unprotected counts a request in ModeOff. In ModeOpen ev.Err says why the
// request has no protection, and ended counts the request.
func (m *Metrics) unprotected(_ context.Context, ev idem.Event) {
	if ev.Err != nil {
		return
	}
	l := &line{route: m.route(ev.Route)}
	l.count(ev.Name, 1)
	l.property("route", ev.Route)
	l.property("events", ev.Name)
	m.write(l)
}

// The function would names the outcome that a request would have had in ModeEnforce. In
// ModeObserve, the engine reports this outcome as err.
func would(err error) string {
	for _, one := range []struct {
		err  error
		name string
	}{
		{idem.ErrReplay, "Replayed"}, {idem.ErrMismatch, "Mismatch"}, {idem.ErrInFlight, "InFlight"}, {idem.ErrQuota, "Limited"}, {idem.ErrUnavailable, "Failed"}, {idem.ErrCorrupt, "Failed"},
	} {
		if errors.Is(err, one.err) {
			return one.name
		}
	}
	return "Refused"
}

// faults maps each kind of failed call to its metric.
var faults = map[store.Fault]string{
	store.Throttled: "StoreThrottled", store.Conflict: "StoreConflict", store.Unknown: "StoreUnknown", store.Denied: "StoreDenied", store.Invalid: "StoreInvalid",
}

// cost adds the cost c of calls to the line. It adds nothing if the store counted no calls.
func cost(l *line, c store.Cost) {
	if c.Calls == 0 {
		return
	}
	l.count("StoreCalls", float64(c.Calls))
	if c.Retries > 0 {
		l.count("StoreRetries", float64(c.Retries))
	}
	if c.ReadUnits > 0 {
		l.count("ReadUnits", c.ReadUnits)
	}
	if c.WriteUnits > 0 {
		l.count("WriteUnits", c.WriteUnits)
	}
	for fault, n := range c.Faults {
		l.count(faults[fault], float64(n))
	}
}

// StoreHooks returns a store's hooks, which count DynamoDB calls outside of requests,
// such as those of the drain. The line of a request counts the request's calls.
func (m *Metrics) StoreHooks() dynamo.Hooks {
	return dynamo.Hooks{Called: func(ctx context.Context, c store.Call) {
		if meter.Of(ctx) != nil {
			return
		}
		m.add(ctx, "", func(l *line) {
			var meter meter.Meter
			meter.Add(c)
			cost(l, meter.Cost())
		}, "call", c.Op)
	}}
}

// StreamHooks returns the hooks of drain, completer and sweep. The worker of package
// lambda/worker has these hooks already, so don't call StreamHooks for it.
func (m *Metrics) StreamHooks() stream.Hooks {
	one := func(ctx context.Context, name, record string, properties ...any) {
		m.add(ctx, record, func(l *line) { l.count(name, 1) }, properties...)
	}
	entry := func(name string) func(context.Context, stream.Entry) {
		return func(ctx context.Context, e stream.Entry) {
			one(ctx, name, e.Record, "operation", e.ID, "route", e.Route, "phase", e.Phase, "job", e.Job)
		}
	}
	return stream.Hooks{
		Delivered: func(ctx context.Context, d jobs.Delivery) {
			one(ctx, "Delivered", "", "operation", d.Operation, "job", d.JobID)
		},
		Failed: func(ctx context.Context, d jobs.Delivery, err error) {
			if !errors.Is(err, jobs.ErrHeldBack) {
				one(ctx, "DeliveryFailed", "", "operation", d.Operation, "job", d.JobID)
			}
		},
		Delayed:     func(ctx context.Context, t jobs.Ticket) { one(ctx, "Delayed", t.Record(), "operation", t.Operation) },
		Queued:      func(ctx context.Context, t jobs.Ticket) { one(ctx, "Queued", t.Record()) },
		Parked:      entry("Parked"),
		MadeStuck:   entry("Stuck"),
		ExpiredOpen: entry("ExpiredOpen"),
		JobLost:     entry("ExpiredOpen"),
		Skipped: func(ctx context.Context, s stream.Skipped) {
			if s.Reason != stream.SkipCompanion {
				one(ctx, "Unreadable", s.Record, "reason", s.Reason)
			}
		},
		Tried: m.tried,
		Swept: m.swept, Counted: m.counted,
	}
}

func (m *Metrics) tried(ctx context.Context, t stream.Try) {
	m.add(ctx, t.Ticket.Record(), func(l *line) {
		if !t.Ticket.Jobs {
			l.count("CompleterTries", 1)
		}
		if t.Outcome == "not_mine" {
			l.count("NotMine", 1)
		}
	}, "function", t.Ticket.Function, "outcome", t.Outcome)
}

func (m *Metrics) swept(ctx context.Context, r *stream.Report, err error) {
	is := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 0
	}
	m.add(ctx, "", func(l *line) {
		for _, reason := range state.Reasons {
			if metrictable.Named(reason.Metric).Source == metrictable.OfSweep {
				l.count(reason.Metric, float64(r.ByReason[reason.Reason].Count))
			}
		}
		l.measure("OpenAge", float64(r.OpenAge))
		l.count("SweepRuns", 1)
		l.count("SweepFailed", is(err != nil))
		l.measure("SweepCoverage", 100*r.Coverage)
		l.measure("SweepAge", float64(r.PassAge))
		l.count("SweepOverdue", is(r.Overdue))
	}, "pass_began", r.PassBegan, "last_pass", r.LastPass, "scanned", r.Scanned)
}

// Metrics.counted writes the gauges of records that wait for people. After each count
// it writes every gauge, even if the value is 0, so that an alarm ends when no record
// waits any more.
func (m *Metrics) counted(ctx context.Context, c *stream.Counted) {
	m.add(ctx, "", func(l *line) {
		l.measure("Waiting", float64(c.Count))
		l.measure("WaitingAge", float64(c.Oldest))
		for _, reason := range state.Reasons {
			if metrictable.Named(reason.Metric).Source == metrictable.OfCount {
				l.measure(reason.Metric, float64(c.ByReason[reason.Reason].Count))
			}
		}
	})
}
