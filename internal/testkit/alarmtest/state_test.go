package alarmtest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func alarm(periods, datapoints int, missing string) Alarm {
	return Alarm{
		Queries: []Query{{ID: "m", Metric: Metric{"N", "M", map[string]string{"App": "a"}}, Stat: "Maximum", Period: 5 * time.Minute, Return: true}},
		Periods: periods, Datapoints: datapoints, Comparison: "GreaterThanThreshold", Missing: missing,
	}
}

// series makes data of periods of five minutes that end at noon, the oldest first: 1
// breaches, 0 doesn't, - is missing.
func series(text string) (d Data) {
	for i, c := range text {
		at := noon.Add(-time.Duration(len(text)-i)*5*time.Minute + time.Second)
		if c != '-' {
			d.Add(Metric{"N", "M", map[string]string{"App": "a"}}, at, float64(c-'0'))
		}
	}
	return d
}

// The tables of CloudWatch's documentation: "How alarm state is evaluated when data
// is missing", 3 of 3 and 2 of 3 periods. Where the alarm "retains its state", the
// state before was INSUFFICIENT_DATA.
func TestStatesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		data                              string
		missing, ignore, breaching, notBr State
		datapoints                        int
	}{
		{"0-1-1", OK, OK, OK, OK, 3},
		{"0----", OK, OK, OK, OK, 3},
		{"-----", Insufficient, Insufficient, Firing, OK, 3},
		{"011-1", Firing, Firing, Firing, Firing, 3},
		{"--1--", Firing, Insufficient, Firing, OK, 3},
		{"0-1-1", Firing, Firing, Firing, Firing, 2},
		{"00101", Firing, Firing, Firing, Firing, 2},
		{"0-1--", OK, OK, Firing, OK, 2},
		{"----0", OK, OK, Firing, OK, 2},
		{"---1-", Firing, Insufficient, Firing, OK, 2},
	} {
		for treatment, want := range map[string]State{"missing": tt.missing, "ignore": tt.ignore, "breaching": tt.breaching, "notBreaching": tt.notBr} {
			if got := alarm(3, tt.datapoints, treatment).At(series(tt.data), noon); got != want {
				t.Errorf("%s, %d of 3, %s: %s, want %s", tt.data, tt.datapoints, treatment, got, want)
			}
		}
	}
}

// An alarm fires while a gauge breaches, and recovers after it: a minute after the
// period of the last breach that it still looks at.
func TestAlarmFollowsAGauge(t *testing.T) {
	t.Parallel()
	got := alarm(1, 1, "notBreaching").Over(series("001110000"), noon.Add(-45*time.Minute), noon)
	want := []Change{
		{noon.Add(-45 * time.Minute), Insufficient},
		{noon.Add(-45 * time.Minute), OK},
		{noon.Add(-34 * time.Minute), Firing},
		{noon.Add(-19 * time.Minute), OK},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	values := map[string]float64{"a": 3, "b": 1}
	for text, want := range map[string]float64{
		"a / (a + b)":                      0.75,
		"FILL(c, 0) + a":                   3,
		"IF(FILL(c, 0) + a > 2, a / b, 0)": 3,
		"IF(a < 2, a, b)":                  1,
	} {
		if got, ok := evaluate(text, values); !ok || got != want {
			t.Errorf("%s is %v, %t; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"c + a", "a / (b - 1)"} {
		if got, ok := evaluate(text, values); ok {
			t.Errorf("%s has the value %v", text, got)
		}
	}
	for _, text := range []string{"SEARCH(a)", "a ** b", "a[0]", "-a"} {
		if _, err := compile(text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const resources = `
Parameters:
  App: {Type: String, Default: samekey}
Resources:
  A:
    Type: AWS::CloudWatch::Alarm
    Properties:
      Namespace: N
      MetricName: M
      Dimensions: [{Name: App, Value: !Ref App}]
      Statistic: Sum
      Period: 60
      EvaluationPeriods: 3
      Threshold: 0
      ComparisonOperator: GreaterThanThreshold
      AlarmActions: !If [Topic, [!Ref TopicArn], !Ref AWS::NoValue]
`
	for _, tt := range []struct {
		topic   string
		actions int
	}{{"true", 1}, {"false", 0}} {
		got, err := Parse(resources, map[string]string{"App": "rides", "Topic": tt.topic})
		if err != nil {
			t.Fatal(err)
		}
		want := Alarm{
			Name: "A", Queries: []Query{{ID: "m", Metric: Metric{"N", "M", map[string]string{"App": "rides"}}, Stat: "Sum", Period: time.Minute, Return: true}},
			Periods: 3, Datapoints: 3, Comparison: "GreaterThanThreshold", Missing: "missing", Actions: tt.actions,
		}
		if diff := cmp.Diff(want, got["A"]); diff != "" {
			t.Error(diff)
		}
	}
	for _, broken := range []string{"Period: 60|Period: 10", "Sum|p99", "GreaterThanThreshold|Greater", "EvaluationPeriods|Evaluations", "Threshold: 0|ThresholdMetricId: m"} {
		from, to, _ := strings.Cut(broken, "|")
		if _, err := Parse(strings.Replace(resources, from, to, 1), nil); err == nil {
			t.Errorf("%s is taken", to)
		}
	}
}
