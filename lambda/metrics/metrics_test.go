package metrics_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/metrics"
)

const app = "shop"

// emitted are the names of the metrics in a log, each of which must be in the
// form that CloudWatch reads.
func emitted(t *testing.T, log []byte) (names []string) {
	t.Helper()
	for line := range bytes.Lines(log) {
		var emf struct {
			AWS struct {
				Timestamp         int64
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name, Unit string }
				}
			} `json:"_aws"`
			App string
		}
		var values map[string]any
		if err := json.Unmarshal(line, &emf); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if err := json.Unmarshal(line, &values); err != nil {
			t.Fatal(err)
		}
		if at := time.UnixMilli(emf.AWS.Timestamp); time.Since(at).Abs() > time.Hour {
			t.Errorf("the time is %v in %s", at, line)
		}
		if emf.App != app {
			t.Errorf("App is %q", emf.App)
		}
		for _, d := range emf.AWS.CloudWatchMetrics {
			if diff := cmp.Diff([][]string{{"App"}}, d.Dimensions); diff != "" || d.Namespace != metrics.Namespace {
				t.Errorf("namespace %s, dimensions %v", d.Namespace, d.Dimensions)
			}
			for _, m := range d.Metrics {
				if _, isNumber := values[m.Name].(float64); !isNumber || m.Unit != "Count" {
					t.Errorf("%s has the value %v in %s", m.Name, values[m.Name], m.Unit)
				}
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// everything makes all metrics count once.
func everything(m *metrics.Metrics) {
	ctx := context.Background()
	for _, hooks := range []any{m.Hooks(), m.StreamHooks()} {
		for _, f := range reflect.ValueOf(hooks).Fields() {
			if !f.IsNil() {
				args := []reflect.Value{reflect.ValueOf(ctx)}
				for n := 1; n < f.Type().NumIn(); n++ {
					arg := reflect.Zero(f.Type().In(n))
					if arg.Type() == reflect.TypeFor[*stream.Report]() {
						arg = reflect.ValueOf(&stream.Report{})
					}
					args = append(args, arg)
				}
				f.Call(args)
			}
		}
	}
	m.Swept(&stream.Report{})
	m.NotMine(jobs.Ticket{}, "")
}

func TestMetricsAreInEmbeddedMetricFormat(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	everything(metrics.New(&log, app))
	got := emitted(t, log.Bytes())
	var want []string
	for _, m := range metrics.All() {
		if want = append(want, m.Name); m.Meaning == "" {
			t.Errorf("%s has no meaning", m.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("metrics (-listed +counted):\n%s", diff)
	}
}

// Properties can't take the place of the metric, nor of the dimension.
func TestPropertiesDontReplaceTheMetric(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	metrics.New(&log, app).Count("Booked", 3, map[string]any{"Booked": "x", "App": "x", "_aws": "x", "ride": "r"})
	if diff := cmp.Diff([]string{"Booked"}, emitted(t, log.Bytes())); diff != "" || !bytes.Contains(log.Bytes(), []byte(`"ride":"r"`)) {
		t.Errorf("metrics (-want +got):\n%s in %s", diff, &log)
	}
}

func TestSweptCountsWhatWasFound(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	metrics.New(&log, app).Swept(&stream.Report{Overdue: true, ByWhy: map[stream.Why]stream.Tally{
		stream.WhyOpen: {Count: 1}, stream.WhyNoRequest: {Count: 2}, stream.WhyExpiring: {Count: 4},
		stream.WhyStuck: {Count: 8}, stream.WhyParked: {Count: 16}, stream.WhyUnreadable: {Count: 32},
		stream.WhyUndelivered: {Count: 64}, stream.WhyKept: {Count: 128}, stream.WhyBlocked: {Count: 256},
	}})
	got := make(map[string]float64)
	for line := range bytes.Lines(log.Bytes()) {
		var values map[string]any
		if err := json.Unmarshal(line, &values); err != nil {
			t.Fatal(err)
		}
		for _, name := range emitted(t, line) {
			got[name] = values[name].(float64)
		}
	}
	want := map[string]float64{metrics.Abandoned: 7, metrics.Waiting: 312, metrics.Undelivered: 64, metrics.SweepOverdue: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestCompanionsAreOrdinary(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	metrics.New(&log, app).StreamHooks().Skipped(t.Context(), stream.Skipped{Why: stream.SkipCompanion})
	if log.Len() > 0 {
		t.Errorf("counted: %s", &log)
	}
}

// Of the outcomes of tickets, only a handler that wasn't found needs people.
func TestTicketsWithoutAHandlerAreCounted(t *testing.T) {
	t.Parallel()
	for _, kind := range []completer.TicketOutcomeKind{
		completer.TicketNotMine, completer.TicketDone, completer.TicketMoved, completer.TicketFailed, completer.TicketStuck, completer.TicketInFlight,
	} {
		var log bytes.Buffer
		metrics.New(&log, app).StreamHooks().Tried(t.Context(), stream.Try{Ticket: jobs.Ticket{Function: "rides"}, Outcome: string(kind)})
		if got, want := slices.Contains(emitted(t, log.Bytes()), metrics.NotMine), kind == completer.TicketNotMine; got != want {
			t.Errorf("%s: %s", kind, log.Bytes())
		}
	}
}
