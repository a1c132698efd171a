package rides_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/metrictable"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/lambda/metrics"
)

// A mismatch, and a ride that nobody has ended five minutes after its lease,
// are each counted under a metric that an alarm is on.
func TestMetricsThatAlarm(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	counts := metrics.New(&log, rides.MetricsApp)
	st := onDynamoDB(t, func(o *idem.Options) { o.Hooks = counts.Hooks() })
	counted := func(name string) (n float64) {
		t.Helper()
		for line := range bytes.Lines(log.Bytes()) {
			var values map[string]any
			if err := json.Unmarshal(line, &values); err != nil {
				t.Fatal(err)
			}
			v, _ := values[name].(float64)
			n += v
		}
		return n
	}
	alarms := alarmed(t)
	for _, name := range []string{"Mismatch", "Abandoned"} {
		if !slices.Contains(alarms, name) {
			t.Errorf("no alarm is on %s", name)
		}
	}

	st.post(t, jane, "k", trip).is(t, 201)
	if n := counted("Mismatch"); n != 0 {
		t.Errorf("%v mismatches before there was one", n)
	}
	st.post(t, jane, "k", other).is(t, 422)
	if n := counted("Mismatch"); n != 1 {
		t.Errorf("%v mismatches, want 1", n)
	}

	st.post(t, jane, "abandoned", raising(chargeCreated)).is(t, 500) // and nobody comes back
	sweep := stream.NewSweep(st.direct, st.store.(*dynamo.Store), func(o *stream.SweepOptions) {
		o.PagesPerSecond, o.Hooks = 1000, counts.StreamHooks()
		o.Now = func() time.Time { return st.clock }
	})
	begun := st.clock
	for _, tt := range []struct {
		later time.Duration
		want  float64
	}{{state.DefaultGrace - time.Minute, 0}, {state.DefaultGrace + time.Minute, 1}} {
		st.clock = begun.Add(tt.later)
		log.Reset()
		if _, err := sweep.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := counted("Abandoned"); n != tt.want {
			t.Errorf("%v after it was left: %v abandoned, want %v", tt.later, n, tt.want)
		}
	}
}

// alarmed are our metrics that the template has alarms on.
func alarmed(t *testing.T) (names []string) {
	t.Helper()
	for _, r := range resources(t) {
		if r.Properties.Namespace == metrictable.Namespace {
			names = append(names, r.Properties.MetricName)
		}
	}
	return names
}
