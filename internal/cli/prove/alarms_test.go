package prove

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/internal/testkit/alarmtest"
	"github.com/samekey/samekey/lambda/metrics"
)

// judged is CloudWatch with the alarms of a template, which judges them as it does.
type judged struct {
	alarms map[string]alarmtest.Alarm
	data   alarmtest.Data
	looks  int
}

func (j *judged) DescribeAlarms(_ context.Context, in *cloudwatch.DescribeAlarmsInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.DescribeAlarmsOutput, error) {
	j.looks++
	out := &cloudwatch.DescribeAlarmsOutput{}
	for id, a := range j.alarms {
		out.MetricAlarms = append(out.MetricAlarms, types.MetricAlarm{
			AlarmName:  aws.String(*in.AlarmNamePrefix + "-Samekey-1A2B-" + id + "-3C4D"),
			StateValue: types.StateValue(a.At(j.data, time.Now())),
		})
	}
	return out, nil
}

// An alarm of another metric, dimension or threshold doesn't ring, and its claim fails. In the first row nothing
// is planted.
func TestWrongAlarm(t *testing.T) {
	t.Parallel()
	const run = "samekey-prove-a"
	for name, wrong := range map[string]struct{ old, replacement string }{
		"":                    {},
		"of another metric":   {"MetricName: WaitingParked", "MetricName: Parked"},
		"of another app":      {"Value: !Ref App", "Value: orders"},
		"of a high threshold": {"Threshold: 0", "Threshold: 1"},
		"of one below":        {"GreaterThanThreshold", "LessThanThreshold"},
		"that isn't there":    {"WaitingParkedAlarm:", "ParkedAlarm:"},
	} {
		head, rest, ok1 := strings.Cut(Nested(true), "  WaitingParkedAlarm:")
		own, tail, ok2 := strings.Cut(rest, "\n\n")
		own = "  WaitingParkedAlarm:" + own
		if !ok1 || !ok2 || !strings.Contains(own, wrong.old) {
			t.Fatalf("the template has no such alarm, or no %s", wrong.old)
		}
		text := head + strings.Replace(own, wrong.old, wrong.replacement, 1) + "\n\n" + tail
		alarms, err := alarmtest.Parse(text, map[string]string{"App": run})
		if err != nil {
			t.Fatal(err)
		}
		j := &judged{alarms: alarms}
		j.data.Add(alarmtest.Metric{Namespace: metrics.Namespace, Name: "WaitingParked", Dimensions: map[string]string{"App": run}}, time.Now().Add(-2*time.Minute), 1)
		p := &Place{Alarms: j, Stack: run, Rings: time.Millisecond, meter: &meter{}, parked: &stream.Entry{}}
		figure, err := ringing().Examine(t.Context(), p)
		want := Failed
		if name == "" {
			want = Passed
		}
		if r := ringing().judge(p, figure, err); r.Name != "alarms.parked" || r.Status != want || j.looks == 0 {
			t.Errorf("an alarm %s: %+v", name, r)
		}
	}
}

// Each trouble has its alarm ring, and no other; an alarm of another metric doesn't ring, and its claim fails.
func TestTroubles(t *testing.T) {
	t.Parallel()
	const run = "samekey-prove-a"
	app, worker := map[string]string{"App": run}, map[string]string{"FunctionName": "w"}
	made := map[string]struct {
		metric alarmtest.Metric
		value  float64
	}{
		"WorkerErrors":  {alarmtest.Metric{Namespace: "AWS/Lambda", Name: "Errors", Dimensions: worker}, 1},
		"GivenUp":       {alarmtest.Metric{Namespace: "AWS/Lambda", Name: "OnFailureDestinationDeliveredEventCount", Dimensions: map[string]string{"EventSourceMappingUUID": "m"}}, 1},
		"Undelivered":   {alarmtest.Metric{Namespace: metrics.Namespace, Name: "Undelivered", Dimensions: app}, 1},
		"Abandoned":     {alarmtest.Metric{Namespace: metrics.Namespace, Name: "Abandoned", Dimensions: app}, 1},
		"Mismatch":      {alarmtest.Metric{Namespace: metrics.Namespace, Name: "Mismatch", Dimensions: app}, mismatches},
		"WaitingParked": {alarmtest.Metric{Namespace: metrics.Namespace, Name: "WaitingParked", Dimensions: app}, 0},
	}
	alarms, err := alarmtest.Parse(Nested(true), map[string]string{"App": run, "Worker": "w", "WorkerStream": "m", "MismatchThreshold": "10"})
	if err != nil {
		t.Fatal(err)
	}
	for _, trouble := range troubles() {
		for _, happens := range []bool{true, false} {
			j := &judged{alarms: alarms}
			if happens {
				j.data.Add(made[trouble.alarm].metric, time.Now().Add(-2*time.Minute), made[trouble.alarm].value)
			}
			p := &Place{Alarms: j, Stack: run, Rings: time.Millisecond, meter: &meter{}}
			trouble.made = func(context.Context, *Place) error { return nil }
			c := alarming(trouble)
			figure, err := c.Examine(t.Context(), p)
			if r := c.judge(p, figure, err); (r.Status == Passed) != happens {
				t.Errorf("%s, %t: %+v", trouble.name, happens, r)
			}
		}
	}
	p := &Place{found: map[stream.Reason]bool{stream.ReasonOpen: true}}
	if swept(stream.ReasonOpen)(t.Context(), p) != nil || swept(stream.ReasonUndelivered)(t.Context(), p) == nil || isParked(t.Context(), p) == nil {
		t.Error("a trouble that wasn't made")
	}
}
