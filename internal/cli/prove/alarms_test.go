package prove

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

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
		p := &Place{Alarms: j, Stack: run, Rings: time.Millisecond, meter: &meter{}}
		figure, err := p.ring(t.Context(), "WaitingParkedAlarm")
		want := Failed
		if name == "" {
			want = Passed
		}
		if r := ringing().judge(p, figure, err); r.Name != "alarms.parked" || r.Status != want || j.looks == 0 {
			t.Errorf("an alarm %s: %+v", name, r)
		}
	}
}
