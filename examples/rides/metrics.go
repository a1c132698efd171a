package rides

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
)

// MetricsNamespace is where the metrics are in CloudWatch, each under the one
// dimension App = [MetricsApp].
const (
	MetricsNamespace = "Samekey"
	MetricsApp       = "rides"
)

// The metrics. template.yaml has alarms on those that a human must hear of.
const (
	MetricClaimed   = "Claimed"   // a new operation began
	MetricTakenOver = "TakenOver" // an abandoned one was taken over
	MetricReplayed  = "Replayed"  // a stored answer was given
	MetricInFlight  = "InFlight"  // refused: another attempt was at work
	MetricMismatch  = "Mismatch"  // refused: the key was used for another request
	MetricLeaseLost = "LeaseLost" // an attempt was overtaken
	MetricStuck     = "Stuck"     // an operation was given up and waits for a human
	MetricBlocked   = "Blocked"   // the deployed code refuses to go on with an operation: it waits for a human
	MetricNotMine   = "NotMine"   // no handler was found for an abandoned operation, which waits for one
	MetricFailed    = "Failed"    // the table failed, or a record is corrupt

	MetricDelivered   = "Delivered"   // a job was handed on
	MetricParked      = "Parked"      // a job was given up and waits for a human
	MetricExpiredOpen = "ExpiredOpen" // an operation, or a parked job, was forgotten unfinished
	MetricUnreadable  = "Unreadable"  // what is in the table or its stream is not understood

	// What a sweep finds, once for each run, 0 included.
	MetricAbandoned   = "Abandoned"   // operations that nobody has ended in time
	MetricUndelivered = "Undelivered" // jobs that nobody has handed on in time
	MetricWaiting     = "Waiting"     // operations and jobs that wait for a human

	MetricSweepOverdue = "SweepOverdue" // 1 where no pass over the whole table has ended in time
)

// Metrics writes metrics as log lines in CloudWatch's embedded metric format.
// It is safe for concurrent use.
type Metrics struct {
	mu  sync.Mutex
	out *json.Encoder
}

// NewMetrics returns metrics that go to w: in Lambda, standard output.
func NewMetrics(w io.Writer) *Metrics { return &Metrics{out: json.NewEncoder(w)} }

// Hooks returns an engine's hooks that count what happens.
func (m *Metrics) Hooks() idem.Hooks {
	count := func(name string) func(context.Context, idem.Event) {
		return func(_ context.Context, ev idem.Event) {
			m.Count(name, 1, map[string]any{"record": ev.Record, "operation": ev.ID, "route": ev.Route})
		}
	}
	return idem.Hooks{
		Claimed:   count(MetricClaimed),
		TakenOver: count(MetricTakenOver),
		Replayed:  count(MetricReplayed),
		InFlight:  count(MetricInFlight),
		Mismatch:  count(MetricMismatch),
		LeaseLost: count(MetricLeaseLost),
		Stuck:     count(MetricStuck),
		Blocked:   count(MetricBlocked),
		Failed:    count(MetricFailed),
	}
}

// StreamHooks returns the hooks of drain, completer and sweep.
func (m *Metrics) StreamHooks() stream.Hooks {
	entry := func(name string) func(context.Context, stream.Entry) {
		return func(_ context.Context, e stream.Entry) {
			m.Count(name, 1, map[string]any{"record": e.Record, "operation": e.ID, "route": e.Route, "phase": e.Phase})
		}
	}
	return stream.Hooks{
		Delivered: func(_ context.Context, d jobs.Delivery) {
			m.Count(MetricDelivered, 1, map[string]any{"operation": d.Operation, "job": d.JobID})
		},
		Parked:      entry(MetricParked),
		GivenUp:     entry(MetricStuck),
		ExpiredOpen: entry(MetricExpiredOpen),
		JobLost:     entry(MetricExpiredOpen),
		Skipped: func(_ context.Context, s stream.Skipped) {
			if s.Why != stream.SkipCompanion {
				m.Count(MetricUnreadable, 1, map[string]any{"record": s.Record, "why": s.Why})
			}
		},
	}
}

// NotMine counts a ticket whose handler wasn't found: a human must look why.
func (m *Metrics) NotMine(t jobs.Ticket, why string) {
	m.Count(MetricNotMine, 1, map[string]any{"record": t.Record(), "function": t.Function, "error": why})
}

// Swept counts what a sweep has found.
func (m *Metrics) Swept(r *stream.Report) {
	for name, whys := range map[string][]stream.Why{
		MetricAbandoned:   {stream.WhyOpen, stream.WhyNoRequest, stream.WhyExpiring},
		MetricUndelivered: {stream.WhyUndelivered},
		MetricWaiting:     {stream.WhyStuck, stream.WhyBlocked, stream.WhyParked, stream.WhyUnreadable},
	} {
		n := 0
		for _, why := range whys {
			n += r.ByWhy[why].Count
		}
		m.Count(name, n, nil)
	}
	overdue := 0
	if r.Overdue {
		overdue = 1
	}
	m.Count(MetricSweepOverdue, overdue, map[string]any{"pass_began": r.PassBegan, "last_pass": r.LastPass})
}

// Count writes n under a metric's name. The properties can be searched for in
// the logs, they make no metrics of their own.
func (m *Metrics) Count(name string, n int, properties map[string]any) {
	type metric struct{ Name, Unit string }
	type directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []metric
	}
	line := map[string]any{
		"_aws": map[string]any{
			"Timestamp":         time.Now().UnixMilli(),
			"CloudWatchMetrics": []directive{{MetricsNamespace, [][]string{{"App"}}, []metric{{name, "Count"}}}},
		},
		"App": MetricsApp,
		name:  n,
	}
	maps.Copy(line, properties)
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.out.Encode(line) // a log that can't be written is nothing to fail a request for
}
