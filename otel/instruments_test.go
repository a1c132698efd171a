package otel

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A line has lists of values, several metrics, and times in milliseconds.
func TestLines(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	w := &instruments{meter: metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"), record: make(map[string]func(float64))}
	const line = `{"_aws":{"CloudWatchMetrics":[{"Metrics":[{"Name":"PhaseDuration","Unit":"Milliseconds"},{"Name":"WriteUnits","Unit":"Count"},` +
		`{"Name":"OpenAge","Unit":"Seconds"}]}]},"PhaseDuration":[500,1500],"WriteUnits":2.5,"OpenAge":7}`
	if n, err := w.Write([]byte(line)); err != nil || n != len(line) {
		t.Fatal(n, err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range all.ScopeMetrics[0].Metrics {
		seen++
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			if p := data.DataPoints[0]; m.Name != "samekey.phase_duration" || m.Unit != "s" || p.Count != 2 || p.Sum != 2 {
				t.Errorf("%s in %s: %+v", m.Name, m.Unit, p)
			}
		case metricdata.Sum[float64]:
			if m.Name != "samekey.write_units" || data.DataPoints[0].Value != 2.5 || !data.IsMonotonic {
				t.Errorf("%s: %+v", m.Name, data)
			}
		case metricdata.Gauge[float64]:
			if m.Name != "samekey.open_age" || m.Unit != "s" || data.DataPoints[0].Value != 7 {
				t.Errorf("%s in %s: %+v", m.Name, m.Unit, data)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d metrics, want 3", seen)
	}
	for _, wrong := range []string{
		"no JSON", `[]`, `{}`, `{"_aws":1}`, `{"_aws":{"CloudWatchMetrics":[{"Metrics":[{"Name":"WriteUnits","Unit":"Count"}]}]},"WriteUnits":"many"}`,
	} {
		if n, err := w.Write([]byte(wrong)); n != 0 || err == nil {
			t.Errorf("%s is taken: %d, %v", wrong, n, err)
		}
	}
}
