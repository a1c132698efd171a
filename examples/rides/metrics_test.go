package rides_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
)

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
		if emf.App != rides.MetricsApp {
			t.Errorf("App is %q", emf.App)
		}
		for _, d := range emf.AWS.CloudWatchMetrics {
			if diff := cmp.Diff([][]string{{"App"}}, d.Dimensions); diff != "" || d.Namespace != rides.MetricsNamespace {
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
func everything(m *rides.Metrics) {
	ctx := context.Background()
	for _, hooks := range []any{m.Hooks(), m.StreamHooks()} {
		for _, f := range reflect.ValueOf(hooks).Fields() {
			if !f.IsNil() {
				args := []reflect.Value{reflect.ValueOf(ctx)}
				for n := 1; n < f.Type().NumIn(); n++ {
					args = append(args, reflect.Zero(f.Type().In(n)))
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
	everything(rides.NewMetrics(&log))
	if n := len(emitted(t, log.Bytes())); n < 15 {
		t.Errorf("%d metrics", n)
	}
}

func TestSweptCountsWhatWasFound(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	rides.NewMetrics(&log).Swept(&stream.Report{Overdue: true, ByWhy: map[stream.Why]stream.Tally{
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
	want := map[string]float64{rides.MetricAbandoned: 7, rides.MetricWaiting: 312, rides.MetricUndelivered: 64, rides.MetricSweepOverdue: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestCompanionsAreOrdinary(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	rides.NewMetrics(&log).StreamHooks().Skipped(t.Context(), stream.Skipped{Why: stream.SkipCompanion})
	if log.Len() > 0 {
		t.Errorf("counted: %s", &log)
	}
}

// What happens to requests is counted, and neither keys nor bodies get out.
func TestMetricsOfRequests(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	st := inMemory(t, func(o *idem.Options) { o.Hooks = rides.NewMetrics(&log).Hooks() })
	st.post(t, jane, "my-key", trip).is(t, 201)
	_ = st.post(t, jane, "my-key", trip)
	st.post(t, jane, "my-key", other).is(t, 422)
	want := []string{rides.MetricClaimed, rides.MetricReplayed, rides.MetricMismatch}
	if diff := cmp.Diff(want, emitted(t, log.Bytes())); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	for _, secret := range []string{"my-key", "37.7", jane} {
		if bytes.Contains(log.Bytes(), []byte(secret)) {
			t.Errorf("%s is in the log: %s", secret, &log)
		}
	}
}
